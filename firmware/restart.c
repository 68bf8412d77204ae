/* A peer that began anew: its card was reset, had no power, or got another control program.
 * Its gateware does not hold the flow any more. It refuses a packet with PEER_RESTARTED and
 * the packet's PSN.
 *
 * The peer's former life may have executed packets before that PSN: they end with
 * PEER_RESTARTED. The packet itself, and those behind it, were sent once, after the peer had
 * begun anew, and it refused them. So they were not executed, and they go again in a new
 * incarnation. This holds only for packets that were sent once. A packet that a rewind sent
 * again is before `doubt`, and counts as one that may have been executed. See
 * docs/design/replay.md, "A target that began anew".
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "restart.h"

#include "flows/bulk.h"
#include "flows/express.h"
#include "flows/fast.h"
#include "message.h"
#include "trace.h"

#define TRIES 8 /* restarts of a flow in a row in which nothing was acknowledged */

static uint8_t tries[MCP_FLOWS];

/* The first PSN of a flow that was certainly not executed. */
static uint32_t boundary(uint32_t number)
{
	struct flow *flow = &flows[number];
	uint32_t under_way = flow->next - flow->acked;
	uint32_t first = (uint16_t)(flow_restart_psn[number] - flow->acked);
	uint32_t doubt = (uint16_t)(flow->doubt - flow->acked);

	tries[number] = flow->acked == flow->start ? tries[number] + 1 : 0;
	if (tries[number] > TRIES) {
		tries[number] = 0;
		return flow->next;
	}
	if (first >= under_way || under_way > MCP_PSNS)
		return flow->next;
	if (doubt <= under_way && doubt > first)
		first = doubt;
	return flow->acked + first;
}

/* Begin a flow anew; false while it must wait. */
static bool begin(uint32_t number)
{
	uint32_t end;

	fast_claim(number);
	if (flows[number].state == FLOW_OVER || flows[number].state == FLOW_SELF)
		return true;
	flow_advance(number);
	if (number >= MCP_BULK && !bulk_settled(number))
		return false;
	/* The end of a failed transfer may have begun a new incarnation. */
	if (!set_has(&flow_restart, number))
		return true;
	end = boundary(number);
	trace(DIBBER_TRACE_RESTARTED, number, end);
	set_add(&flow_restart_begun, number);
	if (number >= MCP_BULK) {
		bulk_restart(number, end);
	} else {
		message_lose(number);
		mcp_alive();
		express_restart(number, end);
	}
	return true;
}

/* One flow at a time. A flow that waits for the end of a job lets the others have their turn. */
RARE uint32_t restart_step(void)
{
	static uint32_t turn;
	uint32_t number = set_next(&flow_restart, turn % MCP_FLOWS);
	uint32_t done = 0;

	turn = number + 1;
	if (!set_has(&flow_restart_begun, number) && !begin(number))
		return 0;
	if (number < MCP_BULK)
		done = message_restarted(number, MCP_BATCH);
	if (done < MCP_BATCH) {
		set_remove(&flow_restart, number);
		set_remove(&flow_restart_begun, number);
	}
	return done + 1;
}
