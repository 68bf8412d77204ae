/* What the gateware does beside the control program: whose command is next, queues in host memory,
 * and the fast path with its flows. As the program sees it, which is between two of its accesses.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

#define FLOWS (DIBBER_LANES * DIBBER_NODES)
#define TAGS  (DIBBER_ENDPOINTS * DIBBER_SLOTS)
#define INBOX (DIBBER_INBOX * DIBBER_SLOTS)
#define BULK  (DIBBER_LANE_BULK * DIBBER_NODES)
#define ASKS  2

uint32_t fake_fast; /* FAST_PATH: opcodes that the host allows; get: others' requests too */
uint32_t fake_cq_consumer[DIBBER_ENDPOINTS], fake_eq_consumer[DIBBER_ENDPOINTS]; /* doorbells */
uint32_t fake_events_lost;
uint32_t fake_fast_commands, fake_fast_completions, fake_fast_answers, fake_fast_replies;

/* Queues --------------------------------------------------------------------------------------- */

static struct {
	uint64_t base;
	uint32_t entries; /* 0: closed */
	uint32_t vector;
	uint32_t start; /* the host's count when it was opened */
	uint32_t written;
	uint32_t overruns;
} queues[DIBBER_QUEUES];

static uint32_t consumer(uint32_t queue)
{
	return queue < DIBBER_ENDPOINTS ? fake_cq_consumer[queue]
					: fake_eq_consumer[queue - DIBBER_ENDPOINTS];
}

static void queue_open(uint32_t queue, uint32_t entries, uint32_t vector)
{
	queues[queue].base = (uint64_t)REG(QUEUE_BASE_HIGH) << 32 | REG(QUEUE_BASE_LOW);
	queues[queue].entries = entries;
	queues[queue].vector = vector;
	queues[queue].start = consumer(queue);
	queues[queue].written = 0;
	queues[queue].overruns = 0;
}

/* Write an entry; whether it was. `fast` is FAKE_FAST or 0. */
static bool post(uint32_t queue, bool interrupt, uint32_t cookie, uint32_t length, uint32_t what,
		 uint32_t key, uint32_t fast)
{
	uint32_t unread = queues[queue].start + queues[queue].written - consumer(queue);
	uint64_t address;

	if (queue >= DIBBER_ENDPOINTS && unread >= queues[queue].entries) {
		queues[queue].overruns++;
		fake_events_lost++;
		return false;
	}
	if (!queues[queue].entries)
		return false;
	address = queues[queue].base +
		  queues[queue].written % queues[queue].entries * DIBBER_QUEUE_ENTRY_BYTES;
	const uint32_t words[10] = {
		address,
		address >> 32,
		cookie,
		length,
		what,
		key,
		fake_now(),
		fake_now() >> 32,
		queues[queue].overruns,
		!(queues[queue].written / queues[queue].entries & 1),
	};
	queues[queue].written++;
	fake_log_write(DIBBER_MCP_POST_START, queues[queue].vector | interrupt << 8 | fast, words,
		       10);
	return true;
}

/* Commands ------------------------------------------------------------------------------------- */

static bool in_use[TAGS];
static uint32_t owed[DIBBER_ENDPOINTS];	   /* completions, those written among them */
static bool missed[DIBBER_ENDPOINTS];	   /* the next command is not for the fast path */
static uint32_t digests[DIBBER_ENDPOINTS]; /* it is an inline put without a fault, as EVENTS shows
					      it; or 0 */
static uint32_t cookies[TAGS];		   /* of such puts */
static uint32_t short_puts[DIBBER_ENDPOINTS]; /* started, and not ended */
static uint32_t turn;			      /* whose digest is shown */

static bool has_room(uint32_t endpoint)
{
	return queues[endpoint].start + owed[endpoint] - consumer(endpoint) <
	       queues[endpoint].entries;
}

static uint32_t next_tag(uint32_t endpoint)
{
	return endpoint * DIBBER_SLOTS + (&REG(HEAD))[endpoint] % DIBBER_SLOTS;
}

static bool is_rung(uint32_t endpoint)
{
	return (&REG(PRODUCER))[endpoint] != (&REG(HEAD))[endpoint];
}

/* Whether the next command has all that it needs, whoever executes it. */
static bool is_able(uint32_t endpoint)
{
	if (!queues[endpoint].entries)
		return is_rung(endpoint);
	return is_rung(endpoint) && !in_use[next_tag(endpoint)] && has_room(endpoint);
}

static void take(uint32_t endpoint)
{
	if (!is_able(endpoint))
		abort();
	in_use[next_tag(endpoint)] = true;
	(&REG(HEAD))[endpoint]++;
	owed[endpoint]++;
	missed[endpoint] = false;
	digests[endpoint] = 0;
}

static void free_slot(uint32_t tag)
{
	if (tag >= TAGS || !in_use[tag])
		abort();
	in_use[tag] = false;
}

uint32_t fast_room(void)
{
	uint32_t room = 0;

	for (uint32_t i = 0; i < DIBBER_ENDPOINTS; i++)
		room |= (uint32_t)has_room(i) << i;
	return room;
}

/* Endpoints whose next command is for the control program, and those whose next command is one of
 * the others. */
static uint32_t pending(void)
{
	uint32_t pending = 0;

	for (uint32_t i = 0; i < DIBBER_ENDPOINTS; i++)
		if (is_able(i) && (missed[i] || !(fake_fast && REG(FAST_ENDPOINTS) >> i & 1)))
			pending |= 1u << i;
	return pending;
}

static uint32_t shorts(void);

uint32_t fast_pending(void)
{
	return pending() & ~shorts();
}

/* Flows ---------------------------------------------------------------------------------------- */

struct put {
	uint32_t psn, tag, cookie, length; /* `psn` is the last one's */
	enum dibber_fast_kind kind;
	bool ended, solicit;
	bool atomic;
	uint32_t word; /* an ask's message word */
};

static struct {
	bool armed;
	uint32_t next, incarnation, epoch;
	uint32_t puts;
	struct put ring[DIBBER_FAST_PUTS]; /* the oldest first */
	uint32_t asks;			   /* that have left it, and wait for their answers */
	struct put waits[ASKS];
} flows[FLOWS];

/* Atomics of other nodes that have not been executed, the oldest first: ARRIVAL and message word.
 */
static struct {
	uint32_t arrival, message;
} atomics[DIBBER_SLOTS];
uint32_t fake_atomics;

static bool job_under_way[DIBBER_SLOT_SETS * DIBBER_SLOTS]; /* of the fast path */
static uint32_t claimed;

void fast_reset(void)
{
	memset(queues, 0, sizeof(queues));
	memset(in_use, 0, sizeof(in_use));
	memset(owed, 0, sizeof(owed));
	memset(missed, 0, sizeof(missed));
	memset(digests, 0, sizeof(digests));
	memset(short_puts, 0, sizeof(short_puts));
	turn = 0;
	memset(flows, 0, sizeof(flows));
	memset(job_under_way, 0, sizeof(job_under_way));
	memset(fake_cq_consumer, 0, sizeof(fake_cq_consumer));
	memset(fake_eq_consumer, 0, sizeof(fake_eq_consumer));
	fake_fast = 0;
	fake_events_lost = 0;
	fake_fast_commands = 0;
	fake_fast_completions = 0;
	fake_fast_answers = 0;
	fake_fast_replies = 0;
	fake_atomics = 0;
}

bool fast_is_armed(uint32_t flow)
{
	return flows[flow].armed;
}

bool fast_waits(uint32_t flow)
{
	return flows[flow].asks;
}

uint32_t fast_busy(void)
{
	uint32_t busy = 0;

	for (uint32_t i = 0; i < FLOWS; i++) {
		for (uint32_t n = 0; n < flows[i].puts; n++)
			if (flows[i].ring[n].tag < TAGS)
				busy |= 1u << flows[i].ring[n].tag / DIBBER_SLOTS;
		for (uint32_t n = 0; n < flows[i].asks; n++)
			busy |= 1u << flows[i].waits[n].tag / DIBBER_SLOTS;
	}
	for (uint32_t i = 0; i < DIBBER_ENDPOINTS; i++)
		busy |= (uint32_t)(short_puts[i] != 0) << i;
	return busy;
}

uint32_t fast_active(uint32_t first)
{
	uint32_t active = 0;

	for (uint32_t i = 0; i < 32; i++)
		active |= (uint32_t)(flows[first + i].armed &&
				     (flows[first + i].puts || flows[first + i].asks))
			  << i;
	return active;
}

static void drop_ask(uint32_t flow, uint32_t n)
{
	flows[flow].waits[n] = flows[flow].waits[--flows[flow].asks];
}

static void pop(uint32_t flow)
{
	if (!flows[flow].puts) {
		if (!flows[flow].asks)
			abort();
		drop_ask(flow, 0);
		return;
	}
	job_under_way[flows[flow].ring[0].tag] = false;
	flows[flow].puts--;
	memmove(&flows[flow].ring[0], &flows[flow].ring[1], flows[flow].puts * sizeof(struct put));
}

static uint32_t word(uint32_t tag, uint32_t offset)
{
	uint32_t value;

	memcpy(&value, &fake_slots[tag * DIBBER_SLOT_BYTES + offset], 4);
	return value;
}

static bool walk_is_good(uint32_t tag, uint32_t walk, uint32_t levels, uint32_t length)
{
	uint64_t product = word(tag, walk + 4);

	for (uint32_t i = 0; i < (levels & 3) && product && product <= DIBBER_FAST_LENGTH; i++)
		product *= word(tag, walk + offsetof(struct dibber_walk, count) + 4 * i);
	return levels <= DIBBER_LIST + DIBBER_LIST_LEVELS &&
	       (levels & DIBBER_LIST ? product - 1 < DIBBER_FAST_LENGTH : product == length);
}

static bool is_good_inline(uint32_t tag)
{
	return !(word(tag, 0) >> 16 & 0xff) && word(tag, 8) <= DIBBER_INLINE_BYTES &&
	       !(word(tag, offsetof(struct dibber_inline_command, offset) + 4) >> 16);
}

static bool is_atomic(uint32_t opcode)
{
	return opcode >= DIBBER_OPCODE_FETCH_ADD && opcode <= DIBBER_OPCODE_MASKED_SWAP;
}

static bool is_ask(uint32_t opcode)
{
	return opcode == DIBBER_OPCODE_GET || is_atomic(opcode);
}

/* Whether a command is one for the fast path, if the host allows any; then its flow. */
static bool is_good(uint32_t tag, uint32_t allowed, uint32_t *flow)
{
	const uint32_t known = DIBBER_FLAG_NOTICE | DIBBER_FLAG_INTERRUPT | DIBBER_FLAG_SOLICIT;
	uint32_t first = word(tag, 0), opcode = first & 0xff, flags = first >> 8 & 0xff,
		 node = word(tag, 4), length = word(tag, 8);
	const uint32_t source = offsetof(struct dibber_command, source);
	const uint32_t target = offsetof(struct dibber_command, target);

	if ((flags & ~known) || (flags & known & ~DIBBER_FLAG_SOLICIT) == DIBBER_FLAG_INTERRUPT ||
	    node >= DIBBER_NODES || node == REG(NODE_ID))
		return false;
	*flow = node;
	if (opcode == DIBBER_OPCODE_PUT_INLINE)
		return allowed & 1 && is_good_inline(tag);
	if (is_ask(opcode) && flags & ~DIBBER_FLAG_SOLICIT)
		return false;
	if (is_atomic(opcode))
		return allowed & 16 && !(first >> 16 & 0xff) && (length == 4 || length == 8) &&
		       !(word(tag, offsetof(struct dibber_atomic_command, offset) + 4) >> 16);
	if (opcode != DIBBER_OPCODE_GET)
		*flow = BULK + node;
	return (opcode == DIBBER_OPCODE_PUT ? allowed & 2 : is_ask(opcode) && allowed & 8) &&
	       length && length <= DIBBER_FAST_LENGTH &&
	       walk_is_good(tag, source, first >> 16 & 15, length) &&
	       walk_is_good(tag, target, first >> 20 & 15, length) &&
	       !(word(tag, offsetof(struct dibber_command, target.offset) + 4) >> 16);
}

/* Read the next commands that are for the control program, each once. Endpoints whose digests are
 * known. */
static uint32_t shorts(void)
{
	uint32_t found = 0, flow;

	for (uint32_t i = 0; i < DIBBER_ENDPOINTS; i++) {
		uint32_t tag = next_tag(i);

		if (!((pending() & REG(FAST_ENDPOINTS)) >> i & 1))
			continue;
		if (!digests[i] && is_good(tag, 1, &flow)) {
			cookies[tag] = word(tag, 12);
			digests[i] = 1u << DIBBER_MCP_EVENTS_PUT_SHIFT |
				     i << DIBBER_MCP_EVENTS_ENDPOINT_SHIFT |
				     (tag % DIBBER_SLOTS) << DIBBER_MCP_EVENTS_SLOT_SHIFT |
				     flow << DIBBER_MCP_EVENTS_NODE_SHIFT |
				     (uint32_t)((word(tag, 0) >> 8 & DIBBER_FLAG_SOLICIT) != 0)
					     << DIBBER_MCP_EVENTS_SOLICIT_SHIFT |
				     word(tag, 8) << DIBBER_MCP_EVENTS_LENGTH_SHIFT;
		}
		found |= (uint32_t)(digests[i] != 0) << i;
	}
	return found;
}

static void pass(uint32_t known)
{
	for (uint32_t i = 1; i <= DIBBER_ENDPOINTS; i++)
		if (known >> (turn + i) % DIBBER_ENDPOINTS & 1) {
			turn = (turn + i) % DIBBER_ENDPOINTS;
			return;
		}
}

uint32_t fast_digest(void)
{
	uint32_t known = shorts();

	if (!known)
		return 0;
	if (!(known >> turn & 1))
		pass(known);
	return digests[turn];
}

/* What a digest says, by its field. */
#define DIGEST(field, value) \
	((value) >> DIBBER_MCP_EVENTS_##field##_SHIFT & DIBBER_MCP_EVENTS_##field##_MASK)

static void put_start(uint32_t value)
{
	uint32_t endpoint =
		value >> DIBBER_MCP_PUT_START_ENDPOINT_SHIFT & DIBBER_MCP_PUT_START_ENDPOINT_MASK;
	uint32_t digest = digests[endpoint];
	const uint32_t words[2] = { (value & 0xffffff) | DIGEST(NODE, digest) << 24,
				    REG(EXPRESS_MESSAGE) };

	if (!digest)
		abort();
	fake_log_write(DIBBER_MCP_EXPRESS_START,
		       DIGEST(SLOT, digest) | endpoint << 8 | DIGEST(LENGTH, digest) << 16 |
			       (value >> 24 & 15) << 24,
		       words, 2);
	take(endpoint);
	short_puts[endpoint]++;
	/* Its next command is not known at once, those of others are. */
	pass(shorts());
}

static void put_end(uint32_t value)
{
	uint32_t tag = DIGEST(ENDPOINT, value) * DIBBER_SLOTS + DIGEST(SLOT, value);

	if (!short_puts[DIGEST(ENDPOINT, value)]--)
		abort();
	if (post(DIGEST(ENDPOINT, value), DIGEST(SOLICIT, value), cookies[tag],
		 DIGEST(LENGTH, value),
		 DIGEST(NODE, value) | DIBBER_ENTRY_COMPLETION << 16 | (value & 0xff) << 24, 0, 0))
		REG(POST_SPACE)--;
	free_slot(tag);
}

static void order(uint32_t flow, const struct put *put, uint32_t packets)
{
	bool is_answer = put->kind == DIBBER_FAST_KIND_ANSWER;
	uint32_t node = flow % DIBBER_NODES, first = (put->psn - packets + 1) & 0xffff;
	uint32_t place = first | flows[flow].incarnation << 16 | node << 24;
	uint32_t slot = put->tag % DIBBER_SLOTS, endpoint = put->tag / DIBBER_SLOTS;

	if (flow < BULK) {
		const uint32_t words[2] = { place, put->word };

		fake_log_write(DIBBER_MCP_EXPRESS_START,
			       (uint32_t)(put->kind == DIBBER_FAST_KIND_ASK ||
					  put->kind == DIBBER_FAST_KIND_REPLY)
					       << DIBBER_MCP_EXPRESS_START_MESSAGE_SHIFT |
				       slot | endpoint << DIBBER_MCP_EXPRESS_START_ENDPOINT_SHIFT |
				       (put->length & 0xff) << 16 | flows[flow].epoch << 24 |
				       FAKE_FAST,
			       words, 2);
	} else {
		const uint32_t words[5] = {
			slot | endpoint << DIBBER_MCP_JOB_SLOT_ENDPOINT_SHIFT |
				flows[flow].epoch << DIBBER_MCP_JOB_SLOT_EPOCH_SHIFT |
				(uint32_t)is_answer << DIBBER_MCP_JOB_SLOT_RESPONSE_SHIFT,
			place,
			is_answer ? put->cookie : 0,
			put->length,
			0,
		};

		job_under_way[put->tag] = true;
		fake_log_write(DIBBER_MCP_JOB_START, put->tag | FAKE_FAST, words, 5);
	}
}

/* A flow with room gets one more, and the engine its order. */
static void enter(uint32_t flow, struct put put)
{
	uint32_t packets = flow < BULK ? 1 : (put.length - 1) / DIBBER_PACKET_PAYLOAD + 1;

	put.psn = (flows[flow].next + packets - 1) & 0xffff;
	flows[flow].next = (flows[flow].next + packets) & 0xffff;
	flows[flow].ring[flows[flow].puts++] = put;
	order(flow, &put, packets);
}

static uint32_t asks_of(uint32_t flow)
{
	uint32_t asks = flows[flow].asks;

	for (uint32_t n = 0; n < flows[flow].puts; n++)
		asks += flows[flow].ring[n].kind == DIBBER_FAST_KIND_ASK;
	return asks;
}

static void expect(const struct put *put, uint32_t node, bool granted)
{
	uint32_t key = word(put->tag, offsetof(struct dibber_command, target.key));

	fake_log_write(DIBBER_MCP_EXPECT_WRITE,
		       put->word >> 16 | node << DIBBER_MCP_EXPECT_WRITE_NODE_SHIFT |
			       (uint32_t)granted << DIBBER_MCP_EXPECT_WRITE_VALID_SHIFT,
		       &key, 1);
}

/* Look at an endpoint's next command. */
static void offer(uint32_t endpoint)
{
	uint32_t tag = next_tag(endpoint), opcode = word(tag, 0) & 0xff, flow;
	struct put put;

	if (!is_good(tag, fake_fast, &flow) || !flows[flow].armed) {
		missed[endpoint] = true;
		return;
	}
	if (flows[flow].puts == DIBBER_FAST_PUTS || (is_ask(opcode) && asks_of(flow) == ASKS))
		return;
	put = (struct put){ .tag = tag,
			    .cookie = word(tag, 12),
			    .length = word(tag, 8),
			    .ended = flow < BULK,
			    .solicit = word(tag, 0) >> 8 & DIBBER_FLAG_SOLICIT,
			    .kind = DIBBER_FAST_KIND_PUT };
	if (is_ask(opcode)) {
		put.kind = DIBBER_FAST_KIND_ASK;
		put.atomic = is_atomic(opcode);
		put.word = (put.atomic ? DIBBER_MESSAGE_ATOMIC : DIBBER_MESSAGE_GET) |
			   endpoint << 8 | tag << 16 | REG(GENERATION) << 26;
	}
	if (opcode == DIBBER_OPCODE_GET)
		expect(&put, flow, true);
	enter(flow, put);
	take(endpoint);
	fake_fast_commands++;
}

bool fast_request(uint32_t arrival, uint32_t message)
{
	uint32_t node = arrival & DIBBER_MCP_ARRIVAL_NODE_MASK, flow = BULK + node;
	uint32_t tag =
		INBOX + (arrival >> DIBBER_MCP_ARRIVAL_SLOT_SHIFT & DIBBER_MCP_ARRIVAL_SLOT_MASK);
	uint32_t first = word(tag, 0), length = word(tag, 8);

	if (!(arrival >> DIBBER_MCP_ARRIVAL_MESSAGE_SHIFT & 1) ||
	    (message & 0xff) != DIBBER_MESSAGE_GET ||
	    !(fake_fast & REG(FAST_OPCODES) & 1u << DIBBER_MCP_FAST_OPCODES_GET_SHIFT) ||
	    node >= DIBBER_NODES || (first & 0xff) != DIBBER_OPCODE_GET || !length ||
	    length > DIBBER_FAST_LENGTH ||
	    !walk_is_good(tag, offsetof(struct dibber_command, source), first >> 16 & 15, length) ||
	    !walk_is_good(tag, offsetof(struct dibber_command, target), first >> 20 & 15, length) ||
	    word(tag, offsetof(struct dibber_command, target.offset) + 4) >> 16 ||
	    !flows[flow].armed || flows[flow].puts == DIBBER_FAST_PUTS)
		return false;
	enter(flow, (struct put){ .tag = tag,
				  .cookie = message,
				  .length = length,
				  .kind = DIBBER_FAST_KIND_ANSWER });
	fake_fast_answers++;
	return true;
}

bool fast_atomic(uint32_t arrival, uint32_t message)
{
	uint32_t node = arrival & DIBBER_MCP_ARRIVAL_NODE_MASK;

	if (!(arrival >> DIBBER_MCP_ARRIVAL_MESSAGE_SHIFT & 1) ||
	    (message & 0xff) != DIBBER_MESSAGE_ATOMIC || node >= DIBBER_NODES)
		return false;
	if (fake_atomics == DIBBER_SLOTS)
		abort();
	atomics[fake_atomics].arrival = arrival;
	atomics[fake_atomics++].message = message;
	return true;
}

bool fast_reply(uint32_t done, uint32_t word)
{
	uint32_t node = done & DIBBER_MCP_ATOMIC_DONE_NODE_MASK;
	uint32_t tag = INBOX + (done >> DIBBER_MCP_ATOMIC_DONE_SLOT_SHIFT &
				DIBBER_MCP_ATOMIC_DONE_SLOT_MASK);

	if (!(fake_fast & REG(FAST_OPCODES) & 1u << DIBBER_MCP_FAST_OPCODES_ATOMIC_SHIFT) ||
	    !flows[node].armed || flows[node].puts == DIBBER_FAST_PUTS)
		return false;
	enter(node, (struct put){ .tag = tag,
				  .cookie = word,
				  .word = word,
				  .kind = DIBBER_FAST_KIND_REPLY,
				  .ended = true });
	fake_fast_replies++;
	return true;
}

/* The oldest atomic has been executed, or was refused. Its slot of the inbox. */
uint32_t fake_atomic_done(uint32_t status, uint32_t low, uint32_t high)
{
	uint32_t node = atomics[0].arrival & DIBBER_MCP_ARRIVAL_NODE_MASK;
	uint32_t slot =
		atomics[0].arrival >> DIBBER_MCP_ARRIVAL_SLOT_SHIFT & DIBBER_MCP_ARRIVAL_SLOT_MASK;
	uint32_t done = node | slot << DIBBER_MCP_ATOMIC_DONE_SLOT_SHIFT;
	uint32_t word = (atomics[0].message & ~0xffu) | DIBBER_MESSAGE_ATOMIC_REPLY;
	const uint32_t reply[4] = { low, high, status };

	if (!fake_atomics)
		abort();
	fake_atomics--;
	memmove(&atomics[0], &atomics[1], fake_atomics * sizeof(atomics[0]));
	memcpy(&fake_slots[(INBOX + slot) * DIBBER_SLOT_BYTES], reply, sizeof(reply));
	fast_work();
	if (!fast_reply(done, word))
		fake_push(FIFO_ATOMIC, done, word, 0, 0);
	return slot;
}

/* Complete the oldest of a flow that are acknowledged. */
static void complete(uint32_t flow)
{
	while (flows[flow].puts && flows[flow].ring[0].ended && !fake_waiting(FIFO_REFUSAL) &&
	       (uint16_t)((&REG(ACKED))[flow] - flows[flow].ring[0].psn) < 0x8000) {
		struct put put = flows[flow].ring[0];

		if (put.kind == DIBBER_FAST_KIND_ANSWER || put.kind == DIBBER_FAST_KIND_REPLY) {
			fake_log_write(DIBBER_MCP_INBOX_FREE, (put.tag - INBOX) | FAKE_FAST,
				       fake_registers, 0);
			pop(flow);
			continue;
		}
		if (put.kind == DIBBER_FAST_KIND_ASK) {
			pop(flow);
			flows[flow].waits[flows[flow].asks++] = put;
			continue;
		}
		post(put.tag / DIBBER_SLOTS, put.solicit, put.cookie, put.length,
		     flow % DIBBER_NODES | DIBBER_ENTRY_COMPLETION << 16, 0, FAKE_FAST);
		free_slot(put.tag);
		pop(flow);
		fake_fast_completions++;
	}
}

void fast_work(void)
{
	for (uint32_t i = 0; fake_fast && i < DIBBER_ENDPOINTS; i++)
		while (REG(FAST_ENDPOINTS) >> i & 1 && !missed[i] && is_able(i)) {
			uint32_t head = (&REG(HEAD))[i];

			offer(i);
			if (head == (&REG(HEAD))[i])
				break;
		}
	for (uint32_t i = 0; i < FLOWS; i++)
		if (flows[i].armed)
			complete(i);
}

/* A job on this flow ended otherwise than it should. */
void fake_give(uint32_t flow)
{
	flows[flow].armed = false;
	FLOW_WORD(GIVEN, flow) |= FLOW_BIT(flow);
}

bool fast_job_done(uint32_t tag, uint32_t status, uint32_t psn)
{
	if (tag >= DIBBER_SLOT_SETS * DIBBER_SLOTS || !job_under_way[tag])
		return false;
	for (uint32_t i = BULK; i < FLOWS; i++)
		for (uint32_t n = 0; n < flows[i].puts; n++) {
			struct put *put = &flows[i].ring[n];

			if (put->tag != tag || put->ended || !flows[i].armed)
				continue;
			if (!status && (uint16_t)(psn - 1) == put->psn) {
				put->ended = true;
				job_under_way[tag] = false;
				return true;
			}
			fake_give(i);
		}
	return false;
}

/* An arrival: the end of an answer, or a reply in the inbox. */
bool fast_answered(uint32_t arrival, uint32_t value)
{
	uint32_t node = arrival & DIBBER_MCP_ARRIVAL_NODE_MASK;
	uint32_t slot =
		DIBBER_INBOX * DIBBER_SLOTS + (arrival >> DIBBER_MCP_ARRIVAL_SLOT_SHIFT & 31);
	bool atomic = arrival >> DIBBER_MCP_ARRIVAL_MESSAGE_SHIFT & 1;

	fast_work();
	if (node >= DIBBER_NODES || !flows[node].armed ||
	    (value & 0xff) != (atomic ? DIBBER_MESSAGE_ATOMIC_REPLY : DIBBER_MESSAGE_GET) ||
	    (!atomic && !(arrival >> DIBBER_MCP_ARRIVAL_RESPONSE_SHIFT & 1)) ||
	    (atomic && word(slot, offsetof(struct dibber_reply, status))))
		return false;
	for (uint32_t n = 0; n < flows[node].asks; n++) {
		struct put put = flows[node].waits[n];

		if (put.word >> 16 != value >> 16 || put.atomic != atomic)
			continue;
		post(put.tag / DIBBER_SLOTS, put.solicit, put.cookie,
		     atomic ? word(slot, 0) : put.length, node | DIBBER_ENTRY_COMPLETION << 16,
		     atomic ? word(slot, 4) : 0, FAKE_FAST);
		free_slot(put.tag);
		drop_ask(node, n);
		expect(&put, node, false);
		if (atomic)
			fake_log_write(DIBBER_MCP_INBOX_FREE, slot % DIBBER_SLOTS, fake_registers,
				       0);
		FLOW_WORD(FAST_MOVED, node) |= FLOW_BIT(node);
		fake_fast_completions++;
		return true;
	}
	return false;
}

uint32_t fast_claimed(uint32_t offset)
{
	const struct put *put =
		flows[claimed].puts ? &flows[claimed].ring[0] : &flows[claimed].waits[0];

	switch (offset) {
	case DIBBER_MCP_CLAIM_STATE:
		return flows[claimed].next |
		       flows[claimed].puts << DIBBER_MCP_CLAIM_STATE_ENTRIES_SHIFT |
		       flows[claimed].asks << DIBBER_MCP_CLAIM_STATE_ASKS_SHIFT |
		       put->word >> 26 << DIBBER_MCP_CLAIM_STATE_GENERATION_SHIFT;
	case DIBBER_MCP_CLAIM_ENTRY:
		return ((put->psn + 1) & 0xffff) | put->tag << DIBBER_MCP_CLAIM_ENTRY_TAG_SHIFT |
		       (uint32_t)put->ended << DIBBER_MCP_CLAIM_ENTRY_ENDED_SHIFT |
		       (uint32_t)put->kind << DIBBER_MCP_CLAIM_ENTRY_KIND_SHIFT |
		       (uint32_t)put->atomic << DIBBER_MCP_CLAIM_ENTRY_ATOMIC_SHIFT |
		       (uint32_t)put->solicit << DIBBER_MCP_CLAIM_ENTRY_SOLICIT_SHIFT;
	case DIBBER_MCP_CLAIM_COOKIE:
		return put->cookie;
	default:
		return put->length;
	}
}

/* Registers ------------------------------------------------------------------------------------ */

static void arm(uint32_t flow, uint32_t epoch)
{
	uint32_t place = REG(ARM_PLACE);

	/* It was popped empty, it leads to another node, and all before this place is acknowledged.
	 */
	if (flows[flow].armed || flows[flow].puts || flows[flow].asks ||
	    place >> 24 != flow % DIBBER_NODES ||
	    (uint16_t)((&REG(ACKED))[flow] + 1) != (uint16_t)place)
		abort();
	flows[flow].armed = true;
	flows[flow].next = place & 0xffff;
	flows[flow].incarnation = place >> 16 & 0xff;
	flows[flow].epoch = epoch;
}

void fast_write(uint32_t offset, uint32_t value)
{
	switch (offset) {
	case DIBBER_MCP_COMMAND_TAKE:
		if (!(pending() >> value & 1))
			abort();
		take(value);
		break;
	case DIBBER_MCP_COMMAND_SKIP:
		(&REG(HEAD))[value] = (&REG(PRODUCER))[value];
		missed[value] = false;
		digests[value] = 0;
		break;
	case DIBBER_MCP_PUT_START:
		put_start(value);
		break;
	case DIBBER_MCP_PUT_PASS:
		pass(shorts());
		break;
	case DIBBER_MCP_POST_PUT:
		put_end(value);
		break;
	case DIBBER_MCP_SLOT_FREE:
		free_slot((value & 0xff) + (value >> 8) * DIBBER_SLOTS);
		break;
	case DIBBER_MCP_QUEUE_OPEN:
		queue_open(value & 0xff, 1u << (value >> 8 & 0xff), value >> 16);
		if ((value & 0xff) < DIBBER_ENDPOINTS)
			owed[value & 0xff] = 0;
		break;
	case DIBBER_MCP_QUEUE_CLOSE:
		queues[value].entries = 0;
		break;
	case DIBBER_MCP_FLOW_ARM:
		arm(value & 0xff, value >> 8);
		memset(missed, 0, sizeof(missed));
		memset(digests, 0, sizeof(digests));
		break;
	case DIBBER_MCP_FLOW_CLAIM:
		claimed = value;
		flows[claimed].armed = false;
		break;
	case DIBBER_MCP_CLAIM_POP:
		pop(claimed);
		break;
	case DIBBER_MCP_POST_START:
		/* It has left at once; one that is written leaves when a test has seen it. */
		if (post(value & 0xff, value >> 16 & 1, REG(POST_COOKIE), REG(POST_LENGTH),
			 REG(POST_WHAT), REG(POST_KEY), 0))
			REG(POST_SPACE)--;
		if (value >> 17 & 1)
			free_slot((value & 0xff) * DIBBER_SLOTS + (value >> 8 & 0xff));
		break;
	}
}
