/* Flows of both lanes: packet sequence numbers, acknowledgements, refusals and incarnations.
 * The lanes are in bulk.c and express.c. Replay is in replay.c.
 *
 * PSNs have 32 bits here. A new incarnation starts at the next multiple of 65,536. So the low
 * halves agree with the wire, and a PSN before `start` belongs to a former incarnation. The
 * window of 64 packets keeps what the gateware reports within 16 bits of what is known here.
 *
 * The number of an incarnation here tells waiting jobs and packets from former ones. The
 * gateware counts the incarnations that packets carry on the link. No fault and no restart of
 * this program changes that count.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "flows/flow.h"

#include "command.h"
#include "flows/bulk.h"
#include "flows/express.h"
#include "flows/fast.h"
#include "trace.h"
#include "transfer.h"

#define REFUSALS 48 /* more than the gateware's two queues of 16 hold */
#define EPOCHS	 (DIBBER_MCP_FLOW_REWIND_EPOCH_MASK + 1)

struct flow flows[MCP_FLOWS];
struct set flow_work;
struct set flow_active;
struct set flow_lost;
struct set flow_restart, flow_restart_begun;
uint16_t flow_restart_psn[MCP_FLOWS];

static uint32_t served; /* flow of the last turn */

_Static_assert(!DIBBER_MCP_LEFT_PSN_SHIFT && !DIBBER_MCP_ACKED_PSN_SHIFT,
	       "both are compared as the low half");

_Static_assert(DIBBER_MCP_JOB_FLOW_PSN_SHIFT == DIBBER_MCP_EXPRESS_FLOW_PSN_SHIFT &&
		       DIBBER_MCP_JOB_FLOW_NODE_SHIFT == DIBBER_MCP_EXPRESS_FLOW_NODE_SHIFT &&
		       DIBBER_MCP_JOB_FLOW_INCARNATION_SHIFT ==
			       DIBBER_MCP_EXPRESS_FLOW_INCARNATION_SHIFT,
	       "a flow's place has one form");

/* Refusals ------------------------------------------------------------------------------------- */

static RARE void restart_heard(uint32_t number, uint32_t psn)
{
	flow_restart_psn[number] = psn;
	set_add(&flow_restart, number);
	set_remove(&flow_restart_begun, number);
}

static RARE void refusal(void)
{
	uint32_t value = REG_READ(REFUSAL);
	uint32_t number = FIELD_GET(REFUSAL, FLOW, value);
	uint32_t reason = FIELD_GET(REFUSAL, REASON, value);
	uint32_t tag = MCP_NO_TAG;
	uint8_t *status = NULL;

	mcp_alive();
	if (number < MCP_FLOWS) {
		struct flow *flow = &flows[number];
		uint32_t psn;

		/* No put of the fast path ends while a refusal waits, because it may refuse
		 * that put. */
		fast_claim(number);
		psn = flow->acked + (int16_t)(FIELD_GET(REFUSAL, PSN, value) - flow->acked);
		tag = number < MCP_BULK ? express_find(number, psn) : bulk_find(number, psn);
		if (tag != MCP_NO_TAG)
			status = number < MCP_BULK ? express_status(number, psn)
						   : &transfers[tag].status;
	}
	REG_WRITE(REFUSAL_POP, 1);
	trace(DIBBER_TRACE_REFUSED, value, tag);
	if (reason == DIBBER_STATUS_PEER_RESTARTED && number < MCP_FLOWS) {
		restart_heard(number, FIELD_GET(REFUSAL, PSN, value));
		return;
	}
	if (!status || *status != DIBBER_STATUS_OK)
		return;
	/* The reason comes from the peer and may be any number. */
	if (reason != DIBBER_STATUS_REMOTE_READ_ERROR && reason != DIBBER_STATUS_REMOTE_BAD_LIST &&
	    (reason < DIBBER_STATUS_REMOTE_BAD_KEY || reason > DIBBER_STATUS_REMOTE_BAD_HEADER))
		reason = DIBBER_STATUS_REMOTE_BAD_HEADER;
	*status = reason;
}

static RARE uint32_t take_refusals(void)
{
	uint32_t done = 0;

	while (done < REFUSALS && (REG_READ(EVENTS) & EVENT(REFUSAL))) {
		refusal();
		done++;
	}
	mcp_alive();
	return done;
}

/* Incarnations and epochs ---------------------------------------------------------------------- */

void flow_rewind(uint32_t number)
{
	struct flow *flow = &flows[number];
	bool left = FIELD_GET(LEFT, VALID, REG_READ_AT(LEFT, number));

	flow->epoch = (flow->epoch + 1) % EPOCHS;
	/* If no packet has left, the next NAK is not about a gap. It says that the target answered
	 * a question late, and it must start a replay. */
	flow->rewound = left ? flow->acked : flow->acked - 1;
	flow->doubt = flow->next;
	flow->order = FIELD_PUT(PUT_START, INCARNATION, flow->incarnation) |
		      FIELD_PUT(PUT_START, EPOCH, flow->epoch);
	REG_WRITE(FLOW_REWIND, FIELD_PUT(FLOW_REWIND, FLOW, number) |
				       FIELD_PUT(FLOW_REWIND, EPOCH, flow->epoch));
}

void flow_incarnate(uint32_t number)
{
	struct flow *flow = &flows[number];

	flow->incarnation++;
	flow->place = FIELD_PUT(JOB_FLOW, INCARNATION, flow->incarnation) |
		      FIELD_PUT(JOB_FLOW, NODE, number % DIBBER_NODES);
	REG_WRITE(FLOW_RESET, FIELD_PUT(FLOW_RESET, FLOW, number) |
				      FIELD_PUT(FLOW_RESET, INCARNATION, flow->incarnation));
	/* The reset set epoch 0, and the engine may have jobs of epoch 0. The next epoch ends
	 * them. */
	flow_rewind(number);
	trace(DIBBER_TRACE_INCARNATION, number, flow->incarnation);
	/* A refusal names no incarnation. One that waits now finds no transfer, because the
	 * new flow has none yet. Later it might find a wrong one. */
	take_refusals();
	/* A flow that restart.c has begun with stays. */
	if (!set_has(&flow_restart_begun, number))
		set_remove(&flow_restart, number);
}

void flow_renumber(struct flow *flow)
{
	flow->start = (flow->next + 0xffffu) & ~0xffffu;
	flow->next = flow->start;
	flow->acked = flow->start;
	flow->ended = flow->start;
	flow->limit = flow->start;
	/* The first NAK of an incarnation always counts. It may mean that the peer answered
	 * late and dropped the first packets. */
	flow->rewound = flow->start - 1;
	flow->doubt = flow->start;
	flow_works(flow);
	flow->replays = 0;
}

RARE void flow_boot(void)
{
	for (uint32_t i = 0; i < MCP_FLOWS; i++) {
		mcp_alive();
		flows[i].head = MCP_NO_TAG;
		flows[i].mark = MCP_NO_TAG;
		flow_incarnate(i);
		flow_renumber(&flows[i]);
	}
	flows[MCP_EXPRESS + command_node % DIBBER_NODES].state = FLOW_SELF;
	flows[MCP_BULK + command_node % DIBBER_NODES].state = FLOW_SELF;
	fast_boot();
	REG_WRITE(TIMER, REG_READ(CYCLES_LOW) + mcp_tick);
}

/* Acknowledgements ----------------------------------------------------------------------------- */

static RARE void unknown(uint32_t number, uint32_t acked)
{
	/* An acknowledgement of the time before the flow was armed may be reported late. */
	if (flows[number].state == FLOW_ARMED)
		return;
	trace(DIBBER_TRACE_ACK_UNKNOWN, number, acked);
}

static inline void advance(uint32_t number, uint32_t acked)
{
	struct flow *flow = &flows[number];
	uint32_t moved = (uint16_t)(acked + 1 - flow->acked);

	if (moved > flow->next - flow->acked || flow->state == FLOW_OVER)
		unknown(number, acked);
	else
		flow->acked += moved;
}

/*
 * A packet's header leaves while its payload is still read from host memory. So a flow waits for
 * an acknowledgement only when a packet has left completely. A packet that the gateware dropped,
 * because the target did not answer its question, counts as lost on the link.
 */
bool flow_waits(uint32_t number)
{
	uint32_t left = REG_READ_AT(LEFT, number);
	uint32_t acked = flows[number].acked - 1;

	if (flows[number].state == FLOW_ARMED)
		acked = REG_READ_AT(ACKED, number);
	return FIELD_GET(LEFT, VAIN, left) ||
	       (FIELD_GET(LEFT, VALID, left) && (int16_t)(left - acked) > 0);
}

void flow_advance(uint32_t number)
{
	advance(number, FIELD_GET(ACKED, PSN, REG_READ_AT(ACKED, number)));
}

static inline void acknowledge(uint32_t number)
{
	uint32_t acked = REG_READ_AT(ACKED, number);

	/* The gateware sets ACKED.refusal with the PSN. So the refusal is known before its
	 * transfer completes. */
	if (FIELD_GET(ACKED, REFUSAL, acked))
		take_refusals();
	advance(number, FIELD_GET(ACKED, PSN, acked));
}

void flow_acknowledge(uint32_t number)
{
	acknowledge(number);
}

/* Whether an acknowledgement that was just taken over needs a step of its lane. A long put has
 * many acknowledgements before its end. */
static ALWAYS bool is_wanted(uint32_t number)
{
	return number < MCP_BULK || bulk_may_end(number);
}

/*
 * Each flow that may go on has its turn, and asks for another one if it cannot finish now.
 * Returns the flow whose turn it is, or MCP_FLOWS. `done` says whether anything was done so far.
 */
static APART uint32_t take_turns(struct set *changed, uint32_t *done)
{
	uint32_t number;

	*done = set_any(changed) ? 1 : take_refusals();
	while (set_take(changed, &number)) {
		acknowledge(number);
		if (is_wanted(number))
			set_add(&flow_work, number);
	}
	if (!set_any(&flow_work))
		return MCP_FLOWS;
	number = set_next(&flow_work, (served + 1) % MCP_FLOWS);
	set_remove(&flow_work, number);
	return number;
}

/* Whether no flow but `number` may go on or has an acknowledgement. */
static ALWAYS bool is_alone(const struct set *changed, uint32_t number)
{
	uint32_t others = 0;

	for (uint32_t i = 0; i < SET_WORDS; i++)
		others |= (changed->word[i] | flow_work.word[i]) ^
			  (i == set_word(number) ? set_bit(number) : 0);
	return !others;
}

uint32_t flow_ack_handler(void)
{
	struct set changed;
	uint32_t number = served, done;

	SET_READ(ACKED_CHANGED, changed);
	done = set_any(&changed) != 0;
	SET_WRITE(ACKED_CHANGED, changed);
	/* Usually the flow of the last turn is the only one. */
	if (!is_alone(&changed, number)) {
		number = take_turns(&changed, &done);
		if (number == MCP_FLOWS)
			return done;
		served = number;
	} else {
		uint32_t work = set_has(&flow_work, number);

		set_remove(&flow_work, number);
		if (done)
			acknowledge(number);
		else
			done = take_refusals();
		if (!work && !is_wanted(number))
			return done;
	}
	return done + (number < MCP_BULK ? express_step(number) : bulk_step(number));
}
