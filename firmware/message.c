/* Messages between control programs. A request goes from the slot of its command. A reply to
 * an atomic goes from the INBOX slot of the request. Other messages go from a slot of the
 * OUTBOX. A message from the wire must fit this program's own state. Any other is counted,
 * traced and dropped.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "message.h"

#include "command.h"
#include "flows/express.h"
#include "flows/fast.h"
#include "trace.h"

/* A get may be long, and the program sees its answer only at the end. An answer may take one
 * tick for each so many bytes. */
#define ANSWER_BYTES 4096u

/* Ticks of 50 us until the first probe of a node that owes an answer, and between two probes. */
#define PROBE_FIRST 4u
#define PROBE_TICKS 16u

/* Ticks of 50 us between two questions to a node whose answer to a get is late. Three questions fit
 * into MCP_GIVE_UP, because one or its reply may be lost. */
#define LATE_TICKS 200u

/* The send engine works if it moved in one of so many ticks. STOP may hold it between. */
#define WORKS_TICKS 100u

static struct set lost; /* nodes with requests that are marked as lost */
static uint32_t outbox; /* a bit for each slot of the OUTBOX in use */
static uint32_t still;	/* ticks since the send engine moved */
uint32_t message_work;

/* Requests ------------------------------------------------------------------------------------- */

uint16_t *message_may_ask(uint32_t node)
{
	uint16_t *place = request_find(node, MCP_NO_TAG);

	return place && !fast_pauses(node) && express_accepts(node) ? place : NULL;
}

void message_request(uint32_t tag, enum dibber_message type)
{
	transfers[tag].word |= type;
	express_message(tag);
}

void message_ask(uint16_t *place, uint32_t tag, enum dibber_message type)
{
	message_request(tag, type);
	request_enter(place, tag);
}

/* The request has ended, whatever the reason. */
static void finish(uint32_t tag)
{
	struct transfer *transfer = &transfers[tag];
	uint32_t node = transfer->node;

	if (transfer->kind != TRANSFER_ATOMIC)
		request_forget(tag);
	if (transfer->kind == TRANSFER_RECEIVE) {
		request_ready_ended(tag);
	} else {
		*request_find(node, tag) = MCP_NO_TAG;
	}
	if ((transfer->status == DIBBER_STATUS_TIMEOUT ||
	     transfer->status == DIBBER_STATUS_FLUSHED ||
	     transfer->status == DIBBER_STATUS_PEER_RESTARTED) &&
	    transfer->word >> 26 == request_generation)
		request_next_generation();
	transfer->busy = 0;
	command_end_transfer(tag);
	express_rest(node);
}

void message_acknowledged(uint32_t tag)
{
	struct transfer *transfer = &transfers[tag];

	transfer->busy &= ~BUSY_REQUEST;
	if (!transfer->busy || transfer->status != DIBBER_STATUS_OK)
		finish(tag);
}

RARE void message_claim(uint32_t node)
{
	if (node < DIBBER_NODES)
		fast_claim(MCP_EXPRESS + node);
}

void message_answered(uint32_t tag, enum dibber_status status)
{
	struct transfer *transfer = &transfers[tag];

	/* A node that answers is at work: its other requests get their full time again. */
	for (uint32_t i = 0; i < REQUEST_ASKS; i++)
		if (request_asks[transfer->node][i] != MCP_NO_TAG)
			transfers[request_asks[transfer->node][i]].age = 0;
	transfer->status = status;
	transfer->busy &= ~BUSY_ANSWER;
	/* The slot is still read until the message is acknowledged. */
	if (!transfer->busy)
		finish(tag);
}

/* Ask the node of a get whether its answer is still to come. */
static RARE void ask_for_late(struct transfer *transfer)
{
	message_tell(transfer->node, (transfer->word & ~0xffu) | DIBBER_MESSAGE_LATE);
}

RARE uint32_t message_tick(const struct set *works, bool sends)
{
	struct set nodes;
	uint32_t done = 0, node;

	if (sends)
		still = 0;
	else if (still <= WORKS_TICKS)
		still++;
	set_copy(&nodes, &request_nodes);
	while (done < MCP_BATCH && set_take(&nodes, &node)) {
		mcp_alive();
		if (!request_is_open(node))
			set_remove(&request_nodes, node);
		for (uint32_t i = 0; i < REQUEST_ASKS; i++) {
			uint32_t tag = request_asks[node][i];
			struct transfer *transfer;
			uint32_t patience = MCP_GIVE_UP;

			/* While the message is not acknowledged, its flow measures the time. */
			if (tag == MCP_NO_TAG || (transfers[tag].busy & BUSY_REQUEST))
				continue;
			transfer = &transfers[tag];
			if (transfer->kind == TRANSFER_GET) {
				patience += transfer->length / ANSWER_BYTES;
				/* Data from there may be the answer, or other work of the
				 * engine before it. */
				if (set_has(works, node))
					transfer->age = 0;
			}
			if (++transfer->age <= patience) {
				/* The node may have begun anew. It says so only when something
				 * arrives there. */
				if (transfer->age % PROBE_TICKS == PROBE_FIRST)
					message_probe(node);
				if (transfer->kind == TRANSFER_GET && !(transfer->age % LATE_TICKS))
					ask_for_late(transfer);
				continue;
			}
			transfer->status = DIBBER_STATUS_TIMEOUT;
			mcp_shared.timeouts++;
			finish(tag);
			done++;
		}
	}
	return done;
}

/* A node that began anew ----------------------------------------------------------------------- */

RARE void message_lose(uint32_t node)
{
	mcp_alive();
	for (uint32_t tag = 0; tag < MCP_COMMANDS; tag++) {
		/* Skip endpoints without commands. A look at all 256 takes 50 us, and the
		 * first transfer to the new life would wait for that. */
		if (!endpoints[tag / DIBBER_SLOTS].outstanding) {
			tag |= DIBBER_SLOTS - 1;
			continue;
		}
		if (transfers[tag].node == node && transfers[tag].busy == BUSY_ANSWER) {
			transfers[tag].status = DIBBER_STATUS_PEER_RESTARTED;
			set_add(&lost, node);
		}
	}
}

RARE uint32_t message_restarted(uint32_t node, uint32_t most)
{
	uint32_t done = 0;

	if (!set_has(&lost, node))
		return 0;
	mcp_alive();
	for (uint32_t tag = 0; tag < MCP_COMMANDS && done < most; tag++)
		if (transfers[tag].node == node && transfers[tag].busy == BUSY_ANSWER &&
		    transfers[tag].status == DIBBER_STATUS_PEER_RESTARTED) {
			mcp_alive();
			finish(tag);
			done++;
		}
	if (done < most)
		set_remove(&lost, node);
	return done;
}

/* Replies -------------------------------------------------------------------------------------- */

/* Whether a message can go to a node from the OUTBOX. */
static bool may_tell(uint32_t node)
{
	return ~outbox && express_accepts(node);
}

static uint32_t next_tag(void)
{
	return MCP_OUTBOX + lowest_bit(~outbox);
}

static void take(uint32_t tag)
{
	outbox |= 1u << (tag - MCP_OUTBOX);
}

static void tell(uint32_t node, uint32_t word)
{
	uint32_t tag = next_tag();
	struct transfer *transfer = transfer_enter(tag, TRANSFER_MESSAGE, 0, node);

	take(tag);
	transfer->word = word;
	express_message(tag);
}

bool message_tell(uint32_t node, uint32_t word)
{
	if (!may_tell(node))
		return false;
	tell(node, word);
	return true;
}

RARE void message_probe(uint32_t node)
{
	struct flow *flow = &flows[node];
	uint32_t tag;

	/* What is under way finds out as well. */
	if (flow->state == FLOW_ARMED ? REG_READ_AT(FAST_ACTIVE, set_word(node)) & set_bit(node)
				      : flow->state != FLOW_OPEN || flow->ended != flow->next)
		return;
	if (!may_tell(node))
		return;
	tag = next_tag();
	/* No notice. A put of no bytes uses neither key nor offset, so old values may stay
	 * there. */
	slot_write(tag, offsetof(struct dibber_inline_command, head), DIBBER_OPCODE_PUT_INLINE);
	transfer_enter(tag, TRANSFER_PROBE, 0, node)->length = 0;
	take(tag);
	express_probe(tag);
}

/* Send the reply to the request of an INBOX slot. */
APART bool message_reply(uint32_t inbox_tag)
{
	struct transfer *from = &transfers[inbox_tag];
	uint32_t tag;

	if (from->kind == TRANSFER_MESSAGE) {
		if (!express_accepts(from->node))
			return false;
		express_message(inbox_tag);
		return true;
	}
	if (!may_tell(from->node))
		return false;
	tag = next_tag();
	slot_write(tag, offsetof(struct dibber_reply, value), from->length);
	slot_write(tag, offsetof(struct dibber_reply, value) + 4, 0);
	slot_write(tag, offsetof(struct dibber_reply, status), from->status);
	tell(from->node, from->cookie);
	transfer_free_inbox(inbox_tag);
	return true;
}

static void reply_or_wait(uint32_t inbox_tag)
{
	if (!message_reply(inbox_tag))
		message_work |= 1u << (inbox_tag - MCP_INBOX);
}

void message_failed(uint32_t tag, uint32_t length, enum dibber_status status)
{
	struct transfer *transfer = &transfers[tag];

	transfer->kind = TRANSFER_REPLY;
	transfer->state = TRANSFER_SENT;
	transfer->cookie = (transfer->cookie & ~0xffu) | DIBBER_MESSAGE_GET_FAILED;
	transfer->length = length;
	transfer->status = status;
	reply_or_wait(tag);
}

void message_executed(uint32_t node, uint32_t slot, uint32_t word)
{
	uint32_t tag = MCP_INBOX + slot;

	/* There is no flow to this node itself, whatever number the host has given it since. */
	if (node == command_node) {
		mcp_shared.strays++;
		REG_WRITE(INBOX_FREE, slot);
		return;
	}
	transfer_enter(tag, TRANSFER_MESSAGE, 0, node)->word = word;
	reply_or_wait(tag);
}

RARE bool message_late(uint32_t node, uint32_t inbox_tag, uint32_t word)
{
	if (node >= DIBBER_NODES || node == command_node || !transfer_is_free(inbox_tag))
		return false;
	if (still > WORKS_TICKS)
		return true;
	transfer_enter(inbox_tag, TRANSFER_MESSAGE, 0, node)->word =
		(word & ~0xffu) | DIBBER_MESSAGE_LATE_REPLY;
	reply_or_wait(inbox_tag);
	return true;
}

RARE void message_waits(uint32_t node, uint32_t word)
{
	uint32_t tag = request_answered_by(node, word, DIBBER_MESSAGE_LATE_REPLY, TRANSFER_GET);

	if (tag != MCP_NO_TAG)
		transfers[tag].age = 0;
}

void message_sent(uint32_t tag)
{
	bool probe;

	if (tag >= MCP_INBOX) {
		transfer_free_inbox(tag);
		return;
	}
	probe = transfers[tag].kind == TRANSFER_PROBE;
	transfer_free(&transfers[tag]);
	outbox &= ~(1u << (tag - MCP_OUTBOX));
	/* The fast path may have had its flow before. */
	if (probe)
		express_rest(transfers[tag].node);
}

/* Arrival -------------------------------------------------------------------------------------- */

RARE void message_stray(uint32_t arrival, uint32_t word)
{
	mcp_shared.strays++;
	trace(DIBBER_TRACE_STRAY, arrival, word);
}
