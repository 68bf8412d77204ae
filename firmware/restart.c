/* A peer that began anew: its card was reset or had no power, or it got another control program.
 * Its gateware refuses the packets of a flow that it does not hold, with PEER_RESTARTED and the PSN
 * of the packet.
 *
 * What had left before that packet may have been executed by the former life: it ends with
 * PEER_RESTARTED. The packet itself and those behind it left once, after the peer had begun anew,
 * and it refused them. So they were not executed, and they go again in a new incarnation. That
 * argument needs first transmissions: a packet that a rewind sent again is before `doubt`, and is
 * treated as one that may have been executed. docs/design/replay.md, "A target that began
 * anew".
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "mcp.h"

#define TRIES 8 /* restarts of a flow in a row of which nothing was acknowledged */

uint32_t restart_work;

static uint16_t refused[MCP_FLOWS]; /* PSN */
static uint8_t tries[MCP_FLOWS];
static uint32_t begun; /* flows of restart_work whose requests are being ended */

RARE void restart_heard(uint32_t number, uint32_t psn)
{
	refused[number] = psn;
	restart_work |= 1u << number;
	begun &= ~(1u << number);
}

RARE void restart_forget(uint32_t number)
{
	restart_work &= ~(1u << number) | begun;
}

/* The first PSN of a flow that was certainly not executed. */
static uint32_t boundary(uint32_t number)
{
	struct flow *flow = &flows[number];
	uint32_t under_way = flow->next - flow->acked;
	uint32_t first = (uint16_t)(refused[number] - flow->acked);
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

/* A flow starts anew; false while it must wait. */
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
	if (!(restart_work & 1u << number))
		return true;
	end = boundary(number);
	trace(DIBBER_TRACE_RESTARTED, number, end);
	begun |= 1u << number;
	if (number >= MCP_BULK) {
		bulk_restart(number, end);
	} else {
		message_lose(number);
		mcp_alive();
		express_restart(number, end);
	}
	return true;
}

/* One flow at a time. Those that must wait for the end of a job let the others have their turn. */
RARE uint32_t restart_step(void)
{
	static uint32_t turn;
	uint32_t number = next_turn(restart_work, turn % MCP_FLOWS);
	uint32_t done = 0;

	turn = number + 1;
	if (!(begun & 1u << number) && !begin(number))
		return 0;
	if (number < MCP_BULK)
		done = message_restarted(number, MCP_BATCH);
	if (done < MCP_BATCH) {
		restart_work &= ~(1u << number);
		begun &= ~(1u << number);
	}
	return done + 1;
}
