/* GET: the command goes as a message to the other node. That node's control program sends the
 * data as a job with RESPONSE. The gateware here lets the answer in by a table (EXPECT_*). The
 * last packet of the answer ends the command.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "get.h"

#include "command.h"
#include "flows/bulk.h"
#include "message.h"
#include "put.h"
#include "requests.h"

/* Asking --------------------------------------------------------------------------------------- */

enum dibber_status get_check_target(uint32_t tag, uint32_t levels, uint32_t length)
{
	uint32_t offset_low, offset_high;
	enum dibber_status status;

	if (levels > MCP_LEVELS_MAX)
		return DIBBER_STATUS_BAD_LEVELS;
	status = put_check_walk(tag, offsetof(struct dibber_command, target), levels, length);
	if (status != DIBBER_STATUS_OK)
		return status;
	/* As for a put, but here the target is this card. */
	offset_low = COMMAND_WORD(tag, target.offset);
	offset_high = slot_word(tag, offsetof(struct dibber_command, target.offset) + 4);
	if (!levels && length)
		offset_high += offset_low + (length - 1) < offset_low;
	return offset_high >> 16 ? DIBBER_STATUS_BOUNDS : DIBBER_STATUS_OK;
}

/* What both ends check of a get that lies in a slot. */
static enum dibber_status check(uint32_t tag, uint32_t first_word, uint32_t length)
{
	uint32_t levels = first_word >> 16 & 0xf;
	enum dibber_status status;

	if (levels > MCP_LEVELS_MAX)
		return DIBBER_STATUS_BAD_LEVELS;
	status = put_check_walk(tag, offsetof(struct dibber_command, source), levels, length);
	if (status != DIBBER_STATUS_OK)
		return status;
	return get_check_target(tag, first_word >> 20 & 0xf, length);
}

APART bool get_command(uint32_t tag, uint32_t first_word)
{
	uint32_t node = COMMAND_WORD(tag, node); /* with reserved0, which makes it too large */
	uint32_t length = COMMAND_WORD(tag, length);
	struct transfer *transfer;
	uint16_t *place;
	enum dibber_status status;

	if (first_word >> 8 & 0xff & ~(DIBBER_FLAG_SOLICIT | DIBBER_FLAG_FENCE))
		status = DIBBER_STATUS_BAD_FLAGS;
	else if (node >= DIBBER_NODES || node == command_node)
		status = DIBBER_STATUS_BAD_NODE;
	else
		status = check(tag, first_word, length);
	if (status != DIBBER_STATUS_OK) {
		command_end(tag, first_word, length, node, status);
		return true;
	}
	place = message_may_ask(node);
	if (!place)
		return false;

	command_take(tag / DIBBER_SLOTS);
	transfer = transfer_enter(tag, TRANSFER_GET, BUSY_REQUEST | BUSY_ANSWER, node);
	transfer->length = length;
	transfer->cookie = COMMAND_WORD(tag, cookie);
	transfer->flags = first_word >> 8;
	transfer->key = 0;
	request_context(tag);
	/* First, because the answer may come at once. */
	request_expect(tag, COMMAND_WORD(tag, target.key));
	message_ask(place, tag, DIBBER_MESSAGE_GET);
	mcp_shared.commands++;
	return true;
}

/* The other end's status as this end's program must see it: local there is remote here. */
static RARE enum dibber_status seen_from_here(uint32_t status)
{
	switch (status) {
	case DIBBER_STATUS_BAD_KEY:
		return DIBBER_STATUS_REMOTE_BAD_KEY;
	case DIBBER_STATUS_NOT_PERMITTED:
	case DIBBER_STATUS_NOT_OWNER:
		return DIBBER_STATUS_REMOTE_NOT_PERMITTED;
	case DIBBER_STATUS_BOUNDS:
		return DIBBER_STATUS_REMOTE_BOUNDS;
	case DIBBER_STATUS_READ_ERROR:
	case DIBBER_STATUS_READ_TIMEOUT:
		return DIBBER_STATUS_REMOTE_READ_ERROR;
	case DIBBER_STATUS_BAD_LIST:
		return DIBBER_STATUS_REMOTE_BAD_LIST;
	case DIBBER_STATUS_REMOTE_BAD_LIST:
		return DIBBER_STATUS_BAD_LIST;
	case DIBBER_STATUS_REMOTE_BAD_KEY:
		return DIBBER_STATUS_BAD_KEY;
	case DIBBER_STATUS_REMOTE_NOT_PERMITTED:
		return DIBBER_STATUS_NOT_PERMITTED;
	case DIBBER_STATUS_REMOTE_BOUNDS:
		return DIBBER_STATUS_BOUNDS;
	case DIBBER_STATUS_REMOTE_READ_ERROR:
		return DIBBER_STATUS_READ_ERROR;
	case DIBBER_STATUS_BAD_LEVELS:
	case DIBBER_STATUS_BAD_COUNT:
	case DIBBER_STATUS_BAD_LENGTH:
	case DIBBER_STATUS_TIMEOUT:
	case DIBBER_STATUS_TRUNCATED:
		return status;
	default:
		return DIBBER_STATUS_REMOTE_BAD_HEADER;
	}
}

RARE bool get_failed(uint32_t node, uint32_t inbox_tag, uint32_t word)
{
	uint32_t status = slot_word(inbox_tag, offsetof(struct dibber_reply, status));
	uint32_t tag = request_answered_by(node, word, DIBBER_MESSAGE_GET_FAILED, TRANSFER_GET);

	if (tag == MCP_NO_TAG) {
		tag = request_answered_by(node, word, DIBBER_MESSAGE_GET_FAILED, TRANSFER_RECEIVE);
		if (tag == MCP_NO_TAG)
			return false;
		/* It says how long the message would have been. */
		if (status == DIBBER_STATUS_TRUNCATED)
			transfers[tag].length =
				slot_word(inbox_tag, offsetof(struct dibber_reply, value));
	}
	message_answered(tag, seen_from_here(status));
	return true;
}

/* Answering ------------------------------------------------------------------------------------ */

void get_asked(uint32_t tag)
{
	struct transfer *transfer = &transfers[tag];
	uint32_t first_word = COMMAND_WORD(tag, opcode);
	uint32_t length = COMMAND_WORD(tag, length);
	enum dibber_status status = DIBBER_STATUS_BAD_OPCODE;

	/* The requester's program checked it, but the slot's owner may have written it again
	 * since. */
	if ((first_word & 0xff) == DIBBER_OPCODE_GET)
		status = check(tag, first_word, length);
	if (status != DIBBER_STATUS_OK) {
		message_failed(tag, 0, status);
		return;
	}
	transfer->length = length;
	if (!get_answer(tag))
		message_work |= 1u << (tag - MCP_INBOX);
}

bool get_answer(uint32_t tag)
{
	uint32_t packets = packets_of(transfers[tag].length);

	if (!bulk_accepts(transfers[tag].node, packets))
		return false;
	bulk_submit(tag, packets);
	return true;
}

void get_sent(uint32_t tag)
{
	struct transfer *transfer = &transfers[tag];

	/* A peer that began anew has no request left that could be told. */
	if (transfer->status == DIBBER_STATUS_OK ||
	    transfer->status == DIBBER_STATUS_PEER_RESTARTED)
		transfer_free_inbox(tag);
	else
		message_failed(tag, 0, transfer->status);
}
