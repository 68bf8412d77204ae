/* A card's part of the remote windows: its last endpoint, its page table, its faults. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_APERTURE_H
#define DIBBER_APERTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "card.h"
#include "transport.h"

struct dib_window;

#define DIB_APERTURE_PAGES                                                     \
	(DIBBER_APERTURE_BYTES / DIBBER_APERTURE_PAGE - 1u) /* all but control \
							     */

/* Registers that count faults, in the order in which they are told. */
#define DIB_APERTURE_FAULTS 6u

struct dib_aperture {
	struct dib_endpoint *endpoint; /* the card's last one, through which the card sends */
	void *scratch;		       /* a page that receives what loads return */
	struct dib_region *region;     /* of the page */
	uint8_t *memory;	       /* BAR 2 as memory of this process, or NULL */
	uint32_t queue;		       /* stores that may be in the card's queue */
	bool shares;		       /* others store there too, so ROOM is not this process's */
	uint32_t room;		       /* and now, as far as this process knows */
	unsigned int owner_of_share;   /* an endpoint with a window, then */
	uint32_t known[DIBBER_ENDPOINTS];	      /* sequence of each owner at its last check */
	uint32_t windows[DIBBER_ENDPOINTS];	      /* that each owner has */
	uint32_t faults[DIB_APERTURE_FAULTS];	      /* at the last look */
	struct dib_window *owner[DIB_APERTURE_PAGES]; /* of each page, or NULL */
};

/* An entry of the page table. */
struct dib_page_entry {
	uint64_t offset;
	uint32_t key;
	uint32_t access; /* register PAGE_ACCESS */
};

/* The caller of each function has the window_lock. Each function but the first two needs
 * `card->aperture`. */

/* Take the card's last endpoint, unmap all pages, and turn the window on. */
int dib_aperture_open(struct dib_card *card);
/* Give back all that dib_aperture_open() took. What fails there does not matter. */
void dib_aperture_close(struct dib_card *card);

/* Whether the window is on: a halt of the control program turns it off. */
int dib_aperture_is_on(struct dib_card *card, bool *on);

/* Whether another than the library writes the page table. */
static inline bool dib_aperture_is_given(const struct dib_card *card)
{
	return card->transport->ops->window_map != NULL;
}

int dib_aperture_write_page(struct dib_card *card, unsigned int page,
			    const struct dib_page_entry *entry);

/* Bytes of BAR 2. Each aligned word of 8 bytes is an access of its own; smaller ones have the width
 * that their place allows. A load returns 1 if an access returned nothing but ones, as one does
 * that fails. */
int dib_aperture_load(struct dib_card *card, uint64_t offset, void *data, size_t length);
int dib_aperture_store(struct dib_card *card, uint64_t offset, const void *data, size_t length);
/* Empty the processor's write-combining buffers and the card's stream buffers. */
int dib_aperture_flush(struct dib_card *card);

/* The sequence of an owner; with `waits`, after all stores before it. */
int dib_aperture_sequence(struct dib_card *card, unsigned int owner, bool waits,
			  uint32_t *sequence);
/* The error, with its reason kept, that the faults since the last call make. */
int dib_aperture_explain(struct dib_card *card);

#endif
