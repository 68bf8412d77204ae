/* The simulator's clock (docs/design/simulator.md). Without one, time is the system's. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <time.h>

#include "card.h"
#include "clock.h"
#include "endpoint.h"
#include "error.h"
#include "transport.h"

bool dib_has_clock(struct dib_card *card)
{
	const struct dib_transport_ops *ops = card->transport->ops;

	return ops->has_clock && ops->has_clock(card->transport);
}

static int tell(struct dib_card *card, const struct dibber_clock_request *request,
		struct dibber_clock_reply *reply)
{
	return card->transport->ops->clock(card->transport, request, reply);
}

int dib_clock_join(struct dib_card *card, unsigned int participant)
{
	struct dibber_clock_request request = { .op = DIBBER_CLOCK_OP_JOIN,
						.endpoint = participant };
	struct dibber_clock_reply reply;

	return dib_has_clock(card) ? tell(card, &request, &reply) : 0;
}

int dib_clock_part(struct dib_card *card, unsigned int participant)
{
	struct dibber_clock_request request = {
		.op = DIBBER_CLOCK_OP_LEAVE,
		.endpoint = participant,
		.count = 1,
	};
	struct dibber_clock_reply reply;

	return dib_has_clock(card) ? tell(card, &request, &reply) : 0;
}

int dib_charge(struct dib_endpoint *endpoint, enum dibber_call call, uint32_t count)
{
	struct dibber_clock_request request = {
		.op = DIBBER_CLOCK_OP_CHARGE,
		.endpoint = endpoint->participant,
		.call = call,
		.count = count,
	};

	if (!dib_has_clock(endpoint->card))
		return 0;
	return tell(endpoint->card, &request, NULL);
}

int dib_clock_watch(struct dib_card *card, unsigned int participant, uint64_t iova, uint64_t length,
		    uint64_t picoseconds)
{
	struct dibber_clock_request request = {
		.op = DIBBER_CLOCK_OP_WAIT,
		.endpoint = participant,
		.watch = iova,
		.length = length,
		.deadline = picoseconds,
	};
	struct dibber_clock_reply reply;
	int rc = tell(card, &request, &reply);

	return rc ? rc : reply.woken != 0;
}

int dib_clock_catch_up(struct dib_endpoint *endpoint)
{
	int rc = dib_clock_watch(endpoint->card, endpoint->participant, 0, 0, 0);

	return rc < 0 ? rc : 0;
}

#define INSTRUCTIONS 0 /* `call` of CLOCK_OP_CHARGE */

int dib_clock_charge(struct dib_endpoint *endpoint, uint32_t instructions, uint32_t copied)
{
	int rc = dib_endpoint_check(endpoint);

	if (!rc && instructions)
		rc = dib_charge(endpoint, INSTRUCTIONS, instructions);
	if (!rc && copied)
		rc = dib_charge(endpoint, DIBBER_CALL_COPY, copied);
	return rc;
}

#define FOR_A_PAUSE 2 /* `count` of CLOCK_OP_LEAVE */

static int leave_or_enter(struct dib_endpoint *endpoint, enum dibber_clock_op op, uint32_t count)
{
	struct dibber_clock_request request;
	struct dibber_clock_reply reply;

	int rc = dib_endpoint_check(endpoint);

	if (rc)
		return rc;
	/* The program continues elsewhere and must find there what was written before. */
	if (endpoint->card->transport->copies)
		return endpoint->card->transport->ops->serve(endpoint->card->transport, 0);
	if (!dib_has_clock(endpoint->card))
		return 0;
	request = (struct dibber_clock_request){ .op = op,
						 .endpoint = endpoint->participant,
						 .count = count };
	return tell(endpoint->card, &request, &reply);
}

int dib_clock_leave(struct dib_endpoint *endpoint)
{
	return leave_or_enter(endpoint, DIBBER_CLOCK_OP_LEAVE, 0);
}

int dib_clock_pause(struct dib_endpoint *endpoint)
{
	return leave_or_enter(endpoint, DIBBER_CLOCK_OP_LEAVE, FOR_A_PAUSE);
}

int dib_clock_enter(struct dib_endpoint *endpoint)
{
	return leave_or_enter(endpoint, DIBBER_CLOCK_OP_ENTER, 0);
}

int dib_clock_now(struct dib_endpoint *endpoint, struct dib_clock *clock)
{
	struct dibber_clock_request request = { .op = DIBBER_CLOCK_OP_NOW };
	struct dibber_clock_reply reply;
	struct timespec t;
	int rc;

	rc = dib_endpoint_check(endpoint);
	if (rc)
		return rc;
	if (!clock)
		return dib_fail(DIB_ERR_ARGUMENT, "no place for the time given");
	if (!dib_has_clock(endpoint->card)) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		*clock = (struct dib_clock){
			.now_ps = ((uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec) * 1000u,
		};
		return 0;
	}
	request.endpoint = endpoint->participant;
	rc = tell(endpoint->card, &request, &reply);
	if (rc)
		return rc;
	*clock = (struct dib_clock){
		.now_ps = reply.now,
		.cpu_ps = reply.cpu,
		.simulated = 1,
		.free = reply.free,
	};
	return 0;
}
