/* This file is part of Dibber. */
/* SPDX-License-Identifier: BSD-2-Clause */

/*
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
	uint32_t words[4];

	words[0] = REG_READ(ARRIVAL_VALUE);
	words[1] = REG_READ(ARRIVAL_LENGTH);
	words[2] = FIELD_GET(ARRIVAL, NODE, arrival) | DIBBER_ENTRY_NOTICE << 16 |
		   DIBBER_STATUS_OK << 24;
	words[3] = REG_READ(ARRIVAL_KEY);
	REG_WRITE(ARRIVAL_POP, 1);

	trace(TRACE_ARRIVAL, arrival, words[0]);
	/* A notice for an endpoint that is not open finds a queue without entries. */
	if (endpoint < DIBBER_ENDPOINTS) {
		queue_write(&endpoints[endpoint].events, words,
			    FIELD_GET(ARRIVAL, INTERRUPT, arrival));
	} else {
		mcp_shared.overruns++;
		trace(TRACE_LOST, words[2], words[0]);
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
