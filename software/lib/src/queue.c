/* This file is part of Dibber.
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Queues in host memory: the card writes entries, the phase tells new from old. */

#include "card.h"

const struct dibber_queue_entry *dib_queue_peek(const struct dib_queue *queue)
{
	const struct dibber_queue_entry *entry = &queue->entries[queue->taken & (queue->count - 1)];
	uint32_t phase = queue->taken & queue->count ? 0 : 1;

	/* Acquire: the rest of the entry, and what it announces, is read after the phase. */
	if (__atomic_load_n(&entry->phase, __ATOMIC_ACQUIRE) != phase)
		return NULL;
	return entry;
}
