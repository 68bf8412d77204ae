/* A card: its state, its lock, its registers. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_CARD_H
#define DIBBER_CARD_H

#include <pthread.h>
#include <stdbool.h>

#include "handle.h"
#include "queue.h"
#include "transport.h"

/* Entries of the queues of endpoint 0, which the administrator makes. */
#define DIB_ADMIN_ENTRIES 64u  /* completions */
#define DIB_ADMIN_EVENTS  256u /* events */

#define DIB_CARD   0u  /* the participant of the clock for calls on the card itself */
#define DIB_NOBODY ~0u /* the caller does not take part in the clock */

struct dib_aperture;
struct dib_endpoint;
struct dib_map;
struct dib_region;
struct dib_watch;

struct dib_card {
	struct dib_handle handle;
	struct dib_transport *transport;
	pthread_mutex_t lock; /* guards everything below; held during administrator commands */
	bool closed;
	/* The thread that wakes sleepers on a descriptor when the card ends, or NULL. */
	struct dib_watch *watch;

	struct dib_card_info fixed; /* what never changes, and the node number */
	uint64_t iova_base;
	struct dib_map *maps;
	unsigned int by_message; /* mappings that have no descriptor */

	bool firmware; /* a control program runs that knows the administrator's queue */
	/* A control program may run that does not know the queue: it was loaded beside this handle.
	 */
	bool behind;
	uint32_t halts;	    /* that this handle has seen, as the register PROGRAM counts them */
	void *admin_memory; /* both queues of endpoint 0: admin_queue.c */
	struct dib_map *admin_map;

	/* The administrator and a program that has endpoint 0 open share the following. Each may
	 * run in its own thread. */
	pthread_mutex_t admin_lock;   /* guards what follows; held for moments only */
	struct dib_queue admin_queue; /* completions of both */
	uint32_t admin_producer;      /* commands of both, modulo 2³² */
	/* Bit n: slot n has a command of the program that has not completed. */
	uint32_t admin_shared;
	bool admin_waits;      /* a command of the administrator has not completed */
	uint32_t admin_cookie; /* of that command */
	struct dibber_queue_entry admin_answer; /* its completion */
	/* The program's completions: the queue of its endpoint. */
	struct dibber_queue_entry admin_sorted[DIB_ADMIN_ENTRIES];
	uint32_t admin_sorted_count; /* modulo 2³² */

	uint32_t flash_bytes;		  /* 0: the flash was not asked yet */
	uint32_t flash_jedec;		  /* its identity, valid when flash_bytes is not 0 */
	uint64_t flash_first, flash_last; /* the part that may be changed: [first, last) */

	pthread_mutex_t window_lock;   /* guards `aperture`; taken before `lock` */
	struct dib_aperture *aperture; /* of the remote windows, or NULL if there are none */
	/* Unmaps the windows of an endpoint, or of all with NULL; set with `aperture`. `closed` is
	 * the kind of what is being closed. */
	void (*drop_windows)(struct dib_card *card, const struct dib_endpoint *endpoint,
			     enum dib_kind closed);

	struct dib_endpoint *endpoints[DIBBER_ENDPOINTS];
	struct dib_region *regions[DIBBER_REGIONS];
	/* Keys are numbers that the card counts: the first one that was not given to a region, and
	 * how many are left from there on. */
	uint32_t next_key, keys_left;
};

/* Check that a call on a card can be served. Returns 0, or what the call returns. */
static inline int dib_check_card(const struct dib_card *card)
{
	return dib_handle_check(card, DIB_KIND_CARD);
}

/* Lock the card for a call of a participant. Fails when the card was closed. The caller has checked
 * the handle. */
int dib_card_enter(struct dib_card *card, unsigned int participant);
void dib_card_leave(struct dib_card *card);
int dib_read_register(struct dib_card *card, uint32_t offset, uint32_t *value);
int dib_write_register(struct dib_card *card, uint32_t offset, uint32_t value);

/* A field of a register of bank host. */
#define DIB_FIELD(value, name) \
	((value) >> DIBBER_HOST_##name##_SHIFT & (uint32_t)DIBBER_HOST_##name##_MASK)

/* Offset of struct dibber_mcp_shared in the control program's SRAM. */
static inline uint32_t dib_shared(const struct dib_card *card)
{
	return card->fixed.sram_bytes - DIBBER_SHARED_FROM_END;
}

/* Offset in BAR 0 of a register of an endpoint's doorbell page. */
static inline uint32_t dib_doorbell(unsigned int endpoint, uint32_t offset)
{
	return DIBBER_ENDPOINT_BASE + endpoint * DIBBER_ENDPOINT_STRIDE + DIBBER_DOORBELL_OFFSET +
	       offset;
}

/* Number of the endpoint that belongs to the remote window, or `endpoints` without a window. */
static inline unsigned int dib_window_endpoint(const struct dib_card *card)
{
	return card->fixed.endpoints - (card->fixed.features >> DIBBER_HOST_FEATURES_WINDOW_SHIFT &
					DIBBER_HOST_FEATURES_WINDOW_MASK);
}

/* Offset in BAR 0 of a command slot. */
static inline uint32_t dib_slot(unsigned int endpoint, uint32_t slot)
{
	return DIBBER_ENDPOINT_BASE + endpoint * DIBBER_ENDPOINT_STRIDE + DIBBER_SLOT_OFFSET +
	       slot * DIBBER_SLOT_BYTES;
}

#endif
