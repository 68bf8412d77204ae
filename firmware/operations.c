/* The table of operations. Opcodes, messages, ends of transfers, background work and the closing of
 * an endpoint find their functions here and nowhere else.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "operations.h"

#include "admin.h"
#include "atomic.h"
#include "barrier.h"
#include "command.h"
#include "flows/ended.h"
#include "flows/express.h"
#include "get.h"
#include "message.h"
#include "put.h"
#include "receive.h"
#include "requests.h"
#include "send.h"
#include "trace.h"

/* Commands ------------------------------------------------------------------------------------- */

/* The administrator's commands. All end at once except ENDPOINT_CLOSE and SCOUT. */
static RARE bool administrate(uint32_t tag, uint32_t first_word)
{
	uint32_t cookie = ADMIN_WORD(tag, cookie);
	enum dibber_status status = DIBBER_STATUS_OK;
	bool ended;

	if (admin_must_wait(tag, first_word))
		return false;
	command_take(0);
	trace(DIBBER_TRACE_COMMAND, tag, first_word);
	ended = admin_command(tag, first_word, &status);
	if (status != DIBBER_STATUS_OK) {
		mcp_shared.refused++;
	} else {
		mcp_shared.commands++;
		/* Before the completion, which tells the new owner that the endpoint is open. */
		if ((first_word & 0xff) == DIBBER_OPCODE_ENDPOINT_OPEN)
			barrier_forget(first_word >> 24);
	}
	if (ended)
		command_complete(tag, cookie, 0, 0, status, 0,
				 first_word >> 8 & DIBBER_FLAG_SOLICIT);
	return true;
}

/* NOP, the administrator's opcodes, and unknown ones. */
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

/* A command of an endpoint that is not open. */
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

/* Whether the endpoint has commands that have not ended, of this program or the fast path. */
static RARE bool has_outstanding(uint32_t index)
{
	return endpoints[index].outstanding || REG_READ(FAST_BUSY) >> index & 1;
}

static APART bool command_next(uint32_t index)
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

/* The pending endpoints, in turn. */
static APART uint32_t take_in_turn(uint32_t pending)
{
	uint32_t index = command_served, held = 0, done = 0;

	for (uint32_t i = 0; pending && i < MCP_BATCH; i++) {
		uint32_t bit;

		mcp_alive();
		index = next_turn(pending, index + 1);
		bit = 1u << index;
		if (command_allowed & bit ? command_next(index) : command_elsewhere(index))
			done++;
		else
			held |= bit;
		pending = REG_READ(COMMAND_PENDING) & ~held;
	}
	/* If the command closed its own endpoint, the short way below must not serve it again. */
	command_served = index;
	command_served_bit = command_allowed & 1u << index;
	return done;
}

APART uint32_t command_handler(void)
{
	uint32_t pending = REG_READ(COMMAND_PENDING);

	/* Usually the endpoint of the last turn is the only one. */
	return pending && pending == command_served_bit ? command_next(command_served)
							: take_in_turn(pending);
}

/* Ends of transfers ---------------------------------------------------------------------------- */

void transfer_ended(uint32_t tag)
{
	switch (transfers[tag].kind) {
	case TRANSFER_ANSWER:
		get_sent(tag);
		break;
	case TRANSFER_SEND:
		send_ended(tag);
		break;
	case TRANSFER_GET:
	case TRANSFER_ATOMIC:
	case TRANSFER_RECEIVE:
		message_acknowledged(tag);
		break;
	default:
		message_sent(tag);
	}
}

/* Requests in the INBOX ------------------------------------------------------------------------ */

/* What had to wait when it came: answers to gets and receives, and replies. */
static bool go_on(uint32_t tag)
{
	switch (transfers[tag].kind) {
	case TRANSFER_ANSWER:
		return get_answer(tag);
	case TRANSFER_READY:
		return send_start(tag);
	default:
		return message_reply(tag);
	}
}

RARE uint32_t message_handler(void)
{
	uint32_t done = 0;

	for (uint32_t mask = message_work; mask; mask &= mask - 1) {
		uint32_t slot = lowest_bit(mask);

		if (go_on(MCP_INBOX + slot)) {
			message_work &= ~(1u << slot);
			done++;
		}
	}
	return done;
}

/* Arrival -------------------------------------------------------------------------------------- */

/* Enter a request of another node. Its tag is that of its slot in the INBOX. */
static ALWAYS bool let_in(uint32_t node, uint32_t tag, uint32_t word)
{
	bool ready = (word & 0xff) == DIBBER_MESSAGE_READY;

	if (node >= DIBBER_NODES || node == command_node || !transfer_is_free(tag))
		return false;
	transfer_enter(tag, ready ? TRANSFER_READY : TRANSFER_ANSWER, 0, node);
	transfers[tag].cookie = word;
	transfers[tag].flags = 0;
	return true;
}

static ALWAYS void asked_for(uint32_t tag, uint32_t word)
{
	if ((word & 0xff) == DIBBER_MESSAGE_GET)
		get_asked(tag);
	else
		send_ready(tag);
}

void operations_message(uint32_t arrival, uint32_t word)
{
	uint32_t node = FIELD_GET(ARRIVAL, NODE, arrival);
	uint32_t slot = FIELD_GET(ARRIVAL, SLOT, arrival) % DIBBER_SLOTS;
	uint32_t tag = MCP_INBOX + slot;
	bool known = false;

	switch (word & 0xff) {
	case DIBBER_MESSAGE_GET:
	case DIBBER_MESSAGE_READY:
		if (let_in(node, tag, word)) {
			asked_for(tag, word);
			return;
		}
		break;
	case DIBBER_MESSAGE_READY_CANCEL:
		known = send_unready(node, word);
		break;
	case DIBBER_MESSAGE_GET_FAILED:
		message_claim(node);
		known = get_failed(node, tag, word);
		break;
	case DIBBER_MESSAGE_ATOMIC_REPLY:
		message_claim(node);
		known = atomic_replied(node, tag, word);
		break;
	case DIBBER_MESSAGE_LATE:
		known = message_late(node, tag, word);
		break;
	case DIBBER_MESSAGE_LATE_REPLY:
		message_waits(node, word);
		known = true;
		break;
	case BARRIER_MESSAGE:
		known = barrier_arrived(node, word);
		break;
	}
	if (!known)
		message_stray(arrival, word);
	/* A slot with a request in it is freed when the request ends. */
	if (transfer_is_free(tag))
		REG_WRITE(INBOX_FREE, slot);
}

void operations_answer(uint32_t arrival, uint32_t word, uint32_t length)
{
	uint32_t node = FIELD_GET(ARRIVAL, NODE, arrival);
	bool ready = (word & 0xff) == DIBBER_MESSAGE_READY;
	uint32_t tag;

	if (!ready)
		message_claim(node);
	tag = request_answered_by(node, word, ready ? DIBBER_MESSAGE_READY : DIBBER_MESSAGE_GET,
				  ready ? TRANSFER_RECEIVE : TRANSFER_GET);
	if (tag == MCP_NO_TAG)
		message_stray(arrival, word);
	else if (ready)
		receive_answered(tag, length);
	else
		message_answered(tag, DIBBER_STATUS_OK);
}

/* Closing -------------------------------------------------------------------------------------- */

bool operations_close_step(uint32_t index)
{
	return send_close_step(index) || barrier_close_step(index);
}
