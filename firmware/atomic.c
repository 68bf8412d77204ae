/* Atomic operations: the command goes as a message to the other node. That node's gateware
 * executes them in the order of arrival, without its control program. The value before comes
 * back in a reply.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "atomic.h"

#include "command.h"
#include "flows/fast.h"
#include "message.h"
#include "requests.h"

APART bool atomic_command(uint32_t tag, uint32_t first_word)
{
	uint32_t node = COMMAND_WORD(tag, node); /* with reserved0, which makes it too large */
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
	else if (length != 4 && length != 8)
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
	request_context(tag);
	message_ask(place, tag, DIBBER_MESSAGE_ATOMIC);
	mcp_shared.commands++;
	return true;
}

bool atomic_replied(uint32_t node, uint32_t inbox_tag, uint32_t word)
{
	uint32_t tag =
		request_answered_by(node, word, DIBBER_MESSAGE_ATOMIC_REPLY, TRANSFER_ATOMIC);
	uint32_t status;

	if (tag == MCP_NO_TAG)
		return false;
	transfers[tag].length = slot_word(inbox_tag, offsetof(struct dibber_reply, value));
	transfers[tag].key = slot_word(inbox_tag, offsetof(struct dibber_reply, value) + 4);
	status = slot_word(inbox_tag, offsetof(struct dibber_reply, status));
	/* The status comes from the peer and may be any number. */
	if (status != DIBBER_STATUS_OK && status != DIBBER_STATUS_REMOTE_ALIGNMENT &&
	    status != DIBBER_STATUS_REMOTE_READ_ERROR &&
	    (status < DIBBER_STATUS_REMOTE_BAD_KEY || status > DIBBER_STATUS_REMOTE_BAD_HEADER))
		status = DIBBER_STATUS_REMOTE_BAD_HEADER;
	message_answered(tag, status);
	return true;
}

APART uint32_t atomic_handler(void)
{
	uint32_t done = REG_READ(ATOMIC_DONE);
	uint32_t node = FIELD_GET(ATOMIC_DONE, NODE, done);
	uint32_t word;

	if (fast_wants(node, FIELD_GET(ATOMIC_DONE, AGAIN, done))) {
		REG_WRITE(ATOMIC_AGAIN, 1);
		return 0;
	}
	/* The flow will be armed in a moment, and then hardware can reply. */
	if (fast_shut(node))
		return 0;
	word = REG_READ(ATOMIC_WORD);
	REG_WRITE(ATOMIC_POP, 1);
	message_executed(node, FIELD_GET(ATOMIC_DONE, SLOT, done), word);
	return 1;
}
