/* This file is part of Dibber. */
/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Flows: packet sequence numbers, acknowledgements, refusals, timeouts and incarnations, one flow
 * a node. README.md, "When a job fails", has the argument for DRAIN and RESTART.
 *
 * PSNs are kept in 32 bits. A new incarnation starts at the next multiple of 65,536, so that the
 * low halves agree with the wire and a PSN before `start` is known to be of a former incarnation.
 * The window (64 packets) keeps what the gateware reports within 16 bits of what is known here.
 */

#include "mcp.h"
#include "registers.h"

#define REFUSALS	16	/* taken before others have their turn */
#define PERSISTENT	0x464c4f57u

struct flow flows[DIBBER_NODES];

/* Outlives a restart of this program: at a fixed place outside the image, never cleared. */
struct {
	uint32_t magic;
	uint8_t incarnation[DIBBER_NODES];
} mcp_persistent __attribute__((section(".persistent")));

static uint32_t work;			/* a bit for each flow that may go on */
static uint32_t unapplied;		/* a bit for each node whose `seen` is news */
static uint16_t seen[DIBBER_NODES];	/* ACKED as last read */
static uint32_t progress;		/* card's clock when any flow last moved */
static uint32_t turn;			/* node that is served first */

static RARE void refusal(void)
{
	uint32_t value = REG_READ(REFUSAL);
	uint32_t node = FIELD_GET(REFUSAL, NODE, value);
	uint32_t reason = FIELD_GET(REFUSAL, REASON, value);
	uint32_t tag = MCP_NO_TAG;

	REG_WRITE(REFUSAL_POP, 1);
	if (node < DIBBER_NODES) {
		struct flow *flow = &flows[node];
		uint32_t psn = flow->acked +
			       (int16_t)(FIELD_GET(REFUSAL, PSN, value) - flow->acked);

		/* At most a window of packets lies between the head and the one refused. */
		for (tag = flow->head; tag != MCP_NO_TAG; tag = transfers[tag].next)
			if (!psn_before(transfers[tag].first, flow->start) &&
			    psn - transfers[tag].first < transfers[tag].end - transfers[tag].first)
				break;
	}
	trace(TRACE_REFUSED, value, tag);
	if (tag == MCP_NO_TAG || transfers[tag].status != DIBBER_STATUS_OK)
		return;
	/* The reason is the peer's word, and may be any number. */
	if (reason < DIBBER_STATUS_REMOTE_BAD_KEY || reason > DIBBER_STATUS_REMOTE_BAD_HEADER)
		reason = DIBBER_STATUS_REMOTE_BAD_HEADER;
	transfers[tag].status = reason;
}

static uint32_t take_refusals(uint32_t limit)
{
	uint32_t done = 0;

	while (done < limit && (REG_READ(EVENTS) & EVENT(REFUSAL))) {
		refusal();
		done++;
	}
	return done;
}

/* Start a new flow to a node. Transfers that have PSNs are of a former incarnation from now on. */
static RARE void renew(uint32_t node, uint32_t step)
{
	struct flow *flow = &flows[node];

	flow->start = (flow->next + 0xffffu) & ~0xffffu;
	flow->next = flow->start;
	flow->acked = flow->start;
	flow->incarnation += step;
	flow->progress = REG_READ(CYCLES_LOW);
	mcp_persistent.incarnation[node] = flow->incarnation;
	REG_WRITE(FLOW_RESET, FIELD_PUT(FLOW_RESET, NODE, node) |
			      FIELD_PUT(FLOW_RESET, INCARNATION, flow->incarnation));
	trace(TRACE_INCARNATION, node, flow->incarnation);
	/*
	 * A refusal names no incarnation. Those that wait now find no transfer of the new flow,
	 * since it has none yet; later they might. The gateware's two queues of 16 hold fewer
	 * than this.
	 */
	take_refusals(3 * REFUSALS);
	unapplied &= ~(1u << node);
}

RARE void flow_boot(void)
{
	bool known = mcp_persistent.magic == PERSISTENT;

	for (uint32_t i = 0; i < DIBBER_NODES; i++) {
		flows[i].head = MCP_NO_TAG;
		flows[i].mark = MCP_NO_TAG;
		/* A peer may hold what this program used last before it was restarted. */
		flows[i].incarnation = known ? mcp_persistent.incarnation[i] : 0;
		renew(i, 1);
	}
	mcp_persistent.magic = PERSISTENT;
	REG_WRITE(TIMER, REG_READ(CYCLES_LOW) + MCP_TICK);
}

bool flow_accepts(uint32_t node, uint32_t packets)
{
	struct flow *flow = &flows[node];
	uint32_t in_flight = flow->next - flow->acked;

	/*
	 * Behind a gap no PSN may be taken for the missing one, which a difference of 65,536
	 * would be. A put that is longer than that goes alone.
	 */
	if (in_flight && in_flight + packets > MCP_PSNS)
		return false;
	return flow->state == FLOW_OPEN && transfer_has_space();
}

void flow_append(uint32_t node, uint32_t tag)
{
	struct flow *flow = &flows[node];

	transfers[tag].next = MCP_NO_TAG;
	if (flow->head == MCP_NO_TAG)
		flow->head = tag;
	else
		transfers[flow->tail].next = tag;
	flow->tail = tag;
}

/* The job of a former incarnation ended, or one that used other PSNs than were reserved. */
static RARE void job_failed(uint32_t tag, uint32_t done, uint32_t end)
{
	struct transfer *transfer = &transfers[tag];
	struct flow *flow = &flows[transfer->node];
	uint32_t status = FIELD_GET(JOB_DONE, STATUS, done);

	work |= 1u << transfer->node;
	if (psn_before(transfer->first, flow->start) || flow->state == FLOW_DRAIN) {
		/* Its packets are void. If it is to be sent again, it would only fail again. */
		if (transfer->status == DIBBER_STATUS_OK)
			transfer->status = status;
		return;
	}

	trace(TRACE_JOB_ERROR, done, end);
	/* Without an error, its owner changed the command after it was checked. */
	if (transfer->status == DIBBER_STATUS_OK)
		transfer->status = status ? status : DIBBER_STATUS_BAD_LENGTH;
	transfer->end = psn_before(end, transfer->first) ? transfer->first : end;
	if (transfer->next == flow->mark) {
		/* Nothing was queued behind it: the next one takes up where it stopped. */
		flow->next = transfer->end;
	} else {
		flow->state = FLOW_DRAIN;
		flow->mark = tag;
	}
}

void flow_job_done(uint32_t tag, uint32_t done)
{
	struct transfer *transfer = &transfers[tag];
	struct flow *flow = &flows[transfer->node];
	/* Ahead of what is acknowledged, or behind it when acknowledgements were read first. */
	uint32_t end = flow->acked + (int16_t)(FIELD_GET(JOB_DONE, PSN, done) - flow->acked);

	progress = REG_READ(CYCLES_LOW);
	flow->progress = progress;
	if (FIELD_GET(JOB_DONE, STATUS, done) || end != transfer->end ||
	    psn_before(transfer->first, flow->start))
		job_failed(tag, done, end);
	else if (!psn_before(flow->acked, end))
		work |= 1u << transfer->node;
}

/* A transfer of a former incarnation, at the head: whether it can be completed. */
static RARE bool is_over(struct flow *flow, struct transfer *transfer)
{
	/* While the engine has its job, slot and source memory are still read. */
	if (transfer->job && !flow->abandon)
		return false;
	if (transfer->status == DIBBER_STATUS_OK) {
		transfer->status = DIBBER_STATUS_TIMEOUT;
		mcp_shared.timeouts++;
	}
	return true;
}

/* Complete what has ended, oldest first. */
static inline uint32_t reap(uint32_t node)
{
	struct flow *flow = &flows[node];
	uint32_t done = 0;

	while (done < MCP_BATCH && flow->head != MCP_NO_TAG) {
		uint32_t tag = flow->head;
		struct transfer *transfer = &transfers[tag];

		if (flow->state == FLOW_RESTART && tag == flow->mark)
			break;
		if (psn_before(transfer->first, flow->start)) {
			if (!is_over(flow, transfer))
				break;
		} else if (transfer->job || psn_before(flow->acked, transfer->end)) {
			break;
		}
		flow->head = transfer->next;
		transfer_complete(tag);
		done++;
		if (flow->state == FLOW_DRAIN && tag == flow->mark) {
			/* All up to the gap has arrived, and nothing behind it was executed. */
			renew(node, 1);
			flow->state = FLOW_RESTART;
			flow->mark = flow->head;
		}
	}
	return done;
}

/* Send again what was behind a gap, in the order of its commands. */
static RARE uint32_t restart(uint32_t node)
{
	struct flow *flow = &flows[node];
	uint32_t done = 0;

	work |= 1u << node;

	while (done < MCP_BATCH && flow->state == FLOW_RESTART) {
		uint32_t tag = flow->mark;
		struct transfer *transfer = &transfers[tag];

		if (transfer->job)
			break;
		if (transfer->status != DIBBER_STATUS_OK) {
			/* It failed behind the gap: no packets, but its place in the order. */
			transfer->first = flow->next;
			transfer->end = flow->next;
		} else if (transfer_has_space()) {
			transfer_start(tag);
		} else {
			break;
		}
		flow->mark = transfer->next;
		if (flow->mark == MCP_NO_TAG)
			flow->state = FLOW_OPEN;
		done++;
	}
	return done;
}

static void apply(uint32_t node, uint32_t now)
{
	struct flow *flow = &flows[node];
	uint32_t moved = (uint16_t)(seen[node] + 1u - flow->acked);

	if (moved > flow->next - flow->acked) {
		trace(TRACE_ACK_UNKNOWN, node, seen[node]);
		return;
	}
	if (moved) {
		flow->acked += moved;
		flow->progress = now;
		progress = now;
		work |= 1u << node;
	}
}

APART uint32_t flow_ack_handler(void)
{
	uint32_t changed = REG_READ(ACKED_CHANGED);
	uint32_t now = REG_READ(CYCLES_LOW);
	uint32_t done = 0, node, mask, reaped;

	REG_WRITE(ACKED_CHANGED, changed);
	unapplied |= changed;
	for (mask = changed; mask; mask &= mask - 1) {
		node = lowest_bit(mask);
		seen[node] = REG_READ_AT(ACKED, node);
	}

	/* A refusal is there when ACKED covers it: known before its transfer completes. */
	done += take_refusals(REFUSALS);
	if (done == REFUSALS)
		return done;
	for (mask = unapplied; mask; mask &= mask - 1) {
		apply(lowest_bit(mask), now);
		done++;
	}
	unapplied = 0;

	if (work) {
		node = next_turn(work, turn);
		turn = (node + 1) % DIBBER_NODES;
		work &= ~(1u << node);
		reaped = reap(node);
		done += reaped;
		if (flows[node].state == FLOW_RESTART)
			done += restart(node);
		if (reaped == MCP_BATCH)
			work |= 1u << node;
		else
			flows[node].abandon = 0;
	}
	return done;
}

bool flow_has_work(void)
{
	return work || unapplied;
}

/* Nothing moved for too long: all that is outstanding to this node is lost. */
static RARE void expire(uint32_t node)
{
	struct flow *flow = &flows[node];

	trace(TRACE_TIMEOUT, node, flow->acked);
	if (psn_before(transfers[flow->head].first, flow->start) && flow->state == FLOW_OPEN) {
		/* It was lost before, and the engine kept its job: complete it without. */
		flow->abandon = 1;
	} else {
		flow->state = FLOW_OPEN;
		flow->mark = MCP_NO_TAG;
		/*
		 * Without any acknowledgement the peer may hold a newer incarnation, of before
		 * this card had power. Half way round, twice at most, is newer than any.
		 */
		renew(node, flow->acked == flow->start ? 127 : 1);
	}
	work |= 1u << node;
}

RARE uint32_t flow_timer_handler(void)
{
	uint32_t now = REG_READ(CYCLES_LOW);

	REG_WRITE(TIMER, now + MCP_TICK);
	for (uint32_t node = 0; node < DIBBER_NODES; node++) {
		struct flow *flow = &flows[node];
		uint32_t idle = now - flow->progress;

		if (flow->head == MCP_NO_TAG || (work >> node & 1))
			continue;
		/* A job that has not ended may wait in the engine behind those of other nodes. */
		if (transfers[flow->head].job && now - progress < idle)
			idle = now - progress;
		if (idle < MCP_TIMEOUT)
			continue;
		expire(node);
		/* And so may packets have: the others' clocks start again. */
		for (uint32_t i = 0; i < DIBBER_NODES; i++)
			flows[i].progress = now;
		return 1;
	}
	return 0;
}
