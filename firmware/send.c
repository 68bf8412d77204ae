/* SEND: it meets the oldest matching READY, and becomes a job. A READY is a RECEIVE of another
 * node that waits in a slot of the INBOX (receive.c). The job reads by the SEND's walk and
 * writes by the READY's. The first of the two waits in its slot, and nothing waits for it.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "send.h"

#include "command.h"
#include "flows/bulk.h"
#include "get.h"
#include "message.h"
#include "put.h"
#include "receive.h"
#include "requests.h"

#define PROBE_TICKS 16u /* of 50 us, between two probes of nodes that owe a message */

static struct line sends;
static struct line readies;
uint32_t send_waiting;

RARE void send_boot(void)
{
	line_clear(&sends);
	line_clear(&readies);
}

/* Node and endpoints that a SEND and a READY must have in common. */
static uint32_t pair(uint32_t node, uint32_t sender, uint32_t receiver)
{
	return node | sender << 8 | receiver << 16;
}

/* Take the oldest match out of its line. MCP_NO_TAG: there is none. */
static uint32_t take_oldest(struct line *line, uint32_t key)
{
	uint32_t before = MCP_NO_TAG;

	mcp_alive();
	for (uint32_t tag = line->head; tag != MCP_NO_TAG; tag = transfers[tag].next) {
		if (transfers[tag].key == key) {
			line_remove(line, tag, before);
			send_waiting--;
			return tag;
		}
		before = tag;
	}
	return MCP_NO_TAG;
}

static void wait_in(struct line *line, uint32_t tag)
{
	transfers[tag].peer = MCP_NO_TAG;
	line_append(line, tag);
	send_waiting++;
}

static RARE void leave(struct line *line, uint32_t tag)
{
	uint32_t before = MCP_NO_TAG;

	for (uint32_t t = line->head; t != tag; t = transfers[t].next)
		before = t;
	line_remove(line, tag, before);
	send_waiting--;
}

/* End a SEND that has met no READY. */
static RARE void end(uint32_t tag, enum dibber_status status)
{
	transfers[tag].key = 0;
	transfers[tag].status = status;
	command_end_transfer(tag);
}

/* Meeting -------------------------------------------------------------------------------------- */

bool send_start(uint32_t ready_tag)
{
	uint32_t tag = transfers[ready_tag].peer;
	uint32_t packets = packets_of(transfers[tag].length);

	if (!bulk_accepts(transfers[tag].node, packets))
		return false;
	bulk_submit(tag, packets);
	return true;
}

static void meet(uint32_t tag, uint32_t ready_tag)
{
	uint32_t length = transfers[tag].length;

	if (length > transfers[ready_tag].length) {
		message_failed(ready_tag, length, DIBBER_STATUS_TRUNCATED);
		end(tag, DIBBER_STATUS_TRUNCATED);
		return;
	}
	transfers[tag].key = 0;
	transfers[tag].peer = ready_tag;
	transfers[ready_tag].peer = tag;
	if (!send_start(ready_tag))
		message_work |= 1u << (ready_tag - MCP_INBOX);
}

APART bool send_command(uint32_t tag, uint32_t first_word)
{
	uint32_t node = COMMAND_WORD(tag, node); /* with reserved0, which makes it too large */
	uint32_t length = COMMAND_WORD(tag, length);
	uint32_t levels = first_word >> 16 & 0xff;
	uint32_t receiver = first_word >> 24;
	struct transfer *transfer;
	enum dibber_status status;
	uint32_t ready;

	if (first_word >> 8 & 0xff & ~(DIBBER_FLAG_SOLICIT | DIBBER_FLAG_FENCE))
		status = DIBBER_STATUS_BAD_FLAGS;
	else if (levels > MCP_LEVELS_MAX)
		status = DIBBER_STATUS_BAD_LEVELS;
	else if (node >= DIBBER_NODES || node == command_node)
		status = DIBBER_STATUS_BAD_NODE;
	else if (receiver >= DIBBER_ENDPOINTS)
		status = DIBBER_STATUS_BAD_ARGUMENT;
	else
		status = put_check_walk(tag, offsetof(struct dibber_command, source), levels,
					length);
	if (status != DIBBER_STATUS_OK) {
		command_end(tag, first_word, length, node, status);
		return true;
	}
	if (set_has(&flow_lost, node))
		return false;

	command_take(tag / DIBBER_SLOTS);
	transfer = transfer_enter(tag, TRANSFER_SEND, 0, node);
	transfer->length = length;
	transfer->cookie = COMMAND_WORD(tag, cookie);
	transfer->flags = first_word >> 8;
	transfer->key = pair(node, tag / DIBBER_SLOTS, receiver);
	mcp_shared.commands++;
	ready = take_oldest(&readies, transfer->key);
	if (ready == MCP_NO_TAG)
		wait_in(&sends, tag);
	else
		meet(tag, ready);
	return true;
}

/* A slot of another node has one RECEIVE. An older READY of the same slot is from a former
 * life of that node. */
static RARE void drop_former(struct transfer *transfer)
{
	uint32_t context = REQUEST_TAG(transfer->cookie);

	mcp_alive();
	for (uint32_t tag = readies.head; tag != MCP_NO_TAG; tag = transfers[tag].next)
		if (transfers[tag].node == transfer->node &&
		    REQUEST_TAG(transfers[tag].cookie) == context) {
			leave(&readies, tag);
			transfer_free_inbox(tag);
			return;
		}
}

void send_ready(uint32_t ready_tag)
{
	struct transfer *transfer = &transfers[ready_tag];
	uint32_t first_word = COMMAND_WORD(ready_tag, opcode);
	uint32_t length = COMMAND_WORD(ready_tag, length);
	enum dibber_status status = DIBBER_STATUS_BAD_OPCODE;
	uint32_t tag;

	/* The receiver's program checked it, but the slot's owner may have written it again
	 * since. */
	if ((first_word & 0xff) == DIBBER_OPCODE_RECEIVE)
		status = get_check_target(ready_tag, first_word >> 20 & 0xf, length);
	if (status != DIBBER_STATUS_OK) {
		message_failed(ready_tag, 0, status);
		return;
	}
	drop_former(transfer);
	transfer->length = length;
	transfer->key = pair(transfer->node, first_word >> 24, transfer->cookie >> 8 & 0xff);
	tag = take_oldest(&sends, transfer->key);
	if (tag == MCP_NO_TAG)
		wait_in(&readies, ready_tag);
	else
		meet(tag, ready_tag);
}

RARE bool send_unready(uint32_t node, uint32_t word)
{
	mcp_alive();
	for (uint32_t tag = readies.head; tag != MCP_NO_TAG; tag = transfers[tag].next)
		if (transfers[tag].node == node && !((transfers[tag].cookie ^ word) & ~0xffu)) {
			leave(&readies, tag);
			transfer_free_inbox(tag);
			return true;
		}
	/* It has met a SEND, which will find the cancellation, or our reply crosses this
	 * message. */
	return node < DIBBER_NODES;
}

/* The end -------------------------------------------------------------------------------------- */

void send_ended(uint32_t tag)
{
	struct transfer *transfer = &transfers[tag];

	/* If all went well, the last packet tells the receiver. */
	if (transfer->status == DIBBER_STATUS_OK ||
	    transfer->status == DIBBER_STATUS_PEER_RESTARTED)
		transfer_free_inbox(transfer->peer);
	else
		message_failed(transfer->peer, 0, transfer->status);
	command_end_transfer(tag);
}

static bool waits(uint32_t tag)
{
	return transfers[tag].kind == TRANSFER_SEND && transfers[tag].peer == MCP_NO_TAG;
}

/* End what waits with this tag. False: nothing waits, or it must wait longer. */
static bool give_up(uint32_t tag, enum dibber_status status)
{
	if (transfers[tag].kind == TRANSFER_RECEIVE)
		return receive_cancel(tag, status);
	if (!waits(tag))
		return false;
	leave(&sends, tag);
	end(tag, status);
	return true;
}

RARE bool send_close_step(uint32_t endpoint)
{
	for (uint32_t slot = 0; slot < DIBBER_SLOTS; slot++) {
		mcp_alive();
		if (give_up(endpoint * DIBBER_SLOTS + slot, DIBBER_STATUS_FLUSHED))
			return true;
	}
	return false;
}

/* Drop READYs of nodes that are lost: their messages are not waited for any more. */
static RARE void lose_readies(void)
{
	uint32_t before = MCP_NO_TAG, next;

	for (uint32_t tag = readies.head; tag != MCP_NO_TAG; tag = next) {
		next = transfers[tag].next;
		if (set_has(&flow_lost, transfers[tag].node)) {
			line_remove(&readies, tag, before);
			send_waiting--;
			transfer_free_inbox(tag);
		} else {
			before = tag;
		}
	}
}

RARE uint32_t send_lose_step(void)
{
	uint32_t done = 0;

	for (uint32_t tag = 0; tag < MCP_COMMANDS; tag++) {
		if (!set_has(&flow_lost, transfers[tag].node))
			continue;
		mcp_alive();
		if (!give_up(tag, DIBBER_STATUS_TIMEOUT))
			continue;
		mcp_shared.timeouts++;
		if (++done == MCP_BATCH)
			return done;
	}
	lose_readies();
	set_fill(&flow_lost, 0);
	return done + 1;
}

/* While nothing is under way, only the link shows that the other node cannot be reached. */
RARE void send_tick(bool link)
{
	static uint32_t down;

	static uint32_t ticks;

	down = link ? 0 : down + 1;
	if (link && !(++ticks % PROBE_TICKS))
		receive_probe();
	if (down > MCP_GIVE_UP) {
		set_fill(&flow_lost, DIBBER_NODES);
		down = 0;
	}
}
