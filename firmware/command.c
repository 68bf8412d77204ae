/* This file is part of Dibber. */
/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Commands: endpoints take turns, and each command goes to who knows its opcode.
 *
 * A command that cannot go on now (no space in the engine, its flow is being queued again, its
 * completion queue has no room, its fence) stays in its slot, HEAD does not move, and the next turn
 * tries again: nothing is ever half taken.
 */

#include "mcp.h"
#include "registers.h"

struct endpoint endpoints[DIBBER_ENDPOINTS];
uint32_t command_node;

static struct endpoint *served;	/* who had its turn last, and its bit of COMMAND_PENDING */
static uint32_t served_bit;

RARE void command_boot(void)
{
	command_node = REG_READ(NODE_ID);
	served = &endpoints[0];
	for (uint32_t i = 0; i < DIBBER_ENDPOINTS; i++) {
		/* What was rung before this program ran is not for it. */
		command_move(i, REG_READ_AT(PRODUCER, i));
	}
}

inline void command_move(uint32_t index, uint32_t head)
{
	struct endpoint *endpoint = &endpoints[index];
	uint32_t slot = head % DIBBER_SLOTS;
	uint32_t tag = index * DIBBER_SLOTS + slot;

	REG_WRITE_AT(HEAD, index, head);
	endpoint->head = head;
	endpoint->tag = tag;
	endpoint->slot = DIBBER_MCP_SLOT_BASE + tag * DIBBER_SLOT_BYTES;
	endpoint->start = FIELD_PUT(EXPRESS_START, SLOT, slot) |
			  FIELD_PUT(EXPRESS_START, ENDPOINT, index);
	endpoint->transfer = &transfers[tag];
}

inline void command_take(uint32_t index)
{
	struct endpoint *endpoint = &endpoints[index];

	command_move(index, endpoint->head + 1);
	endpoint->outstanding++;
	endpoint->completions.promised++;
}

void command_complete(uint32_t index, uint32_t cookie, uint32_t length, uint32_t node,
		      uint32_t status, uint32_t key, bool solicit)
{
	struct endpoint *endpoint = &endpoints[index];

	endpoint->outstanding--;
	queue_write(&endpoint->completions, cookie, length,
		    node | DIBBER_ENTRY_COMPLETION << 16 | status << 24, key, solicit);
}

RARE void command_end(uint32_t tag, uint32_t first_word, uint32_t length, uint32_t node,
		      enum dibber_status status)
{
	uint32_t endpoint = tag / DIBBER_SLOTS;
	uint32_t cookie = COMMAND_WORD(tag, cookie);

	command_take(endpoint);
	trace(TRACE_COMMAND, tag, first_word);
	if (status == DIBBER_STATUS_OK)
		mcp_shared.commands++;
	else
		mcp_shared.refused++;
	trace(TRACE_COMPLETION, endpoint << 8 | status, cookie);
	command_complete(endpoint, cookie, length, node & 0xffff, status, 0,
			 first_word >> 8 & DIBBER_FLAG_SOLICIT);
}

/* The administrator's commands, which end at once except ENDPOINT_CLOSE. */
static RARE bool administrate(uint32_t tag, uint32_t first_word)
{
	uint32_t cookie = ADMIN_WORD(tag, cookie);
	enum dibber_status status = DIBBER_STATUS_OK;

	command_take(0);
	trace(TRACE_COMMAND, tag, first_word);
	if (admin_command(tag, first_word, &status))
		command_complete(0, cookie, 0, 0, status, 0,
				 first_word >> 8 & DIBBER_FLAG_SOLICIT);
	if (status == DIBBER_STATUS_OK)
		mcp_shared.commands++;
	else
		mcp_shared.refused++;
	return true;
}

/* NOP, and what nobody knows. */
static RARE bool command_other(uint32_t tag, uint32_t first_word)
{
	enum dibber_status status = DIBBER_STATUS_OK;

	if ((first_word & 0xff) != DIBBER_OPCODE_NOP)
		status = DIBBER_STATUS_BAD_OPCODE;
	else if (first_word >> 8 & 0xff & ~(DIBBER_FLAG_SOLICIT | DIBBER_FLAG_FENCE))
		status = DIBBER_STATUS_BAD_FLAGS;
	command_end(tag, first_word, 0, 0, status);
	return true;
}

/* What is not an endpoint's that is open. */
static RARE bool command_elsewhere(struct endpoint *endpoint, uint32_t first_word)
{
	uint32_t tag = endpoint->tag, index = tag / DIBBER_SLOTS;

	if (endpoint->state == ENDPOINT_CLOSED) {
		mcp_shared.refused++;
		command_move(index, REG_READ_AT(PRODUCER, index));
		return true;
	}
	if (endpoint->state == ENDPOINT_CLOSING || !queue_has_room(&endpoint->completions))
		return false;
	if ((first_word & 0xff) >= DIBBER_OPCODE_ENDPOINT_OPEN)
		return administrate(tag, first_word);
	return command_other(tag, first_word);
}

/* What is not the short way: the fence, and every other opcode. */
static APART uint32_t command_common(uint32_t tag, uint32_t first_word)
{
	if ((first_word >> 8 & DIBBER_FLAG_FENCE) && endpoints[tag / DIBBER_SLOTS].outstanding)
		return false;
	switch (first_word & 0xff) {
	case DIBBER_OPCODE_PUT:
		return put_command(tag, first_word);
	case DIBBER_OPCODE_PUT_INLINE:
		return express_command(tag, first_word);
	case DIBBER_OPCODE_GET:
		return get_command(tag, first_word);
	case DIBBER_OPCODE_SEND:
		return send_command(tag, first_word);
	case DIBBER_OPCODE_RECEIVE:
		return receive_command(tag, first_word);
	case DIBBER_OPCODE_FETCH_ADD:
	case DIBBER_OPCODE_SWAP:
	case DIBBER_OPCODE_COMPARE_SWAP:
	case DIBBER_OPCODE_MASKED_SWAP:
		return atomic_command(tag, first_word);
	default:
		return command_other(tag, first_word);
	}
}

/* The slot is in use when the host rings for more commands than there are slots. */
static RARE uint32_t command_hold(uint32_t tag, uint32_t first_word)
{
	if (!transfer_is_free(tag) || !queue_look(&endpoints[tag / DIBBER_SLOTS].completions))
		return 0;
	return command_common(tag, first_word);
}

/* Go on with an endpoint's next command; plain inline puts go to `put`. How many were taken. */
static ALWAYS uint32_t command_next(struct endpoint *endpoint,
				    uint32_t (*put)(struct endpoint *, uint32_t))
{
	uint32_t first_word = bus_read(endpoint->slot);

	if (endpoint->state != ENDPOINT_OPENED)
		return command_elsewhere(endpoint, first_word);
	if (endpoint->transfer->life || endpoint->completions.promised == endpoint->completions.limit)
		return command_hold(endpoint->tag, first_word);
	if ((first_word & EXPRESS_PLAIN_MASK) == EXPRESS_PLAIN)
		return put(endpoint, first_word);
	return command_common(endpoint->tag, first_word);
}

/* The first one goes the short way, those that it leaves behind many at a time. */
static APART uint32_t command_many(struct endpoint *endpoint)
{
	return command_next(endpoint, express_puts);
}

/* Several endpoints, or one that has to wait. */
static APART uint32_t command_turns(uint32_t pending, uint32_t done)
{
	uint32_t index = served->tag / DIBBER_SLOTS, held = 0;

	for (uint32_t i = 0; pending && i < MCP_BATCH && done < MCP_BATCH; i++) {
		uint32_t taken;

		index = next_turn(pending, index + 1);
		served = &endpoints[index];
		served_bit = 1u << index;
		taken = command_many(served);
		done += taken;
		if (!taken)
			held |= served_bit;
		pending = REG_READ(COMMAND_PENDING) & ~held;
	}
	return done;
}

/*
 * COMMAND_PENDING follows a write of HEAD by two cycles; what comes after that write in the taking of
 * any command lasts longer, so that none is seen twice.
 */
APART uint32_t command_handler(void)
{
	uint32_t pending = REG_READ(COMMAND_PENDING);
	uint32_t done = 0;

	/* Usually the endpoint that was served last is the only one. */
	if (pending == served_bit) {
		done = command_next(served, express_put);
		pending = REG_READ(COMMAND_PENDING);
	}
	return pending ? command_turns(pending, done) : done;
}
