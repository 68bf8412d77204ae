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
#include "registers.h"

static void arrive(void)
{
	uint32_t arrival = REG_READ(ARRIVAL);
	uint32_t endpoint = FIELD_GET(ARRIVAL, ENDPOINT, arrival);
	uint32_t value = REG_READ(ARRIVAL_VALUE);
	uint32_t length = REG_READ(ARRIVAL_LENGTH);
	uint32_t key = REG_READ(ARRIVAL_KEY);
	uint32_t what = FIELD_GET(ARRIVAL, NODE, arrival) | DIBBER_ENTRY_NOTICE << 16 |
			DIBBER_STATUS_OK << 24;

	REG_WRITE(ARRIVAL_POP, 1);
	trace(TRACE_ARRIVAL, arrival, value);
	if (FIELD_GET(ARRIVAL, MESSAGE, arrival)) {
		message_arrived(arrival, value);
		return;
	}
	if (FIELD_GET(ARRIVAL, RESPONSE, arrival)) {
		get_answered(arrival, value, length);
		return;
	}
	/* A notice for an endpoint that is not open finds a queue without entries. */
	if (endpoint < DIBBER_ENDPOINTS) {
		queue_event(&endpoints[endpoint].events, value, length, what, key,
			    FIELD_GET(ARRIVAL, INTERRUPT, arrival));
	} else {
		mcp_shared.overruns++;
		trace(TRACE_LOST, what, value);
	}
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
