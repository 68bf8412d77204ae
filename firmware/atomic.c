/* This file is part of Dibber. */
/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Atomic operations: the command goes as a message to the other node, whose one unit executes them in
 * the order of their arrival; the value before comes back as a reply.
 */

#include "mcp.h"

static uint8_t line[DIBBER_SLOTS];	/* slots of the inbox, in the order of arrival */
static uint32_t line_head, line_tail;

static bool is_possible(uint32_t first_word, uint32_t length)
{
	uint32_t opcode = first_word & 0xff;

	return opcode >= DIBBER_OPCODE_FETCH_ADD && opcode <= DIBBER_OPCODE_MASKED_SWAP &&
	       (length == 4 || length == 8);
}

/* Asking --------------------------------------------------------------------------------------- */

APART bool atomic_command(uint32_t tag, uint32_t first_word)
{
	uint32_t node = COMMAND_WORD(tag, node);	/* and reserved0, which makes it too large */
	uint32_t length = COMMAND_WORD(tag, length);
	struct transfer *transfer;
	uint16_t *place;
	enum dibber_status status = DIBBER_STATUS_OK;

	if (first_word >> 8 & 0xff & ~(DIBBER_FLAG_SOLICIT | DIBBER_FLAG_FENCE))
		status = DIBBER_STATUS_BAD_FLAGS;
	else if (first_word >> 16 & 0xff)
		status = DIBBER_STATUS_BAD_LEVELS;
	else if (node >= DIBBER_NODES || node == command_node)
		status = DIBBER_STATUS_BAD_NODE;
	else if (!is_possible(first_word, length))
		status = DIBBER_STATUS_BAD_LENGTH;
	else if (slot_word(tag, offsetof(struct dibber_atomic_command, offset) + 4) >> 16)
		status = DIBBER_STATUS_REMOTE_BOUNDS;
	if (status != DIBBER_STATUS_OK) {
		command_end(tag, first_word, length, node, status);
		return true;
	}
	place = message_may_ask(node);
	if (!place)
		return false;

	command_take(tag / DIBBER_SLOTS);
	transfer = transfer_enter(tag, TRANSFER_ATOMIC, BUSY_REQUEST | BUSY_ANSWER, node);
	transfer->length = 0;
	transfer->key = 0;
	transfer->cookie = COMMAND_WORD(tag, cookie);
	transfer->flags = first_word >> 8;
	message_context(tag);
	message_ask(place, tag, DIBBER_MESSAGE_ATOMIC);
	mcp_shared.commands++;
	return true;
}

bool atomic_replied(uint32_t node, uint32_t inbox_tag, uint32_t word)
{
	uint32_t tag = message_asked(node, word, DIBBER_MESSAGE_ATOMIC_REPLY, TRANSFER_ATOMIC);
	uint32_t status;

	if (tag == MCP_NO_TAG)
		return false;
	transfers[tag].length = slot_word(inbox_tag, offsetof(struct dibber_reply, value));
	transfers[tag].key = slot_word(inbox_tag, offsetof(struct dibber_reply, value) + 4);
	status = slot_word(inbox_tag, offsetof(struct dibber_reply, status));
	/* The status is the peer's word, and may be any number. */
	if (status != DIBBER_STATUS_OK && status != DIBBER_STATUS_REMOTE_ALIGNMENT &&
	    status != DIBBER_STATUS_REMOTE_READ_ERROR &&
	    (status < DIBBER_STATUS_REMOTE_BAD_KEY || status > DIBBER_STATUS_REMOTE_BAD_HEADER))
		status = DIBBER_STATUS_REMOTE_BAD_HEADER;
	message_answered(tag, status);
	return true;
}

/* Answering ------------------------------------------------------------------------------------ */

void atomic_asked(uint32_t tag)
{
	/* The asker's program checked it, and then the slot's owner may have written it again. */
	if (!is_possible(COMMAND_WORD(tag, opcode), COMMAND_WORD(tag, length))) {
		message_reply(tag, DIBBER_MESSAGE_ATOMIC_REPLY, 0, 0,
			      DIBBER_STATUS_REMOTE_BAD_HEADER);
		return;
	}
	line[line_tail++ % DIBBER_SLOTS] = tag - MCP_INBOX;
	if (line_tail - line_head == 1)
		REG_WRITE(ATOMIC_START, tag - MCP_INBOX);
}

APART uint32_t atomic_handler(void)
{
	uint32_t status = REG_READ(ATOMIC_STATUS);
	uint32_t low = REG_READ(ATOMIC_LOW);
	uint32_t high = REG_READ(ATOMIC_HIGH);
	uint32_t tag = MCP_INBOX + line[line_head % DIBBER_SLOTS];

	REG_WRITE(ATOMIC_POP, 1);
	if (line_head == line_tail)
		return 1;
	line_head++;
	if (line_head != line_tail)
		REG_WRITE(ATOMIC_START, line[line_head % DIBBER_SLOTS]);
	message_reply(tag, DIBBER_MESSAGE_ATOMIC_REPLY, low, high, status);
	return 1;
}
