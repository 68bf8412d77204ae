/* Lost packets. A NAK, a time without acknowledgements, or a link that came up again rewinds a
 * flow. Its lane then queues again what is not acknowledged. After MCP_GIVE_UP ticks without
 * progress the flow is given up.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "replay.h"

#include "flows/bulk.h"
#include "flows/express.h"
#include "flows/fast.h"
#include "message.h"
#include "requests.h"
#include "routes.h"
#include "send.h"
#include "trace.h"

/* Whether a flow waits for acknowledgements of packets that it has sent. */
static bool is_lost(uint32_t number)
{
	return number < MCP_BULK ? flows[number].state == FLOW_OPEN &&
					   flows[number].acked != flows[number].next
				 : bulk_is_lost(number);
}

static RARE void rewind(uint32_t number)
{
	trace(DIBBER_TRACE_REPLAY, number, flows[number].acked);
	flows[number].waited = 0;
	if (number < MCP_BULK)
		express_rewind(number);
	else
		bulk_rewind(number);
}

/* Several packets behind one gap may each bring a NAK. Only the first NAK after an
 * acknowledgement counts. If that replay is lost too, the timer finds out. flow_rewind() tells
 * the NAK of a late answer. */
static RARE uint32_t take_naks(void)
{
	struct set naked;
	uint32_t number, any;

	SET_READ(NAKED, naked);
	any = set_any(&naked);
	SET_WRITE(NAKED, naked);
	while (set_take(&naked, &number)) {
		mcp_alive();
		fast_claim(number);
		/* Take over what this NAK acknowledged: all before the gap. */
		flow_acknowledge(number);
		if (is_lost(number) && flows[number].acked != flows[number].rewound)
			rewind(number);
		set_add(&flow_work, number);
	}
	return any != 0;
}

static RARE uint32_t take_link(void)
{
	uint32_t changed = REG_READ(LINK_CHANGED), link;
	struct set active, nodes;
	uint32_t number;

	REG_WRITE(LINK_CHANGED, changed);
	fast_claim_active();
	set_copy(&active, &flow_active);
	link = REG_READ(LINK);
	trace(DIBBER_TRACE_LINK, link, active.word[0]);
	set_clear(&nodes);
	if (FIELD_GET(LINK, TWO, link)) {
		for (uint32_t node = 0; node < DIBBER_NODES; node++) {
			mcp_alive();
			if (routes_link(node, changed))
				set_add(&nodes, node);
		}
	} else if (FIELD_GET(LINK, UP, link)) {
		/* All routes are by the one link, so no route changes. */
		set_fill(&nodes, DIBBER_NODES);
	}
	while (set_take(&active, &number))
		if (set_has(&nodes, number % DIBBER_NODES) && is_lost(number))
			rewind(number);
	return 1;
}

RARE uint32_t replay_handler(void)
{
	uint32_t done = 0;

#if DIBBER_NODES > 16 || DIBBER_ENDPOINTS > 8
	/* EVENTS does not tell them apart, but their registers do. */
	done += take_naks();
	if (REG_READ(LINK_CHANGED))
		done += take_link();
	done += fast_given();
#else
	uint32_t events = REG_READ(EVENTS);

	if (events & EVENT(NAK))
		done += take_naks();
	if (events & EVENT(LINK))
		done += take_link();
	if (events & EVENT(GIVEN))
		done += fast_given();
#endif
	return done;
}

static bool is_empty(uint32_t number)
{
	return number < MCP_BULK ? flows[number].ended == flows[number].next
				 : flows[number].head == MCP_NO_TAG;
}

static RARE void expire(uint32_t number)
{
	trace(DIBBER_TRACE_TIMEOUT, number, flows[number].acked);
	if (number < MCP_BULK)
		express_expire(number);
	else
		bulk_expire(number);
}

/* `works`: the target says that it is storing. `sends`: the send engine made progress. Both
 * are about the time since the last tick. */
static void tick(uint32_t number, bool works, bool sends)
{
	struct flow *flow = &flows[number];
	bool empty = is_empty(number);
	bool moved, waits;

	flow->ticks = (flow->ticks & ~MCP_SHUT) + MCP_TICK;
	if (fast_pauses(number)) {
		if (number < MCP_BULK)
			express_rest(number);
		else
			bulk_rest(number);
	}
	/* An incarnation may last long. PSNs under way must stay less than 2^31 after its
	 * start, and not before it. */
	if (flow->next - flow->start > 1u << 30)
		flow->start += 1u << 29;
	/* It has 16 bits, so an old value must not come round. */
	if ((uint16_t)(flow->doubt - flow->acked) > flow->next - flow->acked)
		flow->doubt = flow->acked;
	moved = empty || flow->seen != flow->acked;
	if (moved)
		flow->replays = 0;
	if (moved || works) {
		flow_works(flow);
		/* An inline put does not set its bit again. So an EXPRESS flow keeps it while
		 * it is open. */
		if (empty && number >= MCP_BULK)
			set_remove(&flow_active, number);
		return;
	}
	waits = flow_waits(number);
	/*
	 * Nothing that has left is missing. The engine may need long for the next packet, or
	 * do jobs of other nodes first. A job that stops the engine with a full window stops
	 * those as well: then nothing moves.
	 */
	if (!waits && sends && number >= MCP_BULK) {
		flow->waited = 0;
		/* Reading the same bytes again is no progress, but takes its time. */
		if (flow->patience == MCP_PATIENCE)
			flow->idle = 0;
		return;
	}
	if (++flow->idle > MCP_GIVE_UP) {
		expire(number);
		return;
	}
	if (!waits || !is_lost(number)) {
		/* It has not left yet, or is being queued again. */
		flow->waited = 0;
	} else if (++flow->waited > flow->patience && routes_up(number % DIBBER_NODES)) {
		/* From the second useless replay on. */
		if (flow->patience >= 4 * MCP_PATIENCE)
			routes_turn(number % DIBBER_NODES);
		if (flow->patience < MCP_PATIENCE_MAX)
			flow->patience *= 2;
		if (flow->replays++ == MCP_REPLAYS) {
			expire(number);
			return;
		}
		rewind(number);
		/* This tick is the first of the next wait. */
		flow->waited = 1;
	}
}

/* Flows to these nodes have another link. What is on the way by the old one is sent again. */
static RARE void come_back(const struct set *nodes)
{
	if (!set_any(nodes))
		return;
	for (uint32_t number = 0; number < DIBBER_LANES * DIBBER_NODES; number++) {
		if (!set_has(nodes, number % DIBBER_NODES))
			continue;
		mcp_alive();
		fast_claim(number);
		flow_acknowledge(number);
		if (is_lost(number))
			rewind(number);
		set_add(&flow_work, number);
	}
}

RARE uint32_t replay_timer_handler(void)
{
	static uint32_t next;
	uint32_t now = REG_READ(CYCLES_LOW);
	bool sends = REG_READ(SEND_MOVED);
	struct set works, active, back;
	uint32_t done, number;

	SET_READ(PEER_WORKS, works);
	mcp_alive();
	/* Ticks keep their distance, unless one was missed. */
	next += mcp_tick;
	if ((int32_t)(now - next) >= 0)
		next = now + mcp_tick;
	REG_WRITE(TIMER, next);
	SET_WRITE(PEER_WORKS, works);
	REG_WRITE(SEND_MOVED, sends);
	if (REG_READ(SRAM_WRITTEN)) {
		REG_WRITE(SRAM_WRITTEN, 1);
		forget_code();
		mcp_alive();
	}
	done = message_tick(&works, sends);
	if (request_receives | send_waiting)
		send_tick(FIELD_GET(LINK, UP, REG_READ(LINK)));
	fast_tick(&works, sends);
	set_clear(&back);
	routes_tick(now, &back);
	come_back(&back);
	set_copy(&active, &flow_active);
	if (!set_any(&active))
		return done;
	while (set_take(&active, &number)) {
		mcp_alive();
		tick(number, number >= MCP_BULK && set_has(&works, number), sends);
	}
	return 1;
}
