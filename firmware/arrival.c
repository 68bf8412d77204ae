/* What the wire brought: messages and ends of answers go to operations.c.
 *
 * Interrupts on arrival: a notice from the wire becomes an entry of the target endpoint's
 * event queue and, if it asks for one, an interrupt. The gateware handed the notice's data to
 * the PHY before the notice came here.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "arrival.h"

#include "flows/fast.h"
#include "operations.h"
#include "queue.h"
#include "trace.h"

static APART void notice(uint32_t arrival, uint32_t value, uint32_t length, uint32_t key)
{
	uint32_t endpoint = FIELD_GET(ARRIVAL, ENDPOINT, arrival);
	uint32_t what = FIELD_PUT(POST_WHAT, NODE, FIELD_GET(ARRIVAL, NODE, arrival)) |
			FIELD_PUT(POST_WHAT, KIND, DIBBER_ENTRY_NOTICE) |
			FIELD_PUT(POST_WHAT, STATUS, DIBBER_STATUS_OK);

	/* A notice for an endpoint that does not exist goes to endpoint 0. If that queue is
	 * not open, the gateware counts it as lost. */
	if (endpoint >= DIBBER_ENDPOINTS)
		endpoint = 0;
	queue_post(value, length, what, key,
		   FIELD_PUT(POST_START, QUEUE, QUEUE_EVENTS(endpoint)) |
			   FIELD_PUT(POST_START, INTERRUPT,
				     FIELD_GET(ARRIVAL, INTERRUPT, arrival)));
}

/* Whether it is a get, which hardware may still answer. */
static ALWAYS bool is_get(uint32_t node, uint32_t word)
{
	return (word & 0xff) == DIBBER_MESSAGE_GET && node < DIBBER_NODES;
}

/*
 * Returns whether the next arrival may be looked at. A function of its own: two arrivals seldom
 * come together, so the registers that a loop would save cost more than the call.
 */
static APART bool arrive(void)
{
	uint32_t arrival = REG_READ(ARRIVAL);
	uint32_t value = REG_READ(ARRIVAL_VALUE);
	uint32_t length, key;

	if (FIELD_GET(ARRIVAL, MESSAGE, arrival)) {
		uint32_t node = FIELD_GET(ARRIVAL, NODE, arrival);

		if (is_get(node, value)) {
			/* Its flow will be armed in a moment, and then hardware can answer. */
			if (fast_shut(MCP_BULK + node))
				return false;
			if (fast_wants(MCP_BULK + node, FIELD_GET(ARRIVAL, AGAIN, arrival))) {
				REG_WRITE(ARRIVAL_AGAIN, 1);
				return true;
			}
		}
		REG_WRITE(ARRIVAL_POP, 1);
		trace(DIBBER_TRACE_ARRIVAL, arrival, value);
		operations_message(arrival, value);
		return true;
	}
	length = REG_READ(ARRIVAL_LENGTH);
	key = REG_READ(ARRIVAL_KEY);
	REG_WRITE(ARRIVAL_POP, 1);
	trace(DIBBER_TRACE_ARRIVAL, arrival, value);
	if (FIELD_GET(ARRIVAL, RESPONSE, arrival))
		operations_answer(arrival, value, length);
	else
		notice(arrival, value, length, key);
	return true;
}

APART uint32_t arrival_handler(void)
{
	uint32_t done = 0;

	while (arrive()) {
		done++;
		if (done == MCP_BATCH || !(REG_READ(EVENTS) & EVENT(ARRIVAL)))
			break;
	}
	return done;
}
