/* Page tables: how the card finds the bytes of a region in scattered pages. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>

#include "card.h"
#include "error.h"
#include "memory.h"
#include "pages.h"

#define LEAST_SHIFT 12u
#define MOST_SHIFT  30u
#define PER_LINE    8u /* the card reads eight entries at a time, also the last ones */
#define ABSENT	    1u

static uint64_t bytes_of(const struct dib_pages *pages, uint64_t count)
{
	return count << pages->shift;
}

static int check_page(const struct dib_pages *pages, uint32_t n)
{
	if (pages->memory && (uintptr_t)pages->memory[n] % DIB_PAGE)
		return dib_fail(DIB_ERR_ARGUMENT, "page %u begins at %p, not at a multiple of %u",
				n, pages->memory[n], DIB_PAGE);
	if (pages->bus && !(pages->bus[n] & ABSENT) &&
	    (pages->bus[n] % bytes_of(pages, 1) || pages->bus[n] >> 63))
		return dib_fail(
			DIB_ERR_ARGUMENT,
			"page %u has the bus address 0x%llx, not a multiple of its size below 2^63",
			n, (unsigned long long)pages->bus[n]);
	return 0;
}

int dib_pages_check(const struct dib_pages *pages)
{
	int rc = 0;

	if (!pages->memory == !pages->bus)
		return dib_fail(DIB_ERR_ARGUMENT,
				"pages by their memory, or by their bus addresses");
	if (pages->shift < LEAST_SHIFT || pages->shift > MOST_SHIFT)
		return dib_fail(DIB_ERR_ARGUMENT, "pages of 2^%u bytes: 2^%u to 2^%u are possible",
				pages->shift, LEAST_SHIFT, MOST_SHIFT);
	if (pages->length == 0)
		return dib_fail(DIB_ERR_ARGUMENT,
				"a region of 0 bytes: a region has at least one byte");
	if (pages->first >= bytes_of(pages, 1) || pages->length > DIBBER_MAX_OFFSET ||
	    pages->first + pages->length > bytes_of(pages, pages->count))
		return dib_fail(DIB_ERR_ARGUMENT,
				"%llu bytes from byte %u of the first of %u pages of %llu bytes",
				(unsigned long long)pages->length, pages->first, pages->count,
				(unsigned long long)bytes_of(pages, 1));
	for (uint32_t n = 0; n < pages->count && !rc; n++)
		rc = check_page(pages, n);
	return rc;
}

/* Map the pages of this process and enter them. Pages that follow each other in memory are mapped
 * together. */
static int map_pages(struct dib_card *card, const struct dib_pages *pages, bool writable,
		     struct dib_page_table *table)
{
	uint64_t size = bytes_of(pages, 1);
	uint32_t n = 0;

	while (n < pages->count) {
		uint8_t *run = pages->memory[n];
		uint32_t count = 1;
		struct dib_map *map;
		int rc;

		if (!run) {
			table->entries[n++] = ABSENT;
			continue;
		}
		while (n + count < pages->count &&
		       (uint8_t *)pages->memory[n + count] == run + count * size)
			count++;
		rc = dib_map_aligned(card, run, count * size, size, writable, &map);
		if (rc)
			return rc;
		map->more = table->pages;
		table->pages = map;
		for (uint32_t i = 0; i < count; i++)
			table->entries[n++] = map->mapping.iova + i * size;
	}
	return 0;
}

int dib_page_table_make(struct dib_card *card, const struct dib_pages *pages, bool writable,
			struct dib_page_table **out)
{
	size_t entries = ((size_t)pages->count + PER_LINE - 1) / PER_LINE * PER_LINE;
	struct dib_page_table *table = calloc(1, sizeof(*table));
	int rc;

	if (!table)
		return dib_fail(DIB_ERR_NO_MEMORY, "no memory for a page table");
	rc = dib_alloc_own(entries * sizeof(uint64_t), &table->memory);
	table->entries = table->memory;
	if (!rc)
		rc = dib_map(card, table->memory, entries * sizeof(uint64_t), false, &table->map);
	if (!rc && pages->memory)
		rc = map_pages(card, pages, writable, table);
	if (rc) {
		dib_page_table_free(card, table);
		return rc;
	}
	for (uint32_t n = 0; pages->bus && n < pages->count; n++)
		table->entries[n] = pages->bus[n];
	for (size_t n = pages->count; n < entries; n++)
		table->entries[n] = ABSENT;
	*out = table;
	return 0;
}

int dib_page_table_free(struct dib_card *card, struct dib_page_table *table)
{
	struct dib_map *map = table->pages, *next;
	int rc = table->map ? dib_unmap(card, table->map) : 0;

	for (; map; map = next) {
		int rc_page;

		next = map->more;
		rc_page = dib_unmap(card, map);
		rc = rc ? rc : rc_page;
	}
	dib_free(table->memory);
	free(table);
	return rc;
}
