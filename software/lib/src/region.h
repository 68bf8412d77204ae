/* A region: registered memory and its key. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_REGION_H
#define DIBBER_REGION_H

#include <stdbool.h>
#include <stdint.h>

#include "handle.h"

struct dib_card;
struct dib_map;
struct dib_page_table;

struct dib_region {
	struct dib_handle handle;
	struct dib_card *card;
	unsigned int participant; /* of the clock, that registered the region */
	unsigned int owner;	  /* number of the endpoint that the region was registered for */
	struct dib_map *map;	  /* of its memory; NULL: the memory is in pages */
	struct dib_page_table *table;
	uint32_t key;
	uint32_t halts; /* of the card when the region was registered */
};

/* Learn which key is next. The keys of a card that has just got power begin at a random number. */
int dib_keys_begin(struct dib_card *card);
/* Withdraw a region from the card, and enter its memory, in one piece, under another key. The
 * caller has locked the card. */
int dib_region_change_key(struct dib_endpoint *endpoint, struct dib_region *region, uint64_t length,
			  unsigned int rights);
/* Withdraw a region from the card. The handle stays as an orphan. The caller has locked the card.
 */
int dib_region_withdraw(struct dib_card *card, struct dib_region *region);

/* Whether a key names a region of another endpoint of this card. */
bool dib_is_foreign(const struct dib_endpoint *endpoint, uint32_t key) __attribute__((cold));

#endif
