/* Registers of a card by memory that is mapped: what transports have in common where the processor
 * itself reads and writes BAR 0. All that the library reads and writes is whole words; two at once
 * where they are aligned. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_MAPPED_BAR_H
#define DIBBER_MAPPED_BAR_H

#include <string.h>

#include "transport.h"

#define DIB_GONE 0xffffffffu /* what a read returns when no card answers; PCIe Base 3.0, 2.3.2 */

/* Stores before it reach memory and card before those after it do. */
static inline void dib_order_stores(void)
{
#if defined(__x86_64__)
	/* Mapped without write combining, stores leave in order (Intel SDM 3A, 8.2). */
	__asm__ volatile("" ::: "memory");
#elif defined(__aarch64__)
	__asm__ volatile("dmb oshst" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

static inline uint32_t dib_bar_load(const uint8_t *bar, uint64_t offset)
{
	return *(const volatile uint32_t *)(bar + offset);
}

/* Returns the last word: a card that went away in the middle is away at the end. */
static inline uint32_t dib_bar_copy_from(const uint8_t *bar, uint64_t offset, void *data,
					 size_t length)
{
	uint8_t *to = data;
	uint64_t both;
	uint32_t word = 0;
	size_t at = 0;

	for (; offset % sizeof(both) == 0 && length - at >= sizeof(both); at += sizeof(both)) {
		both = *(const volatile uint64_t *)(bar + offset + at);
		memcpy(to + at, &both, sizeof(both));
		word = (uint32_t)both;
	}
	for (; at < length; at += sizeof(word)) {
		word = dib_bar_load(bar, offset + at);
		memcpy(to + at, &word, sizeof(word));
	}
	return word;
}

static inline void dib_bar_copy_to(uint8_t *bar, uint64_t offset, const void *data, size_t length)
{
	const uint8_t *from = data;
	uint64_t both;
	uint32_t word;
	size_t at = 0;

	dib_order_stores();
	for (; offset % sizeof(both) == 0 && length - at >= sizeof(both); at += sizeof(both)) {
		memcpy(&both, from + at, sizeof(both));
		*(volatile uint64_t *)(bar + offset + at) = both;
	}
	for (; at < length; at += sizeof(word)) {
		memcpy(&word, from + at, sizeof(word));
		*(volatile uint32_t *)(bar + offset + at) = word;
	}
}

/* Write the slot, then ring. */
static inline void dib_bar_submit(uint8_t *bar, const struct dib_submission *s)
{
	dib_bar_copy_to(bar, s->slot, s->command, DIBBER_SLOT_BYTES);
	dib_bar_copy_to(bar, s->doorbell, &s->producer, sizeof(s->producer));
}

#endif
