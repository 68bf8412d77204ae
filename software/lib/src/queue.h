/* A queue that the card writes into host memory: completions or events. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_QUEUE_H
#define DIBBER_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include <dibber_interface.h>

struct dib_queue {
	struct dibber_queue_entry *entries;
	uint64_t iova;	/* bus address; 0: the library writes this queue, the card does not */
	uint32_t count; /* entries, a power of two */
	uint32_t taken; /* entries that the program has taken, modulo 2³² */
	uint32_t told;	/* the value of `taken` that the card was told last */
};

/* The oldest entry that was not taken, or NULL. The phase bit tells a new entry from an old one.
 * What a new entry announces is in memory. */
static inline const struct dibber_queue_entry *dib_queue_peek(const struct dib_queue *queue)
{
	const struct dibber_queue_entry *entry = &queue->entries[queue->taken & (queue->count - 1)];
	uint32_t phase = queue->taken & queue->count ? 0 : 1;

	/* Acquire: the rest of the entry, and the data that it announces, is read after the phase.
	 */
	if (__atomic_load_n(&entry->phase, __ATOMIC_ACQUIRE) != phase)
		return NULL;
	return entry;
}

#endif
