/* This file is part of Dibber. */
/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The table of what was sent from a slot and has not ended. A tag belongs to one slot, so that
 * finding a place never fails and the tag in JOB_DONE is the index. What happens to a transfer
 * while it has PSNs is its lane's affair (bulk.c, express.c).
 */

#include "mcp.h"
#include "registers.h"

struct transfer transfers[MCP_TRANSFERS];

APART void transfer_complete(uint32_t tag)
{
	struct transfer *transfer = &transfers[tag];
	uint32_t status = transfer->status;

	transfer_free(transfer);
	command_complete(tag / DIBBER_SLOTS, transfer->cookie, transfer->length, transfer->node,
			 status, transfer->key, transfer->flags & DIBBER_FLAG_SOLICIT);
}

void transfer_end_other(uint32_t tag)
{
	switch (transfers[tag].kind) {
	case TRANSFER_ANSWER:
		get_sent(tag);
		break;
	case TRANSFER_GET:
	case TRANSFER_ATOMIC:
		message_acknowledged(tag);
		break;
	default:
		message_sent(tag);
	}
}
