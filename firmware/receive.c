/* RECEIVE: a get whose source the other node chooses. The command goes to that node as READY.
 * The answer comes when a SEND there meets it (send.c), which may take any time. So READYs
 * have a credit of their own. RECEIVEs above the credit wait here, and stop nothing else.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "receive.h"

#include "command.h"
#include "flows/express.h"
#include "flows/flow.h"
#include "get.h"
#include "message.h"
#include "requests.h"

#define READIES 8 /* READYs of this card that lie at one node */

static void ask(uint32_t tag)
{
	request_readies[transfers[tag].node]++;
	transfers[tag].busy = BUSY_REQUEST | BUSY_ANSWER;
	request_context(tag);
	/* First, because the message may come at once. */
	request_expect(tag, COMMAND_WORD(tag, target.key));
	message_request(tag, DIBBER_MESSAGE_READY);
}

/* RECEIVEs of one node go in the order in which they came. One that must wait does not stop
 * those of other nodes. */
APART uint32_t receive_handler(void)
{
	struct set blocked;
	uint32_t before = MCP_NO_TAG, done = 0;
	uint32_t next;

	set_fill(&blocked, 0);
	request_turn_work = 0;
	for (uint32_t tag = request_turn.head; tag != MCP_NO_TAG; tag = next) {
		uint32_t node = transfers[tag].node;
		bool free = !set_has(&blocked, node) && request_readies[node] < READIES &&
			    endpoints[tag / DIBBER_SLOTS].state == ENDPOINT_OPENED;

		next = transfers[tag].next;
		if (free && done < MCP_BATCH) {
			mcp_alive();
			if (express_accepts(node)) {
				line_remove(&request_turn, tag, before);
				ask(tag);
				done++;
				continue;
			}
		}
		request_turn_work |= free;
		set_add(&blocked, node);
		before = tag;
	}
	mcp_alive();
	return done;
}

APART bool receive_command(uint32_t tag, uint32_t first_word)
{
	uint32_t node = COMMAND_WORD(tag, node); /* with reserved0, which makes it too large */
	uint32_t length = COMMAND_WORD(tag, length);
	struct transfer *transfer;
	enum dibber_status status;

	if (first_word >> 8 & 0xff & ~(DIBBER_FLAG_SOLICIT | DIBBER_FLAG_FENCE))
		status = DIBBER_STATUS_BAD_FLAGS;
	else if (first_word >> 16 & 0xf)
		status = DIBBER_STATUS_BAD_LEVELS;
	else if (node >= DIBBER_NODES || node == command_node)
		status = DIBBER_STATUS_BAD_NODE;
	else if (first_word >> 24 >= DIBBER_ENDPOINTS)
		status = DIBBER_STATUS_BAD_ARGUMENT;
	else
		status = get_check_target(tag, first_word >> 20 & 0xf, length);
	if (status != DIBBER_STATUS_OK) {
		command_end(tag, first_word, length, node, status);
		return true;
	}
	if (set_has(&flow_lost, node))
		return false;

	command_take(tag / DIBBER_SLOTS);
	transfer = transfer_enter(tag, TRANSFER_RECEIVE, BUSY_TURN, node);
	transfer->length = length;
	transfer->cookie = COMMAND_WORD(tag, cookie);
	transfer->flags = first_word >> 8;
	transfer->key = 0;
	line_append(&request_turn, tag);
	request_receives++;
	receive_handler();
	mcp_shared.commands++;
	return true;
}

void receive_answered(uint32_t tag, uint32_t length)
{
	/* The gateware let no more in than was asked for, whatever the other end says. */
	if (length > transfers[tag].length) {
		message_answered(tag, DIBBER_STATUS_REMOTE_BAD_HEADER);
		return;
	}
	transfers[tag].length = length;
	message_answered(tag, DIBBER_STATUS_OK);
}

RARE void receive_probe(void)
{
	for (uint32_t node = 0; node < DIBBER_NODES; node++)
		if (request_readies[node]) {
			mcp_alive();
			message_probe(node);
		}
}

static RARE void leave_turn(uint32_t tag, enum dibber_status status)
{
	uint32_t before = MCP_NO_TAG;

	for (uint32_t t = request_turn.head; t != tag; t = transfers[t].next)
		before = t;
	line_remove(&request_turn, tag, before);
	request_receives--;
	/* It may have stopped others of its node. */
	request_turn_work = 1;
	transfers[tag].busy = 0;
	transfers[tag].status = status;
	command_end_transfer(tag);
}

RARE bool receive_cancel(uint32_t tag, enum dibber_status status)
{
	struct transfer *transfer = &transfers[tag];

	if (transfer->busy & BUSY_TURN) {
		leave_turn(tag, status);
		return true;
	}
	/* Its flow will either see the acknowledgement or give it up. */
	if (transfer->busy & BUSY_REQUEST)
		return false;
	/* A lost node need not hear of it, but is told if a message can go. */
	if (!message_tell(transfer->node,
			  (transfer->word & ~0xffu) | DIBBER_MESSAGE_READY_CANCEL) &&
	    status == DIBBER_STATUS_FLUSHED)
		return false;
	message_answered(tag, status);
	return true;
}
