/* This file is part of Dibber. */
/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The EXPRESS lane: packets that are made from a slot alone, inline puts and messages. Each has one
 * PSN, and the ring of a flow says by PSN which slot it was: what is acknowledged ends, what is not
 * is queued again. Nothing here can fail half way.
 */

#include "mcp.h"

static uint16_t ring[DIBBER_NODES][DIBBER_WINDOW];	/* tags by PSN */
static uint32_t space;	/* packets that can be queued for certain; by now there may be more */

_Static_assert((DIBBER_WINDOW & (DIBBER_WINDOW - 1)) == 0, "the ring is masked");

/* The lane is number 0, so that a node's number is that of its flow. */
_Static_assert(MCP_EXPRESS == 0, "a node's flow is found by its number");

static inline bool has_space(void)
{
	if (!space)
		space = REG_READ(EXPRESS_SPACE);
	return space;
}

/* The flow goes on, or has room again. */
static void open_flow(struct flow *flow)
{
	flow->state = FLOW_OPEN;
	flow->room = DIBBER_WINDOW - (flow->next - flow->ended);
}

/* A packet takes its PSN and its place in the ring. */
static ALWAYS void append(struct flow *flow, uint32_t node, uint32_t tag)
{
	ring[node][flow->next++ % DIBBER_WINDOW] = tag;
	flow->room--;
}

/* EXPRESS_START of an inline put, but for the epoch. */
static inline uint32_t start_of(uint32_t endpoint, uint32_t tag, uint32_t length)
{
	return FIELD_PUT(EXPRESS_START, SLOT, tag % DIBBER_SLOTS) |
	       FIELD_PUT(EXPRESS_START, ENDPOINT, endpoint) |
	       FIELD_PUT(EXPRESS_START, LENGTH, length);
}

static void queue(struct flow *flow, uint32_t psn, uint32_t tag)
{
	struct transfer *transfer = &transfers[tag];
	uint32_t start = transfer->kind == TRANSFER_INLINE ? start_of(tag / DIBBER_SLOTS, tag, transfer->length)
							   : transfer->start;

	REG_WRITE(EXPRESS_FLOW, flow->place | (psn & 0xffff));
	REG_WRITE(EXPRESS_MESSAGE, transfer->word);
	REG_WRITE(EXPRESS_START, start | FIELD_PUT(EXPRESS_START, EPOCH, flow->epoch));
	space--;
}

bool express_accepts(uint32_t node)
{
	fast_claim(node);
	return flows[node].room && has_space();
}

void express_submit(uint32_t tag)
{
	uint32_t node = transfers[tag].node;

	queue(&flows[node], flows[node].next, tag);
	append(&flows[node], node, tag);
}

/* `life` of an inline put that was just queued. */
#define TRANSFER_INLINE_SENT	(TRANSFER_INLINE << 16 | TRANSFER_SENT << 24)

_Static_assert(offsetof(struct transfer, kind) == offsetof(struct transfer, life) + 2 &&
	       offsetof(struct transfer, state) == offsetof(struct transfer, life) + 3,
	       "the order of the bytes of `life`");

/* Inline puts ---------------------------------------------------------------------------------- */

/* What the packet waits for comes first, then what this program must remember of it. */
static ALWAYS void put(uint32_t endpoint, uint32_t tag, uint32_t node, uint32_t length,
		       uint32_t first_word)
{
	struct transfer *transfer = &transfers[tag];
	struct flow *flow = &flows[node];

	REG_WRITE(EXPRESS_FLOW, flow->place | (flow->next & 0xffff));
	REG_WRITE(EXPRESS_START, start_of(endpoint, tag, length) |
				 FIELD_PUT(EXPRESS_START, EPOCH, flow->epoch));
	REG_WRITE(COMMAND_TAKE, endpoint);
	IN_ORDER();
	space--;
	append(flow, node, tag);
	transfer->node = node;
	transfer->life = TRANSFER_INLINE_SENT;
	transfer->length = length;
	transfer->cookie = COMMAND_WORD(tag, cookie);
	transfer->flags = first_word >> 8;
}

/* So many were taken. */
static ALWAYS uint32_t count(uint32_t endpoint, uint32_t done)
{
	endpoints[endpoint].outstanding += done;
	mcp_shared.commands += done;
	return done;
}

/* An endpoint's next command, if it is a plain inline put that can be sent now; whether it was taken. */
static ALWAYS bool put_next(uint32_t endpoint)
{
	uint32_t tag = command_tag(endpoint);
	uint32_t first_word = COMMAND_WORD(tag, opcode);
	uint32_t node = COMMAND_WORD(tag, node);	/* and reserved0, which makes it too large */
	uint32_t length = COMMAND_WORD(tag, length);
	uint32_t offset_high = slot_word(tag, offsetof(struct dibber_inline_command, offset) + 4);

	if ((first_word & EXPRESS_PLAIN_MASK) != EXPRESS_PLAIN || node >= DIBBER_NODES ||
	    length > DIBBER_INLINE_BYTES || offset_high >> 16)
		return false;
	if (!flows[node].room || !has_space())
		return false;
	put(endpoint, tag, node, length, first_word);
	return true;
}

/* Those that follow the first one. */
static APART uint32_t put_more(uint32_t endpoint, uint32_t pending)
{
	uint32_t done = 1;

	while (put_next(endpoint) && ++done < MCP_BATCH && REG_READ(COMMAND_PENDING) == pending)
		;
	return count(endpoint, done);
}

inline uint32_t express_puts(uint32_t endpoint, uint32_t pending)
{
	if (!put_next(endpoint))
		return command_next(endpoint);
	if (REG_READ(COMMAND_PENDING) == pending)
		return put_more(endpoint, pending);
	return count(endpoint, 1);
}

static enum dibber_status check(uint32_t tag, uint32_t first_word, uint32_t node, uint32_t length)
{
	uint32_t flags = first_word >> 8 & 0xff;

	if (flags & ~(DIBBER_FLAG_NOTICE | DIBBER_FLAG_INTERRUPT | DIBBER_FLAG_SOLICIT | DIBBER_FLAG_FENCE))
		return DIBBER_STATUS_BAD_FLAGS;
	if ((flags & (DIBBER_FLAG_NOTICE | DIBBER_FLAG_INTERRUPT)) == DIBBER_FLAG_INTERRUPT)
		return DIBBER_STATUS_BAD_FLAGS;
	if (first_word >> 16 & 0xff)
		return DIBBER_STATUS_BAD_LEVELS;
	if (node >= DIBBER_NODES || node == command_node)
		return DIBBER_STATUS_BAD_NODE;
	if (length > DIBBER_INLINE_BYTES)
		return DIBBER_STATUS_BAD_LENGTH;
	if (slot_word(tag, offsetof(struct dibber_inline_command, offset) + 4) >> 16)
		return DIBBER_STATUS_REMOTE_BOUNDS;
	return DIBBER_STATUS_OK;
}

APART bool express_command(uint32_t tag, uint32_t first_word)
{
	uint32_t node = COMMAND_WORD(tag, node);	/* and reserved0, which makes it too large */
	uint32_t length = COMMAND_WORD(tag, length);
	enum dibber_status status = check(tag, first_word, node, length);

	if (status != DIBBER_STATUS_OK) {
		command_end(tag, first_word, length, node, status);
		return true;
	}
	if (!express_accepts(node))
		return false;
	put(tag / DIBBER_SLOTS, tag, node, length, first_word);
	count(tag / DIBBER_SLOTS, 1);
	return true;
}

/* The fast path's ------------------------------------------------------------------------------ */

void express_adopt(uint32_t tag, uint32_t end)
{
	ring[transfers[tag].node][(end - 1) % DIBBER_WINDOW] = tag;
}

void express_claim(uint32_t node)
{
	flows[node].ended = flows[node].acked;
	open_flow(&flows[node]);
}

/* Acknowledgement, refusal, replay ------------------------------------------------------------- */

RARE uint32_t express_active(void)
{
	uint32_t active = 0;

	for (uint32_t node = 0; node < DIBBER_NODES; node++)
		if (flows[node].ended != flows[node].next)
			active |= 1u << node;
	return active;
}

RARE uint32_t express_find(uint32_t number, uint32_t psn)
{
	struct flow *flow = &flows[number];

	if (psn - flow->ended >= flow->next - flow->ended)
		return MCP_NO_TAG;
	return ring[number][psn % DIBBER_WINDOW];
}

RARE void express_rewind(uint32_t number)
{
	struct flow *flow = &flows[number];

	flow_rewind(number);
	flow->state = FLOW_REQUEUE;
	flow->room = 0;
	flow->cursor = flow->acked;
	flow_work |= 1u << number;
}

static RARE void requeue(uint32_t number)
{
	struct flow *flow = &flows[number];

	/* What was on the link already may have arrived after all. */
	if (psn_before(flow->cursor, flow->acked))
		flow->cursor = flow->acked;
	while (flow->cursor != flow->next && has_space()) {
		queue(flow, flow->cursor, ring[number][flow->cursor % DIBBER_WINDOW]);
		flow->cursor++;
	}
	if (flow->cursor == flow->next)
		open_flow(flow);
	else
		flow_work |= 1u << number;
}

RARE void express_expire(uint32_t number)
{
	struct flow *flow = &flows[number];

	for (uint32_t psn = flow->acked; psn != flow->next; psn++) {
		struct transfer *transfer = &transfers[ring[number][psn % DIBBER_WINDOW]];

		/* An answer proves that the request arrived, whoever lost its acknowledgement. */
		if (transfer->status == DIBBER_STATUS_OK && transfer->busy != BUSY_REQUEST) {
			transfer->status = DIBBER_STATUS_TIMEOUT;
			mcp_shared.timeouts++;
		}
	}
	send_lost |= 1u << number;
	/* As in bulk_expire. From here on nothing reads the slots of the former incarnation. */
	flow_incarnate(number, flow->acked == flow->start ? 127 : 1);
	flow->acked = flow->next;
	flow->state = FLOW_OVER;
	flow->room = 0;
	flow->idle = 0;
	flow_work |= 1u << number;
}

static RARE void step_on(uint32_t number)
{
	struct flow *flow = &flows[number];

	if (flow->state == FLOW_REQUEUE) {
		requeue(number);
	} else if (flow->state == FLOW_OVER && flow->ended == flow->next) {
		flow_renumber(flow);
		fast_arm(number);
	}
}

static ALWAYS void end_put(uint32_t tag)
{
	struct transfer *transfer = &transfers[tag];
	uint32_t what = command_what(transfer->node, transfer->status);

	transfer->life = 0;
	endpoints[tag / DIBBER_SLOTS].outstanding--;
	queue_post(transfer->cookie, transfer->length, what, 0,
		   command_post(tag, transfer->flags & DIBBER_FLAG_SOLICIT, true));
}

APART uint32_t express_step(uint32_t number)
{
	struct flow *flow = &flows[number];
	uint32_t done = 0;
	bool put = false;

	while (flow->ended != flow->acked) {
		uint32_t tag = ring[number][flow->ended % DIBBER_WINDOW];

		if (done == MCP_BATCH) {
			flow_work |= 1u << number;
			break;
		}
		flow->ended++;
		put = transfers[tag].kind == TRANSFER_INLINE;
		if (put)
			end_put(tag);
		else
			transfer_end_other(tag);
		done++;
	}
	if (flow->state != FLOW_OPEN) {
		step_on(number);
		return done;
	}
	flow->room = DIBBER_WINDOW - (flow->next - flow->ended);
	if (put && flow->ended == flow->next)
		fast_rest(number);
	return done;
}
