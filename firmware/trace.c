/* The trace ring: the last events. The host can read it even when this processor has stopped. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "trace.h"

_Static_assert((DIBBER_TRACE_ENTRIES & (DIBBER_TRACE_ENTRIES - 1)) == 0, "the ring is masked");

void trace_state(enum dibber_mcp_state state)
{
	REG_WRITE(STATE, state);
}

void trace(enum dibber_trace event, uint32_t argument0, uint32_t argument1)
{
	uint32_t head = mcp_shared.trace_head;
	struct dibber_trace_entry *entry = &mcp_shared.trace[head & (DIBBER_TRACE_ENTRIES - 1)];

	entry->cycles = REG_READ(CYCLES_LOW);
	entry->event = (uint32_t)event << 8 | REG_READ(STATE);
	entry->argument[0] = argument0;
	entry->argument[1] = argument1;
	mcp_shared.events[event]++;
	/* Last, so that a host that reads at the same time sees only whole entries. */
	mcp_shared.trace_head = head + 1;
}
