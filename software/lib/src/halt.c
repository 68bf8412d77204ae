/*
 * What becomes of endpoints whose control program was halted, or gave way to another
 * (docs/design/control-program.md). The library looks when nothing else happens, so that what goes well
 * pays nothing; who sleeps on a descriptor is woken by the card.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <sys/epoll.h>

#include "card.h"

int dib_program(struct dib_card *card, unsigned int participant, uint32_t *halts, bool *ready)
{
	uint32_t value;
	/* A page of its own: the simulator makes reads of another's in that one's time. */
	int rc =
		dib_read_register(card, dib_doorbell(participant, DIBBER_DOORBELL_PROGRAM), &value);

	if (rc)
		return rc;
	*halts = value >> DIBBER_DOORBELL_PROGRAM_HALTS_SHIFT & DIBBER_DOORBELL_PROGRAM_HALTS_MASK;
	*ready = value >> DIBBER_DOORBELL_PROGRAM_READY_SHIFT & DIBBER_DOORBELL_PROGRAM_READY_MASK;
	return 0;
}

/* Whether the endpoint's program is still there; from then on `halted` says so. */
static int look_for_halt(struct dib_endpoint *endpoint)
{
	uint32_t halts;
	bool ready;
	int rc;

	/* What was written before the halt is in memory when this answer is there. */
	rc = dib_program(endpoint->card, endpoint->participant, &halts, &ready);
	/* A card that was reset under its users counts anew, but runs no program. */
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

	/* Without any from now on: each look that finds nothing comes here. */
	if (endpoint->halted)
		return dib_halted(endpoint);
	endpoint->patience = DIB_PATIENCE;
	rc = look_for_halt(endpoint);
	if (endpoint->halted)
		endpoint->patience = 0;
	return rc;
}

/* The program may have read the descriptor since: what it is always, writable, is told once for
 * each interrupt. */
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
