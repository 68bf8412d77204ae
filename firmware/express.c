/* This file is part of Dibber. */
/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The EXPRESS lane: packets that are made from a slot alone, inline puts and messages. Each has one
 * PSN, and the ring of a flow says by PSN which slot it was: what is acknowledged ends, what is not
 * is queued again. Nothing here can fail half way.
 */

#include "mcp.h"
#include "registers.h"

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
static inline void append(struct flow *flow, uint32_t node, uint32_t tag)
{
	ring[node][flow->next++ % DIBBER_WINDOW] = tag;
	flow->room--;
	flow_active |= 1u << node;
}

static void queue(struct flow *flow, uint32_t psn, uint32_t tag)
{
	struct transfer *transfer = &transfers[tag];

	REG_WRITE(EXPRESS_FLOW, flow->place | (psn & 0xffff));
	REG_WRITE(EXPRESS_MESSAGE, transfer->word);
	REG_WRITE(EXPRESS_START, transfer->start | FIELD_PUT(EXPRESS_START, EPOCH, flow->epoch));
	space--;
}

void express_boot(void)
{
	for (uint32_t node = 0; node < DIBBER_NODES; node++)
		if (flows[node].state == FLOW_OPEN)
			open_flow(&flows[node]);
}

bool express_accepts(uint32_t node)
{
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

/* One that cannot be sent now, or never; whether it was taken off. */
static RARE bool hold(uint32_t tag, uint32_t first_word)
{
	uint32_t node = COMMAND_WORD(tag, node);
	uint32_t length = COMMAND_WORD(tag, length);
	enum dibber_status status;

	if (node >= DIBBER_NODES || node == command_node)
		status = DIBBER_STATUS_BAD_NODE;
	else if (length > DIBBER_INLINE_BYTES)
		status = DIBBER_STATUS_BAD_LENGTH;
	else if (slot_word(tag, offsetof(struct dibber_inline_command, offset) + 4) >> 16)
		status = DIBBER_STATUS_REMOTE_BOUNDS;
	else
		return false;
	command_end(tag, first_word, length, node, status);
	return true;
}

/* Send what lies in the slot at this address, if it can be sent now. */
static ALWAYS bool put(uint32_t slot, uint32_t start, struct transfer *transfer, uint32_t first_word)
{
	uint32_t node = bus_read(slot + offsetof(struct dibber_command, node));
	uint32_t length = bus_read(slot + offsetof(struct dibber_command, length));
	uint32_t offset_high = bus_read(slot + offsetof(struct dibber_inline_command, offset) + 4);
	struct flow *flow;

	/* With the node stands reserved0, which makes it too large. */
	if (node >= DIBBER_NODES || length > DIBBER_INLINE_BYTES || offset_high >> 16)
		return false;
	flow = &flows[node];
	if (!flow->room || !has_space())
		return false;

	/* First what the packet waits for, then what this program must remember of it. */
	REG_WRITE(EXPRESS_FLOW, flow->place | (flow->next & 0xffff));
	start |= FIELD_PUT(EXPRESS_START, LENGTH, length);
	REG_WRITE(EXPRESS_START, start | FIELD_PUT(EXPRESS_START, EPOCH, flow->epoch));
	space--;

	append(flow, node, transfer - transfers);
	transfer->start = start;
	transfer->node = node;
	transfer->life = TRANSFER_INLINE_SENT;
	transfer->length = length;
	transfer->cookie = bus_read(slot + offsetof(struct dibber_command, cookie));
	transfer->flags = first_word >> 8;
	transfer->key = 0;
	return true;
}

static inline void take(struct endpoint *endpoint, uint32_t count)
{
	command_move(endpoint->tag / DIBBER_SLOTS, endpoint->head + count);
	endpoint->outstanding += count;
	endpoint->completions.promised += count;
	mcp_shared.commands += count;
}

APART uint32_t express_put(struct endpoint *endpoint, uint32_t first_word)
{
	if (!put(endpoint->slot, endpoint->start, endpoint->transfer, first_word))
		return hold(endpoint->tag, first_word);
	take(endpoint, 1);
	return 1;
}

APART uint32_t express_puts(struct endpoint *endpoint, uint32_t first_word)
{
	uint32_t rung = REG_READ_AT(PRODUCER, endpoint->tag / DIBBER_SLOTS);
	uint32_t slot = endpoint->slot, start = endpoint->start;
	struct transfer *transfer = endpoint->transfer;
	uint32_t done = 0;

	while (put(slot, start, transfer, first_word)) {
		uint32_t head = endpoint->head + ++done;

		/* The next slot; behind the last one comes the first. */
		slot += DIBBER_SLOT_BYTES;
		start += FIELD_PUT(EXPRESS_START, SLOT, 1);
		transfer++;
		if (head % DIBBER_SLOTS == 0) {
			slot -= DIBBER_SLOTS * DIBBER_SLOT_BYTES;
			start -= FIELD_PUT(EXPRESS_START, SLOT, DIBBER_SLOTS);
			transfer -= DIBBER_SLOTS;
		}
		if (done == MCP_BATCH || head == rung || transfer->life ||
		    endpoint->completions.promised + done == endpoint->completions.limit)
			break;
		first_word = bus_read(slot);
		if ((first_word & EXPRESS_PLAIN_MASK) != EXPRESS_PLAIN)
			break;
	}
	if (!done)
		return hold(endpoint->tag, first_word);
	take(endpoint, done);
	return done;
}

RARE uint32_t express_command(uint32_t tag, uint32_t first_word)
{
	uint32_t flags = first_word >> 8 & 0xff;
	enum dibber_status status;

	if ((flags & ~(DIBBER_FLAG_NOTICE | DIBBER_FLAG_INTERRUPT | DIBBER_FLAG_SOLICIT |
		       DIBBER_FLAG_FENCE)) ||
	    (flags & (DIBBER_FLAG_NOTICE | DIBBER_FLAG_INTERRUPT)) == DIBBER_FLAG_INTERRUPT)
		status = DIBBER_STATUS_BAD_FLAGS;
	else if (first_word >> 16 & 0xff)
		status = DIBBER_STATUS_BAD_LEVELS;
	else
		return express_put(&endpoints[tag / DIBBER_SLOTS], first_word);
	command_end(tag, first_word, COMMAND_WORD(tag, length), COMMAND_WORD(tag, node), status);
	return 1;
}

/* Acknowledgement, refusal, replay ------------------------------------------------------------- */

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
		open_flow(flow);
	}
}

APART uint32_t express_step(uint32_t number)
{
	struct flow *flow = &flows[number];
	uint32_t done = 0;

	while (flow->ended != flow->acked) {
		if (done == MCP_BATCH) {
			flow_work |= 1u << number;
			break;
		}
		transfer_end(ring[number][flow->ended++ % DIBBER_WINDOW]);
		done++;
	}
	if (flow->state == FLOW_OPEN)
		flow->room = DIBBER_WINDOW - (flow->next - flow->ended);
	else
		step_on(number);
	return done;
}
