/*
 * Memory behind a UART. The card reaches only its own memory. Registered memory gets a place
 * there, and both are brought to the same state at certain calls. Bytes that the program wrote
 * go to the card; bytes that the card wrote come to the program.
 *
 * The second copy must look as if the card had written the program's memory itself, in order: an
 * entry of a queue comes after the data that it announces. So changed memory is read again until
 * nothing changes during a read. If that does not end, the card is held. Then all of it is
 * published at once, entries of queues last.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "transport.h"
#include "uart.h"
#include "uart_line.h"
#include "uart_memory.h"

#define WORD   4u
#define PASSES 4u /* reads before the card is held */
#define PHASE  offsetof(struct dibber_queue_entry, phase)

static uint64_t offset_of(const struct dib_mapping *mapping)
{
	return mapping->iova - DIBBER_BRIDGED_MEMORY;
}

static uint64_t chunk_bytes(const struct uart *u)
{
	return u->base.shared_bytes / DIBBER_BRIDGED_CHUNKS;
}

/* To the card ---------------------------------------------------------------------------------- */

/* The aligned word of the card's memory at `at`: the program's bytes, and the card's for those that
 * do not belong to the program. */
static uint32_t own_word(const struct uart *u, const struct dib_mapping *m, uint64_t at)
{
	uint64_t base = offset_of(m);
	uint8_t bytes[WORD];
	uint32_t word;

	for (uint64_t i = 0; i < WORD; i++) {
		uint64_t place = at + i - base;

		bytes[i] =
			place >= m->first && place < m->end ? m->memory[place] : u->known[at + i];
	}
	memcpy(&word, bytes, sizeof(word));
	return word;
}

/* Send all, or only what differs from the card's memory. */
static int push_mapping(struct uart *u, const struct dib_mapping *m, bool all)
{
	uint64_t at = (offset_of(m) + m->first) / WORD * WORD, end = offset_of(m) + m->end;
	uint32_t words[DIBBER_FRAME_WORDS], count, known;
	int rc = 0;

	while (at < end && !rc) {
		for (count = 0; count < DIBBER_FRAME_WORDS && at + WORD * count < end; count++) {
			words[count] = own_word(u, m, at + WORD * count);
			memcpy(&known, u->known + at + WORD * count, sizeof(known));
			if (words[count] == known && !all)
				break;
		}
		if (count) {
			rc = dib_uart_write(&u->line, (uint32_t)(DIBBER_BRIDGED_MEMORY + at), words,
					    count);
			memcpy(u->known + at, words, WORD * count);
		}
		at += WORD * (count ? count : 1);
	}
	return rc;
}

int dib_uart_push(struct uart *u)
{
	int rc = 0;

	for (const struct uart_map *map = u->maps; map && !rc; map = map->next)
		rc = push_mapping(u, &map->mapping, false);
	return rc;
}

int dib_uart_enter(struct uart *u, const struct dib_mapping *mapping)
{
	struct uart_map *map = calloc(1, sizeof(*map));
	int rc;

	if (!map)
		return dib_fail(DIB_ERR_NO_MEMORY, "no memory for a mapping");
	map->mapping = *mapping;
	rc = push_mapping(u, mapping, true);
	if (rc) {
		free(map);
		return rc;
	}
	map->next = u->maps;
	u->maps = map;
	return 0;
}

void dib_uart_remove(struct uart *u, uint64_t iova)
{
	struct uart_map **link = &u->maps, *map;

	while (*link && (*link)->mapping.iova != iova)
		link = &(*link)->next;
	map = *link;
	if (map) {
		*link = map->next;
		free(map);
	}
}

/* From the card -------------------------------------------------------------------------------- */

static bool has(const uint32_t *bits, uint64_t chunk)
{
	return bits[chunk / 32] >> (chunk % 32) & 1;
}

/* Whether the card may have written a part of the chunk that belongs to the program. */
static bool is_mapped(const struct uart *u, uint64_t chunk)
{
	uint64_t begin = chunk * chunk_bytes(u), end = begin + chunk_bytes(u);

	for (const struct uart_map *map = u->maps; map; map = map->next) {
		const struct dib_mapping *m = &map->mapping;

		if (offset_of(m) + m->first < end && begin < offset_of(m) + m->last)
			return true;
	}
	return false;
}

static int fetch(struct uart *u, uint64_t chunk)
{
	uint64_t at = chunk * chunk_bytes(u), end = at + chunk_bytes(u);
	uint32_t words[DIBBER_FRAME_WORDS];
	int rc = 0;

	while (at < end && !rc) {
		uint64_t length = end - at < sizeof(words) ? end - at : sizeof(words);

		rc = dib_uart_read(&u->line, (uint32_t)(DIBBER_BRIDGED_MEMORY + at), words,
				   (uint32_t)(length / WORD));
		if (!rc)
			memcpy(u->fetched + at, words, length);
		at += length;
	}
	return rc;
}

static int set_hold(struct uart *u, uint32_t value)
{
	return dib_uart_write(&u->line, DIBBER_BRIDGE_BASE + DIBBER_BRIDGE_HOLD, &value, 1);
}

/* Fetch what has changed until nothing changes. `all` has a bit for each chunk. */
static int fetch_changes(struct uart *u, uint32_t all[UART_CHANGED_WORDS])
{
	uint32_t changed[UART_CHANGED_WORDS], any;
	unsigned int pass = 0;
	int rc;

	do {
		/* The memory of a card that is held does not change any more after one read. */
		if (pass > PASSES + 1) {
			set_hold(u, 0);
			u->line.lost = true;
			return dib_fail(DIB_ERR_PROTOCOL,
					"the card behind %s writes while it is held", u->line.port);
		}
		if (pass++ == PASSES && (rc = set_hold(u, 1)))
			return rc;
		rc = dib_uart_read(&u->line, DIBBER_BRIDGE_BASE + DIBBER_BRIDGE_CHANGED, changed,
				   UART_CHANGED_WORDS);
		if (rc)
			return rc;
		any = 0;
		for (unsigned int i = 0; i < UART_CHANGED_WORDS; i++)
			any |= changed[i];
		if (any)
			rc = dib_uart_write(&u->line, DIBBER_BRIDGE_BASE + DIBBER_BRIDGE_CHANGED,
					    changed, UART_CHANGED_WORDS);
		for (uint64_t chunk = 0; chunk < DIBBER_BRIDGED_CHUNKS && any && !rc; chunk++) {
			if (has(changed, chunk) && is_mapped(u, chunk)) {
				rc = fetch(u, chunk);
				all[chunk / 32] |= 1u << (chunk % 32);
			}
		}
		if (rc)
			return rc;
	} while (any);
	return pass > PASSES ? set_hold(u, 0) : 0;
}

enum part { DATA, ENTRIES, PHASES };

/* Copy what was fetched to the program. A byte that the program has written meanwhile stays, and
 * goes to the card later. */
static void publish_mapping(struct uart *u, const struct dib_mapping *m, const uint32_t *all,
			    enum part part)
{
	uint64_t base = offset_of(m);

	for (uint64_t i = m->first; i < m->last; i++) {
		uint64_t at = base + i;

		if (!has(all, at / chunk_bytes(u))) {
			i = (at / chunk_bytes(u) + 1) * chunk_bytes(u) - base - 1;
			continue;
		}
		if (m->queues &&
		    (i % sizeof(struct dibber_queue_entry) >= PHASE) != (part == PHASES))
			continue;
		if (m->memory[i] == u->known[at])
			__atomic_store_n(&m->memory[i], u->fetched[at], __ATOMIC_RELAXED);
		u->known[at] = u->fetched[at];
	}
}

int dib_uart_pull(struct uart *u)
{
	uint32_t all[UART_CHANGED_WORDS] = { 0 };
	int rc;

	rc = fetch_changes(u, all);
	if (rc)
		return rc;
	/* Another thread may poll its queues without a call here, so the announced data has to be
	 * there. */
	for (enum part part = DATA; part <= PHASES; part++) {
		for (const struct uart_map *map = u->maps; map; map = map->next) {
			if (map->mapping.queues == (part != DATA))
				publish_mapping(u, &map->mapping, all, part);
		}
		__atomic_thread_fence(__ATOMIC_RELEASE);
	}
	return 0;
}
