/* This file is part of Dibber. */
/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What the wire brought: messages and the ends of answers go to who waits for them.
 *
 * Interrupts on arrival. A notice from the wire becomes an entry of the target endpoint's event
 * queue and, if it asks for one, an interrupt. Its data was handed to the PHY before it came
 * here.
 */

#include "mcp.h"

static void arrive(void)
{
	uint32_t arrival = REG_READ(ARRIVAL);
	uint32_t endpoint = FIELD_GET(ARRIVAL, ENDPOINT, arrival);
	uint32_t value = REG_READ(ARRIVAL_VALUE);
	uint32_t length = REG_READ(ARRIVAL_LENGTH);
	uint32_t key = REG_READ(ARRIVAL_KEY);
	uint32_t what = FIELD_PUT(POST_WHAT, NODE, FIELD_GET(ARRIVAL, NODE, arrival)) |
			FIELD_PUT(POST_WHAT, KIND, DIBBER_ENTRY_NOTICE) |
			FIELD_PUT(POST_WHAT, STATUS, DIBBER_STATUS_OK);

	REG_WRITE(ARRIVAL_POP, 1);
	trace(DIBBER_TRACE_ARRIVAL, arrival, value);
	if (FIELD_GET(ARRIVAL, MESSAGE, arrival)) {
		message_arrived(arrival, value);
		return;
	}
	if (FIELD_GET(ARRIVAL, RESPONSE, arrival)) {
		get_answered(arrival, value, length);
		return;
	}
	/* What is for nobody is lost at the administrator's queue, which is never open, and counted there. */
	if (endpoint >= DIBBER_ENDPOINTS)
		endpoint = 0;
	queue_post(value, length, what, key,
		   FIELD_PUT(POST_START, QUEUE, QUEUE_EVENTS(endpoint)) |
			   FIELD_PUT(POST_START, INTERRUPT, FIELD_GET(ARRIVAL, INTERRUPT, arrival)));
}

APART uint32_t arrival_handler(void)
{
	uint32_t done = 0;

	do {
		arrive();
		done++;
	} while (done < MCP_BATCH && (REG_READ(EVENTS) & EVENT(ARRIVAL)));
	return done;
}
