/* The table of what was sent from a slot and has not ended. A tag belongs to one slot, so that
 * finding a place never fails and the tag in JOB_DONE is the index. What happens to a transfer
 * while it has PSNs is its lane's affair (bulk.c, express.c).
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "mcp.h"

struct transfer transfers[MCP_TRANSFERS];

/* Lines ---------------------------------------------------------------------------------------- */

void line_append(struct line *line, uint32_t tag)
{
	transfers[tag].next = MCP_NO_TAG;
	if (line->head == MCP_NO_TAG)
		line->head = tag;
	else
		transfers[line->tail].next = tag;
	line->tail = tag;
}

void line_remove(struct line *line, uint32_t tag, uint32_t before)
{
	if (before == MCP_NO_TAG)
		line->head = transfers[tag].next;
	else
		transfers[before].next = transfers[tag].next;
	if (line->tail == tag)
		line->tail = before;
}

/* Ends ----------------------------------------------------------------------------------------- */

APART void transfer_complete(uint32_t tag)
{
	struct transfer *transfer = &transfers[tag];
	uint32_t status = transfer->status;

	transfer_free(transfer);
	command_complete(tag, transfer->cookie, transfer->length, transfer->node, status,
			 transfer->key, transfer->flags & DIBBER_FLAG_SOLICIT);
}

void transfer_end_other(uint32_t tag)
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
