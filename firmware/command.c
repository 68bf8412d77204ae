/* Commands: endpoints take turns, and each command goes to who knows its opcode. The gateware shows
 * an endpoint's next command when its slot is free and its completion has room (COMMAND_PENDING).
 * Inline puts in which nothing is wrong come another way (express.c).
 *
 * A command that cannot go on now (no space in the engine, its flow is being queued again, its
 * fence) stays in its slot, and the next turn tries again: nothing is ever half taken.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "barrier.h"
#include "mcp.h"

struct endpoint endpoints[DIBBER_ENDPOINTS];
uint32_t command_node;

/* Who had its turn last, and its bit of COMMAND_PENDING; 0 when it is not open. */
static uint32_t served;
static uint32_t served_bit;

static uint32_t allowed; /* a bit for each endpoint that is open */

RARE void command_boot(void)
{
	command_node = REG_READ(NODE_ID);
	/* What was rung before this program ran is not for it. */
	for (uint32_t i = 0; i < DIBBER_ENDPOINTS; i++)
		REG_WRITE(COMMAND_SKIP, i);
}

void command_allow(uint32_t index)
{
	endpoints[index].state = ENDPOINT_OPENED;
	allowed |= 1u << index;
	REG_WRITE(FAST_ENDPOINTS, allowed);
}

void command_stop(uint32_t index)
{
	endpoints[index].state = ENDPOINT_CLOSING;
	allowed &= ~(1u << index);
	served_bit &= allowed;
	REG_WRITE(FAST_ENDPOINTS, allowed);
}

void command_complete(uint32_t tag, uint32_t cookie, uint32_t length, uint32_t node,
		      uint32_t status, uint32_t key, bool solicit)
{
	endpoints[tag / DIBBER_SLOTS].outstanding--;
	queue_post(cookie, length, command_what(node, status), key,
		   command_post(tag, solicit, transfer_is_free(tag)));
}

RARE void command_end(uint32_t tag, uint32_t first_word, uint32_t length, uint32_t node,
		      enum dibber_status status)
{
	uint32_t cookie = COMMAND_WORD(tag, cookie);

	command_take(tag / DIBBER_SLOTS);
	trace(DIBBER_TRACE_COMMAND, tag, first_word);
	if (status == DIBBER_STATUS_OK)
		mcp_shared.commands++;
	else
		mcp_shared.refused++;
	trace(DIBBER_TRACE_COMPLETION, tag / DIBBER_SLOTS << 8 | status, cookie);
	command_complete(tag, cookie, length, node & 0xffff, status, 0,
			 first_word >> 8 & DIBBER_FLAG_SOLICIT);
}

/* The administrator's commands, which end at once except ENDPOINT_CLOSE. */
static RARE bool administrate(uint32_t tag, uint32_t first_word)
{
	uint32_t cookie = ADMIN_WORD(tag, cookie);
	enum dibber_status status = DIBBER_STATUS_OK;

	if (admin_must_wait(tag, first_word))
		return false;
	command_take(0);
	trace(DIBBER_TRACE_COMMAND, tag, first_word);
	if (admin_command(tag, first_word, &status))
		command_complete(tag, cookie, 0, 0, status, 0,
				 first_word >> 8 & DIBBER_FLAG_SOLICIT);
	if (status == DIBBER_STATUS_OK)
		mcp_shared.commands++;
	else
		mcp_shared.refused++;
	return true;
}

/* NOP, the administrator's, and what nobody knows. */
static RARE bool command_other(uint32_t tag, uint32_t first_word)
{
	enum dibber_status status = DIBBER_STATUS_OK;

	if (tag < DIBBER_SLOTS && (first_word & 0xff) >= DIBBER_OPCODE_ENDPOINT_OPEN)
		return administrate(tag, first_word);
	if ((first_word & 0xff) != DIBBER_OPCODE_NOP)
		status = DIBBER_STATUS_BAD_OPCODE;
	else if (first_word >> 8 & 0xff & ~(DIBBER_FLAG_SOLICIT | DIBBER_FLAG_FENCE))
		status = DIBBER_STATUS_BAD_FLAGS;
	command_end(tag, first_word, 0, 0, status);
	return true;
}

/* What is not an endpoint's that is open. */
static RARE bool command_elsewhere(uint32_t index)
{
	uint32_t tag = command_tag(index);
	uint32_t first_word = COMMAND_WORD(tag, opcode);

	if (endpoints[index].state == ENDPOINT_CLOSED) {
		if (!index && admin_attach())
			return true;
		mcp_shared.refused++;
		REG_WRITE(COMMAND_SKIP, index);
		return true;
	}
	if (endpoints[index].state == ENDPOINT_CLOSING)
		return false;
	return command_other(tag, first_word);
}

/* Whether commands of an endpoint that were taken, by whomever, have not ended. */
static RARE bool has_outstanding(uint32_t index)
{
	return endpoints[index].outstanding || REG_READ(FAST_BUSY) >> index & 1;
}

APART bool command_next(uint32_t index)
{
	uint32_t tag = command_tag(index);
	uint32_t first_word = COMMAND_WORD(tag, opcode);

	if ((first_word >> 8 & DIBBER_FLAG_FENCE) && has_outstanding(index))
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
	case BARRIER_OPCODE:
		return barrier_command(tag, first_word);
	default:
		return command_other(tag, first_word);
	}
}

/* Those that are pending, in turn. */
static APART uint32_t take_in_turn(uint32_t pending)
{
	uint32_t index = served, held = 0, done = 0;

	for (uint32_t i = 0; pending && i < MCP_BATCH; i++) {
		uint32_t bit;

		mcp_alive();
		index = next_turn(pending, index + 1);
		bit = 1u << index;
		if (allowed & bit ? command_next(index) : command_elsewhere(index))
			done++;
		else
			held |= bit;
		pending = REG_READ(COMMAND_PENDING) & ~held;
	}
	/* Whoever was stopped by this is not served without a look at that any more. */
	served = index;
	served_bit = allowed & 1u << index;
	return done;
}

APART uint32_t command_handler(void)
{
	uint32_t pending = REG_READ(COMMAND_PENDING);

	/* Usually the endpoint that was served last is the only one. */
	return pending && pending == served_bit ? command_next(served) : take_in_turn(pending);
}
