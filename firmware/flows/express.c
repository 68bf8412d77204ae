/* The EXPRESS lane: packets that are made from a slot alone, inline puts and messages. Each
 * packet has one PSN. The ring of a flow tells by PSN which slot it was. Acknowledged packets
 * end, the others are queued again. No packet can fail half way.
 *
 * Most inline puts go the short way: EVENTS shows in one word all that must be decided. The
 * ring keeps that word, and writing it to POST_PUT completes the put. See README.md, "What an
 * inline put costs".
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "flows/express.h"

#include "command.h"
#include "flows/ended.h"
#include "flows/fast.h"
#include "queue.h"
#include "requests.h"

/*
 * What is under way, by PSN. An inline put is the word that EVENTS showed and POST_PUT wants,
 * with its status in the lowest byte. Any other entry is the tag of a transfer, without the
 * highest bit.
 */
static uint32_t ring[DIBBER_NODES][DIBBER_WINDOW];

#define EVENTS_ALONE	((1u << DIBBER_MCP_EVENTS_LENGTH_SHIFT) - 1)
#define EVENTS_ENDPOINT (DIBBER_MCP_EVENTS_ENDPOINT_MASK << DIBBER_MCP_EVENTS_ENDPOINT_SHIFT)

/* How much higher PUT_START has the endpoint: not at all, unless there are more than 8. */
#define ENDPOINT_HIGHER (DIBBER_MCP_PUT_START_ENDPOINT_SHIFT - DIBBER_MCP_EVENTS_ENDPOINT_SHIFT)

_Static_assert(DIBBER_MCP_EVENTS_PUT_SHIFT == 31, "it is a sign");
_Static_assert(DIBBER_MCP_EVENTS_LENGTH_SHIFT == DIBBER_MCP_POST_PUT_LENGTH_SHIFT &&
		       DIBBER_MCP_EVENTS_SOLICIT_SHIFT == DIBBER_MCP_POST_PUT_SOLICIT_SHIFT &&
		       DIBBER_MCP_EVENTS_NODE_SHIFT == DIBBER_MCP_POST_PUT_NODE_SHIFT &&
		       DIBBER_MCP_EVENTS_SLOT_SHIFT == DIBBER_MCP_POST_PUT_SLOT_SHIFT &&
		       DIBBER_MCP_EVENTS_ENDPOINT_SHIFT == DIBBER_MCP_POST_PUT_ENDPOINT_SHIFT,
	       "an inline put has one form");
_Static_assert(DIBBER_MCP_POST_PUT_STATUS_SHIFT == 0 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "the status is the first byte");

_Static_assert((DIBBER_WINDOW & (DIBBER_WINDOW - 1)) == 0, "the ring is masked");

/* The lane has number 0, so a node's number is that of its flow. */
_Static_assert(MCP_EXPRESS == 0, "a node's flow is found by its number");

static inline bool has_space(void)
{
	return REG_READ(EXPRESS_SPACE);
}

/* Open a flow, with room for a whole window. */
static inline void open_flow(struct flow *flow)
{
	flow->state = FLOW_OPEN;
	flow->limit = flow->ended + DIBBER_WINDOW;
}

static inline uint32_t *place_of(uint32_t number, uint32_t psn)
{
	return &ring[number][psn % DIBBER_WINDOW];
}

static inline uint32_t put_tag(uint32_t word)
{
	return FIELD_GET(EVENTS, ENDPOINT, word) * DIBBER_SLOTS + FIELD_GET(EVENTS, SLOT, word);
}

/* EXPRESS_START for the content of a slot, without the epoch. */
static ALWAYS uint32_t start_of(uint32_t tag, uint32_t length)
{
	return FIELD_PUT(EXPRESS_START, SLOT, tag % DIBBER_SLOTS) |
	       FIELD_PUT(EXPRESS_START, ENDPOINT, tag / DIBBER_SLOTS) |
	       FIELD_PUT(EXPRESS_START, LENGTH, length);
}

static ALWAYS void queue_packet(struct flow *flow, uint32_t psn, uint32_t start)
{
	REG_WRITE(EXPRESS_FLOW, flow->place | (psn & 0xffff));
	REG_WRITE(EXPRESS_START, start | FIELD_PUT(EXPRESS_START, EPOCH, flow->epoch));
}

/* Queue the packet of this ring entry again. */
static void queue(struct flow *flow, uint32_t psn, uint32_t word)
{
	uint32_t start;

	if (express_is_put(word)) {
		start = start_of(put_tag(word), FIELD_GET(EVENTS, LENGTH, word));
	} else if (transfers[word].kind == TRANSFER_INLINE ||
		   transfers[word].kind == TRANSFER_PROBE) {
		start = start_of(word, transfers[word].length);
	} else {
		start = start_of(word, 0) | FIELD_PUT(EXPRESS_START, MESSAGE, 1);
		REG_WRITE(EXPRESS_MESSAGE, transfers[word].word);
		mcp_shared.messages++;
	}
	queue_packet(flow, psn, start);
}

bool express_accepts(uint32_t node)
{
	fast_claim(node);
	return flows[node].next != flows[node].limit && has_space();
}

/* Queue a packet and enter it in the ring. The registers come first, because the packet waits
 * for them. */
static ALWAYS void submit(uint32_t tag, uint32_t start)
{
	uint32_t node = transfers[tag].node;
	struct flow *flow = &flows[node];

	queue_packet(flow, flow->next, start);
	*place_of(node, flow->next++) = tag;
}

void express_message(uint32_t tag)
{
	REG_WRITE(EXPRESS_MESSAGE, transfers[tag].word);
	mcp_shared.messages++;
	submit(tag, start_of(tag, 0) | FIELD_PUT(EXPRESS_START, MESSAGE, 1));
}

void express_probe(uint32_t tag)
{
	submit(tag, start_of(tag, 0));
}

/* Inline puts, the short way ------------------------------------------------------------------- */

/* The flow of an inline put takes nothing. Returns whether it does now. If not, pass over this
 * put, so that those of other endpoints do not wait for it. */
static RARE bool make_way(uint32_t node, uint32_t events)
{
	mcp_alive();
	if (flows[node].state == FLOW_ARMED) {
		fast_take(node);
		return flows[node].next != flows[node].limit;
	}
	/* The host has changed this card's node number since it was read. The ordinary check
	 * reports that. */
	if (flows[node].state == FLOW_SELF && queue_flush())
		express_command(put_tag(events), COMMAND_WORD(put_tag(events), opcode));
	else
		REG_WRITE(PUT_PASS, 1);
	return false;
}

/*
 * Send inline puts. The write that the packet waits for comes first, then what this program must
 * remember. Only the event loop calls this, which has no other use for the registers.
 */
uint32_t express_puts(uint32_t events)
{
	uint32_t done = 0;

	do {
		uint32_t node = FIELD_GET(EVENTS, NODE, events);
		struct flow *flow = &flows[node];

		if (flow->next == flow->limit && !make_way(node, events))
			break;
		REG_WRITE(PUT_START, flow->order | (events & EVENTS_ENDPOINT) << ENDPOINT_HIGHER |
					     (flow->next & 0xffff));
		IN_ORDER();
		*place_of(node, flow->next++) = events & ~EVENTS_ALONE;
		/* The next put shows 25 to 30 cycles after this one was taken, so one read may
		 * be too early. */
		events = REG_READ(EVENTS);
		if (!express_is_put(events))
			events = REG_READ(EVENTS);
	} while (++done < MCP_PUTS && express_is_put(events));
	mcp_shared.commands += done;
	return done;
}

static ALWAYS uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* End acknowledged inline puts in a row, as many as there is room for. Returns how many. */
static ALWAYS uint32_t end_puts(uint32_t number, struct flow *flow)
{
	uint32_t first = flow->ended, ended = first;
	uint32_t end = first + least(least(flow->acked - first, queue_room()), MCP_PUTS);

	while (ended != end) {
		uint32_t word = *place_of(number, ended);

		if (!express_is_put(word))
			break;
		ended++;
		REG_WRITE(POST_PUT, word);
	}
	flow->ended = ended;
	queue_used(ended - first);
	return ended - first;
}

/* Inline puts that are looked at as other commands are ----------------------------------------- */

static enum dibber_status check(uint32_t tag, uint32_t first_word, uint32_t node, uint32_t length)
{
	uint32_t flags = first_word >> 8 & 0xff;

	if (flags &
	    ~(DIBBER_FLAG_NOTICE | DIBBER_FLAG_INTERRUPT | DIBBER_FLAG_SOLICIT | DIBBER_FLAG_FENCE))
		return DIBBER_STATUS_BAD_FLAGS;
	if ((flags & (DIBBER_FLAG_NOTICE | DIBBER_FLAG_INTERRUPT)) == DIBBER_FLAG_INTERRUPT)
		return DIBBER_STATUS_BAD_FLAGS;
	if (first_word >> 16 & 0xff)
		return DIBBER_STATUS_BAD_LEVELS;
	if (node >= DIBBER_NODES || node == command_node)
		return DIBBER_STATUS_BAD_NODE;
	if (length > DIBBER_INLINE_BYTES)
		return DIBBER_STATUS_BAD_LENGTH;
	if (slot_word(tag, offsetof(struct dibber_inline_command, offset) + 4) >> 16)
		return DIBBER_STATUS_REMOTE_BOUNDS;
	return DIBBER_STATUS_OK;
}

APART bool express_command(uint32_t tag, uint32_t first_word)
{
	uint32_t node = COMMAND_WORD(tag, node); /* with reserved0, which makes it too large */
	uint32_t length = COMMAND_WORD(tag, length);
	enum dibber_status status = check(tag, first_word, node, length);
	struct transfer *transfer;

	if (status != DIBBER_STATUS_OK) {
		command_end(tag, first_word, length, node, status);
		return true;
	}
	if (!express_accepts(node))
		return false;
	transfer = transfer_enter(tag, TRANSFER_INLINE, 0, node);
	transfer->length = length;
	transfer->cookie = COMMAND_WORD(tag, cookie);
	transfer->key = 0;
	transfer->flags = first_word >> 8;
	submit(tag, start_of(tag, length));
	command_take(tag / DIBBER_SLOTS);
	mcp_shared.commands++;
	return true;
}

/* The fast path's ------------------------------------------------------------------------------ */

void express_adopt(uint32_t tag, uint32_t end)
{
	*place_of(transfers[tag].node, end - 1) = tag;
}

void express_claim(uint32_t node)
{
	flows[node].ended = flows[node].acked;
	open_flow(&flows[node]);
}

/* Acknowledgement, refusal, replay ------------------------------------------------------------- */

RARE uint32_t express_find(uint32_t number, uint32_t psn)
{
	struct flow *flow = &flows[number];
	uint32_t word = *place_of(number, psn);

	if (psn - flow->ended >= flow->next - flow->ended)
		return MCP_NO_TAG;
	return express_is_put(word) ? put_tag(word) : word;
}

RARE uint8_t *express_status(uint32_t number, uint32_t psn)
{
	uint32_t *word = place_of(number, psn);

	return express_is_put(*word) ? (uint8_t *)word : &transfers[*word].status;
}

RARE void express_rewind(uint32_t number)
{
	struct flow *flow = &flows[number];

	flow_rewind(number);
	flow->state = FLOW_REQUEUE;
	flow->limit = flow->next;
	flow->cursor = flow->acked;
	set_add(&flow_work, number);
}

static RARE void requeue(uint32_t number)
{
	struct flow *flow = &flows[number];

	/* Packets that were on the link already may have arrived after all. */
	if (psn_before(flow->cursor, flow->acked))
		flow->cursor = flow->acked;
	while (flow->cursor != flow->next && has_space()) {
		queue(flow, flow->cursor, *place_of(number, flow->cursor));
		flow->cursor++;
	}
	if (flow->cursor == flow->next)
		open_flow(flow);
	else
		set_add(&flow_work, number);
}

/* It is unknown whether what is before `end` was executed. It ends with `reason`, in a former
 * incarnation. Returns how many do. */
static RARE uint32_t give_up(uint32_t number, uint32_t end, enum dibber_status reason)
{
	struct flow *flow = &flows[number];
	uint32_t count = 0;

	for (uint32_t psn = flow->acked; psn != end; psn++) {
		uint32_t word = *place_of(number, psn);
		uint8_t *status = express_status(number, psn);

		/* An answer proves that the request arrived, even if its acknowledgement was
		 * lost. */
		if (*status == DIBBER_STATUS_OK &&
		    (express_is_put(word) || transfers[word].busy != BUSY_REQUEST)) {
			*status = reason;
			count++;
		}
	}
	/* As in bulk_expire(). From here on nothing reads the slots of the former incarnation. */
	flow_incarnate(number);
	flow->acked = end;
	flow->state = FLOW_OVER;
	flow->limit = flow->next;
	flow->idle = 0;
	set_add(&flow_work, number);
	return count;
}

RARE void express_expire(uint32_t number)
{
	mcp_shared.timeouts += give_up(number, flows[number].next, DIBBER_STATUS_TIMEOUT);
	set_add(&flow_lost, number);
}

RARE void express_restart(uint32_t number, uint32_t end)
{
	give_up(number, end, DIBBER_STATUS_PEER_RESTARTED);
}

/* Begin PSNs of the new incarnation. First in it is what the former one did not execute. */
static RARE void begin_anew(uint32_t number)
{
	static uint32_t kept[DIBBER_WINDOW];
	struct flow *flow = &flows[number];
	uint32_t count = flow->next - flow->ended;

	for (uint32_t i = 0; i < count; i++)
		kept[i] = *place_of(number, flow->ended + i);
	flow_renumber(flow);
	for (uint32_t i = 0; i < count; i++)
		*place_of(number, flow->next++) = kept[i];
	flow->state = FLOW_REQUEUE;
	flow->limit = flow->next;
	flow->cursor = flow->acked;
	set_add(&flow_work, number);
}

static RARE void step_on(uint32_t number)
{
	struct flow *flow = &flows[number];

	if (flow->state == FLOW_REQUEUE) {
		requeue(number);
	} else if (flow->state == FLOW_OVER && flow->ended == flow->acked) {
		if (flow->ended != flow->next) {
			begin_anew(number);
			return;
		}
		flow_renumber(flow);
		open_flow(flow);
		if (!request_is_open(number))
			fast_arm(number);
	}
}

/* End what did not go the short way. Returns whether the last one was a put, or a reply to an
 * atomic. */
static APART bool end_others(uint32_t number, uint32_t *done)
{
	struct flow *flow = &flows[number];
	bool put = false;

	while (flow->ended != flow->acked && *done < MCP_BATCH) {
		uint32_t tag = *place_of(number, flow->ended);

		if (express_is_put(tag))
			break;
		flow->ended++;
		put = transfers[tag].kind == TRANSFER_INLINE || tag >= MCP_INBOX;
		transfer_end(tag);
		++*done;
	}
	return put;
}

void express_rest(uint32_t number)
{
	struct flow *flow = &flows[number];

	if (flow->state != FLOW_OPEN)
		return;
	if (flow->ended == flow->next) {
		if ((fast_pauses(number) || fast_rests(number)) && !request_is_open(number))
			fast_arm(number);
	} else if (fast_pauses(number) && !request_is_open(number)) {
		flow->limit = flow->next;
		flow->ticks |= MCP_SHUT;
	}
}

uint32_t express_step(uint32_t number)
{
	struct flow *flow = &flows[number];
	uint32_t done = end_puts(number, flow);
	bool put = done;

	if (flow->ended != flow->acked) {
		if (!express_is_put(*place_of(number, flow->ended)))
			put = end_others(number, &done);
		/* There is no room for a completion, or this call has done enough. */
		if (flow->ended != flow->acked)
			set_add(&flow_work, number);
	}
	if (flow->state != FLOW_OPEN) {
		step_on(number);
		return done;
	}
	flow->limit = flow->ended + DIBBER_WINDOW;
	if (put || fast_pauses(number))
		express_rest(number);
	return done;
}
