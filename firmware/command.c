/* Endpoints, and how a command of one is taken and completed. The gateware shows the next
 * command of an endpoint (COMMAND_PENDING) when its slot is free and its completion queue has
 * room.
 *
 * A command is taken whole or not at all. If it cannot go on, it stays in its slot and the
 * next turn tries again. Reasons are: the engine has no space, its flow is being queued again,
 * or its fence holds.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "command.h"

#include "trace.h"

struct endpoint endpoints[DIBBER_ENDPOINTS];
uint32_t command_node;

uint32_t command_served, command_served_bit;
uint32_t command_allowed;
uint32_t command_closing;

RARE void command_boot(void)
{
	command_node = REG_READ(NODE_ID);
	/* Commands that were rung before this program started are not for it. */
	for (uint32_t i = 0; i < DIBBER_ENDPOINTS; i++)
		REG_WRITE(COMMAND_SKIP, i);
}

void command_allow(uint32_t index)
{
	endpoints[index].state = ENDPOINT_OPENED;
	command_allowed |= 1u << index;
	REG_WRITE(FAST_ENDPOINTS, command_allowed);
}

void command_stop(uint32_t index)
{
	endpoints[index].state = ENDPOINT_CLOSING;
	command_allowed &= ~(1u << index);
	command_served_bit &= command_allowed;
	REG_WRITE(FAST_ENDPOINTS, command_allowed);
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

APART void command_end_transfer(uint32_t tag)
{
	struct transfer *transfer = &transfers[tag];
	uint32_t status = transfer->status;

	transfer_free(transfer);
	command_complete(tag, transfer->cookie, transfer->length, transfer->node, status,
			 transfer->key, transfer->flags & DIBBER_FLAG_SOLICIT);
}
