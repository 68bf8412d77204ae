/* Everything that reaches the control program from outside, as an input says: commands with any
 * content on any endpoint, slots that their owner writes again, doorbells, what nodes send, what
 * engines and link report, time. In the end the world is good again: then each endpoint can be
 * closed, and each command that was taken has completed. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "barrier.h"
#include "firmware.h"
#include "fuzz.h"

#define REFUSALS_MAX  32u    /* what the gateware's two queues hold */
#define TURNS	      20000u /* after which an endpoint that is not closed will never be */
#define QUEUE_ENTRIES 64u
#define PUTS	      5u /* of the opcodes of a_command(), those that come first */
#define OPENED	      3u /* endpoints that are open when an input begins */

const struct fuzz_form fuzz_form = { .length = 4096, .bursts = 6, .burst = 4096 };

/* Inputs with completions, with strays, with transfers that timed out, with flows that were
 * claimed. */
enum { COMPLETED, STRAY, TIMED_OUT, CLAIMED };
struct fuzz_reached fuzz_reached[] = {
	[COMPLETED] = { "completed", 0 },
	[STRAY] = { "stray", 0 },
	[TIMED_OUT] = { "timed_out", 0 },
	[CLAIMED] = { "claimed", 0 },
	{ NULL, 0 },
};

_Static_assert(offsetof(struct dibber_admin_command, cookie) ==
			       offsetof(struct dibber_command, cookie) &&
		       offsetof(struct dibber_route_command, cookie) ==
			       offsetof(struct dibber_command, cookie),
	       "a cookie has one place");

/* Input ---------------------------------------------------------------------------------------- */

static const uint8_t *input;
static size_t left;

static uint32_t byte(void)
{
	if (!left)
		return 0;
	left--;
	return *input++;
}

static uint32_t word(void)
{
	uint32_t low = byte() | byte() << 8;

	return low | (byte() | byte() << 8) << 16;
}

/* Mostly what is in range, sometimes anything. */
static uint32_t pick(uint32_t range)
{
	uint32_t value = byte();

	return value < 248 ? value % range : word();
}

static uint32_t spread; /* nodes that most of this input is about: with few of them things meet */
static bool puts_only;	/* what the fast path takes, most of the time */

static uint32_t a_node(void)
{
	uint32_t value = byte();

	return value < 240 ? 1 + value % spread : pick(DIBBER_NODES);
}

/* Mostly one that was opened at first. */
static uint32_t an_endpoint(void)
{
	uint32_t value = byte();

	return value < 224 ? 1 + value % OPENED : value % DIBBER_ENDPOINTS;
}

static uint32_t a_length(void)
{
	switch (puts_only ? 3 + (byte() & 1) : byte() % 8) {
	case 0:
		return 0;
	case 1:
		return word();
	case 2:
		return word() >> 12;
	case 3:
		return DIBBER_PACKET_PAYLOAD * byte() + 8;
	default:
		return 8 * (byte() % 9) + 8 * puts_only;
	}
}

/* Commands ------------------------------------------------------------------------------------- */

static uint8_t *slot(uint32_t tag)
{
	return &fake_slots[tag * DIBBER_SLOT_BYTES];
}

static void set_cookie(uint32_t tag)
{
	uint32_t cookie = cookie_of(tag);

	memcpy(slot(tag) + offsetof(struct dibber_command, cookie), &cookie, sizeof(cookie));
}

static void a_walk(struct dibber_walk *walk, uint32_t length, bool levels)
{
	walk->key = byte();
	walk->block = levels && length % 8 == 0 ? 8 : length;
	walk->count[0] = length / 8;
}

/* What a program would write, as far as it looks like it; `out` is zeros. */
static void a_command(uint8_t *out)
{
	static const uint8_t opcodes[16] = {
		DIBBER_OPCODE_PUT,	   DIBBER_OPCODE_PUT,
		DIBBER_OPCODE_PUT,	   DIBBER_OPCODE_PUT_INLINE,
		DIBBER_OPCODE_PUT_INLINE,  DIBBER_OPCODE_GET,
		DIBBER_OPCODE_GET,	   DIBBER_OPCODE_SEND,
		DIBBER_OPCODE_SEND,	   DIBBER_OPCODE_RECEIVE,
		DIBBER_OPCODE_RECEIVE,	   DIBBER_OPCODE_FETCH_ADD,
		DIBBER_OPCODE_MASKED_SWAP, BARRIER_OPCODE,
		DIBBER_OPCODE_NOP,	   BARRIER_OPCODE,
	};
	struct dibber_command command = { .opcode = opcodes[byte() % (puts_only ? PUTS : 16)] };
	uint32_t flags = byte(), levels = byte();

	if (puts_only)
		flags &= 0x3f;
	command.flags = flags & 0x80 ? flags : flags & 0x40 ? flags & DIBBER_FLAG_FENCE : 0;
	command.levels = levels & 0x80 ? 0 : levels & 0x11;
	command.endpoint = an_endpoint();
	command.node = a_node();
	command.length = a_length();
	command.notice = command.opcode == BARRIER_OPCODE ? 2u << byte() % spread : byte();
	a_walk(&command.source, command.length, command.levels & 1);
	a_walk(&command.target, command.length, command.levels >> 4);
	if (command.opcode == DIBBER_OPCODE_PUT_INLINE || command.opcode >= DIBBER_OPCODE_FETCH_ADD)
		command.levels = 0;
	memcpy(out, &command, sizeof(command));
}

static void an_admin_command(uint8_t *out)
{
	struct dibber_admin_command command = {
		.opcode = DIBBER_OPCODE_ENDPOINT_OPEN + byte() % 6,
		.endpoint = an_endpoint(),
		.cq_base = 0x100000u,
		.eq_base = 0x200000u,
		.cq_entries = QUEUE_ENTRIES,
		.eq_entries = QUEUE_ENTRIES,
		.key = 1 + byte() % 4,
		.base = 0x10000,
		.length = 0x10000,
		.page = byte() & 1 ? 12 : 0,
	};
	struct dibber_route_command route = {
		.opcode = command.opcode,
		.place = byte() % 5,
		.valid = byte() & 1,
		.timeout = 1 + word() % (1u << 20),
		.node = a_node(),
		.route = byte() % 4,
	};

	if (command.opcode >= DIBBER_OPCODE_SCOUT)
		memcpy(out, &route, sizeof(route));
	else
		memcpy(out, &command, sizeof(command));
}

/* A slot of whatever set, of which some bytes may be anything. */
static void fill(uint32_t tag, bool admin)
{
	uint32_t spoiled = byte();

	memset(slot(tag), 0, DIBBER_SLOT_BYTES);
	if (admin)
		an_admin_command(slot(tag));
	else
		a_command(slot(tag));
	for (spoiled = spoiled < (puts_only ? 250 : 128) ? 0 : spoiled % 8; spoiled; spoiled--) {
		uint32_t at = byte() % DIBBER_SLOT_BYTES;

		slot(tag)[at] = byte();
	}
	set_cookie(tag);
}

static void ring(void)
{
	uint32_t endpoint = an_endpoint();

	for (uint32_t count = byte() % 8 + 1; count; count--) {
		uint32_t producer = (&REG(PRODUCER))[endpoint];

		/* Who owns the card does not ring for more than there is. */
		if (!endpoint && producer - (&REG(HEAD))[0] >= DIBBER_SLOTS)
			return;
		fill(endpoint * DIBBER_SLOTS + producer % DIBBER_SLOTS,
		     endpoint ? byte() > 250 : byte() < 240);
		(&REG(PRODUCER))[endpoint]++;
	}
}

static void scribble(void)
{
	uint32_t tag = an_endpoint() * DIBBER_SLOTS + byte() % DIBBER_SLOTS;

	for (uint32_t count = byte() % 8; count; count--) {
		uint32_t at = byte() % DIBBER_SLOT_BYTES;

		slot(tag)[at] = byte();
	}
	set_cookie(tag);
}

/* A doorbell that says anything, though not the administrator's; or the card has another number
 * now. */
static void lie(void)
{
	uint32_t endpoint = 1 + byte() % (DIBBER_ENDPOINTS - 1);

	switch (byte() % 6) {
	case 0:
		if (byte() < 32)
			(&REG(PRODUCER))[endpoint] = word();
		break;
	case 1:
		REG(NODE_ID) = byte() % DIBBER_NODES;
		break;
	case 2:
		(&REG(PRODUCER))[endpoint] += byte();
		break;
	case 3:
		fake_cq_consumer[endpoint] += byte();
		break;
	default:
		fake_eq_consumer[endpoint] = word();
		break;
	}
}

/* The wire ------------------------------------------------------------------------------------- */

static uint32_t strays; /* that there must be at least */

static void notice(void)
{
	fake_push(FIFO_ARRIVAL, a_node() % 256 | byte() % 16 << 8 | (byte() & 1) << 24, word(),
		  word(), word());
}

/* The context of a request of this card, as it is or nearly. */
static uint32_t a_context(uint32_t *node)
{
	uint32_t start = word();
	const struct request *request = &requests[start % MCP_COMMANDS];

	for (uint32_t i = 1; !request->sent && i < MCP_COMMANDS; i++)
		request = &requests[(start + i) % MCP_COMMANDS];
	*node = byte() < 240 ? request->node : byte();
	return byte() < 240 ? request->word : request->word ^ 1u << byte() % 32;
}

static void message(void)
{
	uint32_t number = byte() % DIBBER_SLOTS, type = byte() % 12, node,
		 context = a_context(&node);
	uint32_t tag = MCP_INBOX + number;

	if (inbox_used[number])
		return;
	inbox_used[number] = true;
	fill(tag, false);
	if (type >= DIBBER_MESSAGE_GET && type <= DIBBER_MESSAGE_READY_CANCEL && byte() & 1)
		slot(tag)[0] = type == DIBBER_MESSAGE_GET      ? DIBBER_OPCODE_GET
			       : type == DIBBER_MESSAGE_ATOMIC ? DIBBER_OPCODE_SWAP
							       : DIBBER_OPCODE_RECEIVE;
	if (type == DIBBER_MESSAGE_GET_FAILED || type == DIBBER_MESSAGE_ATOMIC_REPLY) {
		slot(tag)[offsetof(struct dibber_reply, status)] = byte() % 32;
	} else if (type != DIBBER_MESSAGE_LATE_REPLY) {
		node = a_node();
		context = (word() & ~0xff00u) | an_endpoint() << 8;
	}
	if (type > DIBBER_MESSAGE_LATE_REPLY)
		type = byte() & 1 ? BARRIER_MESSAGE : DIBBER_MESSAGE_LATE_REPLY + 1 + byte() % 100;
	strays += type > DIBBER_MESSAGE_LATE_REPLY && type < BARRIER_MESSAGE;
	fake_push(FIFO_ARRIVAL, (node & 0xff) | number << 16 | 1u << 25, (context & ~0xffu) | type,
		  0, 0);
}

static void respond(void)
{
	uint32_t node, context = a_context(&node);

	fake_push(FIFO_ARRIVAL, (node & 0xff) | 1u << 26, context, a_length(), 0);
}

static void refuse(void)
{
	uint32_t flow =
		byte() < 248 ? (byte() & 1) * DIBBER_NODES + a_node() % DIBBER_NODES : byte();
	uint32_t psn = byte() < 240 && flow < MCP_FLOWS ? (&REG(ACKED))[flow] + byte() % 8 : word();
	uint32_t reason = byte();

	if (refusals_waiting == REFUSALS_MAX)
		return;
	refusals_waiting++;
	fake_push(FIFO_REFUSAL, (psn & 0xffff) | reason << 16 | flow << 24, 0, 0, 0);
}

static void scout(void)
{
	uint32_t came = (a_node() & 0xffff) | (byte() & 1) << 16;
	uint32_t number = byte() & 1 ? scout_number : word();

	fake_push(FIFO_SCOUT, came, number, pick(8), 0);
}

/* Whoever was asked answers. */
static void answer_all(void)
{
	for (uint32_t tag = 0; tag < MCP_COMMANDS; tag++) {
		uint32_t number = 0;

		if (!requests[tag].sent)
			continue;
		if ((requests[tag].word & 0xff) != DIBBER_MESSAGE_ATOMIC) {
			fake_push(FIFO_ARRIVAL, requests[tag].node | 1u << 26, requests[tag].word,
				  8, 0);
		} else {
			while (number < DIBBER_SLOTS && inbox_used[number])
				number++;
			if (number == DIBBER_SLOTS)
				return;
			inbox_used[number] = true;
			memset(slot(MCP_INBOX + number), 0, DIBBER_SLOT_BYTES);
			fake_push(FIFO_ARRIVAL, requests[tag].node | number << 16 | 1u << 25,
				  (requests[tag].word & ~0xffu) | DIBBER_MESSAGE_ATOMIC_REPLY, 0,
				  0);
		}
		requests[tag].sent = false;
	}
}

/* The card ------------------------------------------------------------------------------------- */

static void atomic_done(uint32_t status)
{
	if (fake_atomics)
		fake_atomic_done(status, 0, 0);
}

/* What the timers are told: of each flow a packet has left that is not acknowledged, and somebody
 * works. */
static void progress(uint32_t what)
{
	for (uint32_t flow = 0; what & 1 && flow < MCP_FLOWS; flow++)
		fake_left(flow, ((&REG(ACKED))[flow] + what / 4) & 0xffff);
	REG(SEND_MOVED) = what >> 1 & 1;
	REG(PEER_WORKS) = (what & 3) == 2 ? what * 0x01010101u : 0;
}

/* The host has read all that there is. */
static void consume(uint32_t endpoint)
{
	fake_cq_consumer[endpoint] = (&REG(HEAD))[endpoint];
	fake_eq_consumer[endpoint] += QUEUE_ENTRIES;
}

/* What claims flows is rare while there are puts only, so that the fast path comes to something. */
static bool is_apart(void)
{
	return !puts_only || byte() < 16;
}

static void act(void)
{
	uint32_t a = byte(), flow;

	switch (a % 32) {
	case 0 ... 5:
		ring();
		break;
	case 6:
		if (is_apart())
			scribble();
		break;
	case 7:
		if (byte() < 64)
			lie();
		break;
	case 8 ... 11:
		engines_job(0, 0);
		break;
	case 12:
		engines_job(byte() % 32, word());
		break;
	case 13 ... 15:
		for (uint32_t count = byte() % 16 + 1; count; count--)
			engines_express();
		break;
	case 16 ... 18:
		for (flow = 0; flow < MCP_FLOWS; flow++)
			engines_ack(flow, byte() % 64 + 1);
		break;
	case 19:
		flow = (byte() & 1) * DIBBER_NODES + a_node() % DIBBER_NODES;
		engines_ack(flow, byte());
		if (is_apart())
			fake_nak(flow);
		break;
	case 20:
		if (is_apart())
			refuse();
		break;
	case 21:
		notice();
		break;
	case 22 ... 23:
		if (is_apart())
			message();
		break;
	case 24:
		if (is_apart())
			respond();
		break;
	case 25:
		if (is_apart())
			scout();
		break;
	case 26:
		atomic_done(byte() & 1 ? byte() % 64 : 0);
		break;
	case 27:
		if (byte() < 64)
			fake_link(byte() & 1);
		break;
	case 28:
		consume(byte() % DIBBER_ENDPOINTS);
		posts_leave();
		break;
	case 29:
		if (!puts_only)
			fake_fast = byte() & 3;
		REG(REGION_BUSY) = byte() & 1;
		REG(REGION_FRESH) = byte() & 1;
		break;
	case 30:
		/* Few inputs wait until somebody gives up: each tick costs as much as ten of the
		 * rest. */
		progress(byte());
		for (uint32_t count = byte() < 8 ? 1800 : byte() % 8; count; count--) {
			fake_advance(mcp_tick);
			engines_turn();
		}
		break;
	}
	for (uint32_t count = a / 32; count; count--)
		engines_turn();
}

/* One turn of a world in which all goes well. */
static void be_good(void)
{
	for (uint32_t i = 0; i < DIBBER_ENDPOINTS; i++)
		consume(i);
	posts_leave();
	engines_job(0, 0);
	for (uint32_t i = 0; i < 16; i++)
		engines_express();
	for (uint32_t flow = 0; flow < MCP_FLOWS; flow++)
		engines_ack(flow, DIBBER_WINDOW);
	atomic_done(0);
	answer_all();
	fake_advance(mcp_tick / 4);
	engines_turn();
}

static void close_all(void)
{
	for (uint32_t endpoint = 1; endpoint < DIBBER_ENDPOINTS; endpoint++) {
		uint32_t tag = (&REG(PRODUCER))[0] % DIBBER_SLOTS;
		struct dibber_admin_command command = { .opcode = DIBBER_OPCODE_ENDPOINT_CLOSE,
							.endpoint = endpoint };

		memcpy(slot(tag), &command, sizeof(command));
		set_cookie(tag);
		(&REG(PRODUCER))[0]++;
		for (uint32_t turns = 0; endpoints[endpoint].state != ENDPOINT_CLOSED ||
					 (&REG(PRODUCER))[0] != (&REG(HEAD))[0];
		     turns++) {
			if (turns == TURNS)
				abort();
			be_good();
		}
	}
}

/* All that the control program knows, as on a card that has just got power. AddressSanitizer has
 * its own there, between the variables. */
extern uint8_t __start_mcp_data[], __stop_mcp_data[], __start_mcp_kept[], __stop_mcp_kept[];

__attribute__((no_sanitize("address", "undefined"))) static void clear(volatile uint8_t *start,
								       volatile uint8_t *stop)
{
	while (start != stop)
		*start++ = 0;
}

static void boot(void)
{
	clear(__start_mcp_data, __stop_mcp_data);
	clear(__start_mcp_kept, __stop_mcp_kept);
	REG(GENERATION) = 0;
	fake_reset();
	engines_reset();
	for (uint32_t tag = 0; tag < MCP_COMMANDS; tag++)
		set_cookie(tag);
	REG(ADMIN_CQ_LOW) = 0x1000;
	REG(ADMIN_CQ_ENTRIES) = QUEUE_ENTRIES;
	REG(CLOCK_HZ) = 125000000;
	mcp_boot();
	for (uint32_t endpoint = 1; endpoint <= OPENED; endpoint++) {
		struct dibber_admin_command command = {
			.opcode = DIBBER_OPCODE_ENDPOINT_OPEN,
			.endpoint = endpoint,
			.cq_base = 0x100000u * endpoint,
			.eq_base = 0x1000000u * endpoint,
			.cq_entries = QUEUE_ENTRIES,
			.eq_entries = QUEUE_ENTRIES,
		};

		memcpy(slot(endpoint - 1), &command, sizeof(command));
		set_cookie(endpoint - 1);
	}
	REG(PRODUCER) = OPENED;
	while (REG(HEAD) != OPENED)
		engines_turn();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t mood = size ? data[size - 1] : 0;

	input = data;
	left = size;
	strays = 0;
	/* Zeros are what most inputs begin with, and fewest end with. */
	spread = (mood & 3) < 3 ? 1 + (mood >> 2 & 1) : DIBBER_NODES - 1;
	puts_only = (mood >> 3 & 3) == 3;
	boot();
	fake_fast = puts_only ? 3 : mood >> 5 & 3;
	while (left)
		act();
	fake_link(1);
	posts_flow = true;
	REG(REGION_BUSY) = 0;
	close_all();
	for (uint32_t turns = 0; scout_waiting || !engines_are_idle() || !is_all_completed();
	     turns++) {
		if (turns == TURNS)
			abort();
		be_good();
	}
	for (uint32_t fifo = 0; fifo < FIFOS; fifo++)
		if (fake_waiting(fifo))
			abort();
	for (uint32_t endpoint = 0; endpoint < DIBBER_ENDPOINTS; endpoint++)
		if (endpoints[endpoint].outstanding)
			abort();
	if (mcp_shared.strays < strays)
		abort();
	fuzz_reached[COMPLETED].count += completions > 10;
	fuzz_reached[STRAY].count += mcp_shared.strays != 0;
	fuzz_reached[TIMED_OUT].count += mcp_shared.timeouts != 0;
	fuzz_reached[CLAIMED].count += mcp_shared.claims != 0;
	return 0;
}
