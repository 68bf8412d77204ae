/* Memory that the card can reach: shared allocations and bus addresses. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_MEMORY_H
#define DIBBER_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport.h"

#define DIB_PAGE 4096u /* bytes of a page of the card, whatever the processor's page is */

struct dib_card;

/* A mapping in the card's bus address space. The card keeps a list of them, sorted by address. */
struct dib_map {
	struct dib_mapping mapping;
	struct dib_map *next;
	struct dib_map *more; /* the next mapping of the same page table */
};

/* As dib_alloc(), for memory that the program does not see. Children of fork() do not have it. */
int dib_alloc_own(size_t length, void **memory);

/* Give memory a bus address and map it there. `alignment` is a power of two. The caller has locked
 * the card. */
int dib_map(struct dib_card *card, void *memory, size_t length, bool writable,
	    struct dib_map **map);
int dib_map_aligned(struct dib_card *card, void *memory, size_t length, uint64_t alignment,
		    bool writable, struct dib_map **map);
int dib_map_queues(struct dib_card *card, void *memory, size_t length, struct dib_map **map);
int dib_unmap(struct dib_card *card, struct dib_map *map);

#endif
