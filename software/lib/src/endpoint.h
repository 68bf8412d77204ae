/* An endpoint: its queues, its command slots, its state. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_ENDPOINT_H
#define DIBBER_ENDPOINT_H

#include "card.h"
#include "queue.h"

struct dib_mailbox;

struct dib_endpoint {
	struct dib_handle handle;
	struct dib_card *card;
	unsigned int number;
	unsigned int participant; /* in the clock: `number`, or DIB_CARD */
	void *memory;		  /* both queues, one mapping, so that one range can be watched */
	size_t memory_length;
	struct dib_map *map;
	struct dib_queue completions, events;
	int event_fd; /* -1 until the program asks for it */
	/* An epoll descriptor of event_fd, or -1. It is readable from each interrupt until the
	 * library has looked for a halt. */
	int edges;
	uint32_t halts; /* of the card when the endpoint was opened */
	bool halted;	/* the card has counted more halts since then: its program is gone */
	/* Open, its program runs, no mailbox has it: all that a transfer checks. */
	bool ready;
	/* Empty polls that are left until the library asks whether the control program runs. */
	int32_t patience;
	/* The mailbox that uses the endpoint's commands, completions and events, or NULL. When the
	 * endpoint or card is closed, `detach` gives back what the mailbox has and makes its handle
	 * an orphan; `closed` is the kind of what was closed. */
	struct dib_mailbox *mailbox;
	void (*detach)(struct dib_mailbox *mailbox, enum dib_kind closed);

	uint32_t producer; /* commands written, modulo 2³² */
	uint32_t busy;	   /* bit n: the completion of slot n has not been polled */
	uint32_t cookie[DIBBER_SLOTS];
	uint64_t tag[DIBBER_SLOTS];
	uint32_t target[DIBBER_SLOTS]; /* key */
	uint8_t opcode[DIBBER_SLOTS];
};

/* Give up the endpoint's own place in the clock, if it has one. Regions that were registered there
 * move to the card's place. The caller has locked the card. */
void dib_endpoint_leave_clock(struct dib_card *card, struct dib_endpoint *endpoint);
/* Open the endpoint of the remote window, in the card's place in the clock. */
int dib_endpoint_open_for_window(struct dib_card *card, struct dib_endpoint **endpoint);
/* Close an endpoint on the card. The handle stays as an orphan. The caller has locked the card. */
int dib_endpoint_withdraw(struct dib_card *card, struct dib_endpoint *endpoint);

static inline int dib_endpoint_check(const struct dib_endpoint *endpoint)
{
	return dib_handle_check(endpoint, DIB_KIND_ENDPOINT);
}

/* Take the endpoint from its mailbox, if it has one. */
static inline void dib_endpoint_detach(struct dib_endpoint *endpoint, enum dib_kind closed)
{
	if (endpoint->mailbox)
		endpoint->detach(endpoint->mailbox, closed);
}

/* Why an endpoint that is not `ready` refuses a transfer or a poll. */
int dib_endpoint_refuse(const struct dib_endpoint *endpoint, const char *whose)
	__attribute__((cold));

/* Called after each change of a state that `ready` depends on. */
static inline void dib_endpoint_update(struct dib_endpoint *endpoint)
{
	endpoint->ready =
		endpoint->handle.life == DIB_LIFE_OPEN && !endpoint->halted && !endpoint->mailbox;
}

#endif
