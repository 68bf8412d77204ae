/* Endpoints whose control program was halted or replaced (docs/design/control-program.md). The
 * library looks for a halt only when nothing else happens, so a transfer pays nothing for it. The
 * card wakes a program that sleeps on a descriptor. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <sys/epoll.h>

#include "card.h"
#include "endpoint.h"
#include "error.h"
#include "halt.h"
#include "watch.h"

int dib_program(struct dib_card *card, unsigned int participant, uint32_t *halts, bool *ready)
{
	uint32_t value;
	/* Each participant reads its own page, because the simulator makes the read of a page in
	 * the time of the page's participant. */
	int rc =
		dib_read_register(card, dib_doorbell(participant, DIBBER_DOORBELL_PROGRAM), &value);

	if (rc)
		return rc;
	*halts = value >> DIBBER_DOORBELL_PROGRAM_HALTS_SHIFT & DIBBER_DOORBELL_PROGRAM_HALTS_MASK;
	*ready = value >> DIBBER_DOORBELL_PROGRAM_READY_SHIFT & DIBBER_DOORBELL_PROGRAM_READY_MASK;
	return 0;
}

/* Ask whether the endpoint's program still runs, and set `halted`. */
static int look_for_halt(struct dib_endpoint *endpoint)
{
	uint32_t halts;
	bool ready;
	int rc;

	/* Bytes that were written before the halt are in memory when this answer is there. */
	rc = dib_program(endpoint->card, endpoint->participant, &halts, &ready);
	/* A card that was reset while in use counts from 0 again, but runs no program. */
	if (!rc && (halts != endpoint->halts || !ready)) {
		endpoint->halted = true;
		dib_endpoint_update(endpoint);
		dib_watch_ended(endpoint);
	}
	return rc;
}

int dib_lose_patience(struct dib_endpoint *endpoint)
{
	int rc;

	/* A halted endpoint has no patience: each empty poll comes here. */
	if (endpoint->halted)
		return dib_halted(endpoint);
	endpoint->patience = DIB_PATIENCE;
	rc = look_for_halt(endpoint);
	if (endpoint->halted)
		endpoint->patience = 0;
	return rc;
}

/* The program may have read the eventfd since. The epoll descriptor reports once for each interrupt
 * that the eventfd is writable, which it always is. */
bool dib_was_woken(struct dib_endpoint *endpoint)
{
	struct epoll_event event;

	return epoll_wait(endpoint->edges, &event, 1, 0) > 0;
}

int dib_halted(const struct dib_endpoint *endpoint)
{
	return dib_fail(
		DIB_ERR_HALTED,
		"the control program of endpoint %u was halted: close the endpoint, and open it when one runs",
		endpoint->number);
}

int dib_give_up(struct dib_endpoint *endpoint, struct dib_completion *entries, int max)
{
	uint32_t slots = endpoint->card->fixed.slots;
	int count = 0;

	for (uint32_t age = slots; age > 0 && count < max; age--) {
		uint32_t slot = (endpoint->producer - age) & (slots - 1);

		if (!(endpoint->busy & 1u << slot))
			continue;
		endpoint->busy &= ~(1u << slot);
		entries[count++] = (struct dib_completion){ .tag = endpoint->tag[slot],
							    .status = DIBBER_STATUS_HALTED };
	}
	return count;
}
