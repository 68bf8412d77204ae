/* Messages between control programs: requests go from the slot of the command that makes them,
 * replies to atomics from that of the INBOX which the request had, others from a slot of the
 * OUTBOX. What comes from the wire is believed as far as this program's own state confirms it;
 * anything else is counted, traced and dropped.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "barrier.h"
#include "mcp.h"

#define ASKS 2 /* requests under way to a node: 16 nodes cannot fill an inbox of 32 */

/* A get may be long, and its answer is not seen before its end: so many bytes a tick are enough. */
#define ANSWER_BYTES 4096u

/* Ticks of 50 us until the node that was asked is told something, and from then on to the next
 * time. */
#define PROBE_FIRST 4u
#define PROBE_TICKS 16u

static uint16_t asks[DIBBER_NODES][ASKS]; /* tags of requests that wait for their answers */
static uint32_t
	asked; /* a bit for each node with such a request, and until the next tick for others */
static uint32_t lost;	/* a bit for each node of which requests are marked as lost */
static uint32_t outbox; /* a bit for each slot of the OUTBOX in use */
uint32_t message_work;

/*
 * Of requests that are made now. It changes when one is given up whose answer may yet come, so that
 * this answer finds nobody. The gateware counts, because answers to requests of the last program
 * must not reach this one.
 */
static uint8_t generation;

static void next_generation(void)
{
	REG_WRITE(GENERATION_NEXT, 0);
	generation = REG_READ(GENERATION);
}

RARE void message_boot(void)
{
	next_generation();
	for (uint32_t node = 0; node < DIBBER_NODES; node++)
		for (uint32_t i = 0; i < ASKS; i++)
			asks[node][i] = MCP_NO_TAG;
}

/* Requests ------------------------------------------------------------------------------------- */

static uint16_t *find_ask(uint32_t node, uint32_t tag)
{
	for (uint32_t i = 0; i < ASKS; i++)
		if (asks[node][i] == tag)
			return &asks[node][i];
	return NULL;
}

uint16_t *message_may_ask(uint32_t node)
{
	uint16_t *place = find_ask(node, MCP_NO_TAG);

	return place && !fast_pauses(node) && express_accepts(node) ? place : NULL;
}

static uint32_t context(uint32_t tag, uint32_t of)
{
	return tag / DIBBER_SLOTS << 8 | tag << 16 | of << 26;
}

void message_context(uint32_t tag)
{
	transfers[tag].word = context(tag, generation);
}

void message_request(uint32_t tag, enum dibber_message type)
{
	transfers[tag].word |= type;
	express_message(tag);
}

static void enter(uint16_t *place, uint32_t tag)
{
	transfers[tag].age = 0;
	*place = tag;
	asked |= 1u << transfers[tag].node;
}

void message_ask(uint16_t *place, uint32_t tag, enum dibber_message type)
{
	message_request(tag, type);
	enter(place, tag);
}

RARE void message_adopt(uint32_t tag, uint32_t of)
{
	struct transfer *transfer = &transfers[tag];

	transfer->word =
		context(tag, of) |
		(transfer->kind == TRANSFER_GET ? DIBBER_MESSAGE_GET : DIBBER_MESSAGE_ATOMIC);
	enter(find_ask(transfer->node, MCP_NO_TAG), tag);
}

/* The request has ended, one way or the other. */
static void finish(uint32_t tag)
{
	struct transfer *transfer = &transfers[tag];
	uint32_t node = transfer->node;

	if (transfer->kind != TRANSFER_ATOMIC)
		get_forget(tag);
	if (transfer->kind == TRANSFER_RECEIVE) {
		receive_ended(tag);
	} else {
		*find_ask(node, tag) = MCP_NO_TAG;
	}
	if ((transfer->status == DIBBER_STATUS_TIMEOUT ||
	     transfer->status == DIBBER_STATUS_FLUSHED ||
	     transfer->status == DIBBER_STATUS_PEER_RESTARTED) &&
	    transfer->word >> 26 == generation)
		next_generation();
	transfer->busy = 0;
	transfer_complete(tag);
	express_rest(node);
}

bool message_asks(uint32_t node)
{
	return asks[node][0] != MCP_NO_TAG || asks[node][1] != MCP_NO_TAG;
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

uint32_t message_asked(uint32_t node, uint32_t word, enum dibber_message type,
		       enum transfer_kind kind)
{
	uint32_t tag = MCP_CONTEXT_TAG(word);

	if (tag >= MCP_COMMANDS || node >= DIBBER_NODES || transfers[tag].kind != kind ||
	    !(transfers[tag].busy & BUSY_ANSWER) || transfers[tag].node != node ||
	    ((transfers[tag].word ^ word) & ~0xffu) || (word & 0xff) != type)
		return MCP_NO_TAG;
	return tag;
}

void message_answered(uint32_t tag, enum dibber_status status)
{
	struct transfer *transfer = &transfers[tag];

	/* Who answers is at work: what else it was asked for has its time again. */
	for (uint32_t i = 0; i < ASKS; i++)
		if (asks[transfer->node][i] != MCP_NO_TAG)
			transfers[asks[transfer->node][i]].age = 0;
	transfer->status = status;
	transfer->busy &= ~BUSY_ANSWER;
	/* Until the message is acknowledged its slot may be sent again. */
	if (!transfer->busy)
		finish(tag);
}

RARE uint32_t message_tick(uint32_t works)
{
	uint32_t done = 0;

	for (uint32_t mask = asked; mask && done < MCP_BATCH; mask &= mask - 1) {
		uint32_t node = lowest_bit(mask);

		mcp_alive();
		if (!message_asks(node))
			asked &= ~(1u << node);
		for (uint32_t i = 0; i < ASKS; i++) {
			uint32_t tag = asks[node][i];
			struct transfer *transfer;
			uint32_t patience = MCP_GIVE_UP;

			/* While its message is not acknowledged, its flow has the clock. */
			if (tag == MCP_NO_TAG || (transfers[tag].busy & BUSY_REQUEST))
				continue;
			transfer = &transfers[tag];
			if (transfer->kind == TRANSFER_GET) {
				patience += transfer->length / ANSWER_BYTES;
				/* What comes from there may be its answer, or what the engine there
				 * does before it. */
				if (works >> node & 1)
					transfer->age = 0;
			}
			if (++transfer->age <= patience) {
				/* The node that was asked may have begun anew since, and says so
				 * only when it is told something. */
				if (transfer->age % PROBE_TICKS == PROBE_FIRST)
					message_probe(node);
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
		/* To look through all 256 takes 50 us, which the first transfer to the new life
		 * would wait. */
		if (!endpoints[tag / DIBBER_SLOTS].outstanding) {
			tag |= DIBBER_SLOTS - 1;
			continue;
		}
		if (transfers[tag].node == node && transfers[tag].busy == BUSY_ANSWER) {
			transfers[tag].status = DIBBER_STATUS_PEER_RESTARTED;
			lost |= 1u << node;
		}
	}
}

RARE uint32_t message_restarted(uint32_t node, uint32_t most)
{
	uint32_t done = 0;

	if (!(lost & 1u << node))
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
		lost &= ~(1u << node);
	return done;
}

/* Replies -------------------------------------------------------------------------------------- */

void message_free(uint32_t tag)
{
	transfer_free(&transfers[tag]);
	/* Not while the engine has its job: the slot's next get may be the fast path's, and its job
	 * must be the only one. */
	if (transfer_is_free(tag))
		REG_WRITE(INBOX_FREE, tag - MCP_INBOX);
}

/* Whether a message can go to a node from the OUTBOX, and sending what is in its next slot. */
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
	if (flow->state == FLOW_ARMED ? REG_READ(FAST_ACTIVE) & 1u << node
				      : flow->state != FLOW_OPEN || flow->ended != flow->next)
		return;
	if (!may_tell(node))
		return;
	tag = next_tag();
	/* Without a notice. Which key and offset a former message left there does not matter for a
	 * put of no bytes. */
	slot_write(tag, offsetof(struct dibber_inline_command, head), DIBBER_OPCODE_PUT_INLINE);
	transfer_enter(tag, TRANSFER_PROBE, 0, node)->length = 0;
	take(tag);
	express_probe(tag);
}

/* Send the reply to what lies, or lay, in a slot of the inbox; false while it must wait. */
static APART bool reply(uint32_t inbox_tag)
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
	message_free(inbox_tag);
	return true;
}

static void reply_or_wait(uint32_t inbox_tag)
{
	if (!reply(inbox_tag))
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

void message_sent(uint32_t tag)
{
	bool probe;

	if (tag >= MCP_INBOX) {
		message_free(tag);
		return;
	}
	probe = transfers[tag].kind == TRANSFER_PROBE;
	transfer_free(&transfers[tag]);
	outbox &= ~(1u << (tag - MCP_OUTBOX));
	/* Its flow may have been the fast path's. */
	if (probe)
		express_rest(transfers[tag].node);
}

/* What could not go on when it came: answers to gets and receives, and replies. */
static bool go_on(uint32_t tag)
{
	switch (transfers[tag].kind) {
	case TRANSFER_ANSWER:
		return get_answer(tag);
	case TRANSFER_READY:
		return send_start(tag);
	default:
		return reply(tag);
	}
}

APART uint32_t message_handler(void)
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

RARE void message_stray(uint32_t arrival, uint32_t word)
{
	mcp_shared.strays++;
	trace(DIBBER_TRACE_STRAY, arrival, word);
}

/* A request of another node: its place is that of its slot in the inbox. */
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

void message_arrived(uint32_t arrival, uint32_t word)
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
	case BARRIER_MESSAGE:
		known = barrier_arrived(node, word);
		break;
	}
	if (!known)
		message_stray(arrival, word);
	/* A slot that has a request in it is freed at that one's end. */
	if (transfer_is_free(tag))
		REG_WRITE(INBOX_FREE, slot);
}
