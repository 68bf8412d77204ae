/* Page tables: where the card finds the pages of a region. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_PAGES_H
#define DIBBER_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include <dibber/dibber.h>

struct dib_map;

struct dib_page_table {
	void *memory;
	/* The same memory: the bus address of each page. Bit 0 is set where there is no page. */
	uint64_t *entries;
	struct dib_map *map;   /* of `memory` */
	struct dib_map *pages; /* mappings that were made for the pages */
};

int dib_pages_check(const struct dib_pages *pages);
/* Map the pages, and a table of them. The caller has locked the card, here and in the call that
 * frees the table. */
int dib_page_table_make(struct dib_card *card, const struct dib_pages *pages, bool writable,
			struct dib_page_table **table);
int dib_page_table_free(struct dib_card *card, struct dib_page_table *table);

#endif
