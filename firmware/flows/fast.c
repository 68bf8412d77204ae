/* Which flows the fast path has. On an armed flow the gateware sends puts, takes
 * acknowledgements and completes. For anything else this program claims the flow first. Then
 * all that is under way there looks as if this program had sent it.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "flows/fast.h"

#include "command.h"
#include "flows/bulk.h"
#include "flows/express.h"
#include "requests.h"
#include "trace.h"

_Static_assert(DIBBER_MCP_JOB_FLOW_PSN_SHIFT == DIBBER_MCP_ARM_PLACE_PSN_SHIFT &&
		       DIBBER_MCP_JOB_FLOW_NODE_SHIFT == DIBBER_MCP_ARM_PLACE_NODE_SHIFT &&
		       DIBBER_MCP_JOB_FLOW_INCARNATION_SHIFT ==
			       DIBBER_MCP_ARM_PLACE_INCARNATION_SHIFT,
	       "a flow's place has one form");
_Static_assert(DIBBER_FAST_PUTS *(DIBBER_FAST_LENGTH / DIBBER_PACKET_PAYLOAD + 1) < MCP_PSNS,
	       "what the fast path has under way is told apart by 16 bits");

/* Arm all flows that lead to another node, so that the first put can go the fast path. */
RARE void fast_boot(void)
{
	for (uint32_t number = 0; number < MCP_FLOWS; number++)
		if (flows[number].state == FLOW_OPEN)
			fast_arm(number);
	REG_WRITE(FAST_OPCODES,
		  FIELD_PUT(FAST_OPCODES, PUT_INLINE, 1) | FIELD_PUT(FAST_OPCODES, PUT, 1) |
			  FIELD_PUT(FAST_OPCODES, EVENT, 1) | FIELD_PUT(FAST_OPCODES, GET, 1) |
			  FIELD_PUT(FAST_OPCODES, ATOMIC, 1));
}

RARE void fast_arm(uint32_t number)
{
	struct flow *flow = &flows[number];

	flow->state = FLOW_ARMED;
	set_remove(&flow_active, number);
	flow->limit = flow->next;
	flow->puts = 0;
	flow->ticks = 0;
	REG_WRITE(ARM_PLACE, flow->place | (flow->next & 0xffff));
	REG_WRITE(FLOW_ARM,
		  FIELD_PUT(FLOW_ARM, FLOW, number) | FIELD_PUT(FLOW_ARM, EPOCH, flow->epoch));
	trace(DIBBER_TRACE_ARM, number, flow->next);
}

/* Packets of the oldest transfer that is under way. */
static uint32_t packets_of_entry(uint32_t number)
{
	return number < MCP_BULK ? 1 : packets_of(REG_READ(CLAIM_LENGTH));
}

/* The kind of transfer that an entry of the fast path is here. */
static uint32_t adopted(uint32_t number, uint32_t entry)
{
	switch (FIELD_GET(CLAIM_ENTRY, KIND, entry)) {
	case DIBBER_FAST_KIND_ASK:
		return FIELD_GET(CLAIM_ENTRY, ATOMIC, entry) ? TRANSFER_ATOMIC : TRANSFER_GET;
	case DIBBER_FAST_KIND_ANSWER:
		return TRANSFER_ANSWER;
	case DIBBER_FAST_KIND_REPLY:
		return TRANSFER_MESSAGE;
	default:
		return number < MCP_BULK ? TRANSFER_INLINE : TRANSFER_PUT;
	}
}

/* Enter a transfer of the fast path here. `asks`: it has left the ring and waits only for its
 * answer. */
static void adopt(uint32_t number, bool asks)
{
	uint32_t generation = FIELD_GET(CLAIM_STATE, GENERATION, REG_READ(CLAIM_STATE));
	uint32_t entry = REG_READ(CLAIM_ENTRY);
	uint32_t packets = packets_of_entry(number);
	uint32_t length = REG_READ(CLAIM_LENGTH);
	uint32_t cookie = REG_READ(CLAIM_COOKIE);
	uint32_t tag = FIELD_GET(CLAIM_ENTRY, TAG, entry);
	uint32_t next = flows[number].next;
	uint32_t end = next - (uint16_t)(next - FIELD_GET(CLAIM_ENTRY, PSN, entry));
	struct transfer *transfer;

	/* The next entry shows 6 cycles later. What follows takes longer. */
	REG_WRITE(CLAIM_POP, 1);
	transfer = transfer_enter(tag, adopted(number, entry), 0, number % DIBBER_NODES);
	transfer->length = length;
	transfer->word = cookie;
	if (FIELD_GET(CLAIM_ENTRY, KIND, entry) == DIBBER_FAST_KIND_ASK) {
		transfer->busy = asks ? BUSY_ANSWER : BUSY_REQUEST | BUSY_ANSWER;
		request_adopt(tag, generation);
	}
	transfer->cookie = cookie;
	transfer->key = 0;
	transfer->flags = FIELD_GET(CLAIM_ENTRY, SOLICIT, entry) ? DIBBER_FLAG_SOLICIT : 0;
	if (tag < MCP_COMMANDS)
		endpoints[tag / DIBBER_SLOTS].outstanding++;
	/* Its packet was acknowledged, so it has no PSN any more. */
	if (asks)
		return;
	if (number < MCP_BULK)
		express_adopt(tag, end);
	else
		bulk_adopt(tag, end, packets, FIELD_GET(CLAIM_ENTRY, ENDED, entry));
}

RARE void fast_take(uint32_t number)
{
	struct flow *flow = &flows[number];
	uint32_t claimed, entries, all, moved, under_way = 0;

	mcp_alive();
	REG_WRITE(FLOW_CLAIM, number);
	REG_WRITE_AT(GIVEN, set_word(number), set_bit(number));
	/* The registers show the claim 6 cycles later, so the first read is too early. */
	REG_READ(CLAIM_STATE);
	claimed = REG_READ(CLAIM_STATE);
	entries = FIELD_GET(CLAIM_STATE, ENTRIES, claimed);
	all = entries + FIELD_GET(CLAIM_STATE, ASKS, claimed);
	moved = (uint16_t)(FIELD_GET(CLAIM_STATE, PSN, claimed) - flow->next);
	if (entries)
		under_way =
			(uint16_t)(FIELD_GET(CLAIM_STATE, PSN, claimed) + packets_of_entry(number) -
				   FIELD_GET(CLAIM_ENTRY, PSN, REG_READ(CLAIM_ENTRY)));
	/* Whole rounds of 65,536 PSNs are not counted, and nothing needs them. But nothing
	 * under way is before the place where the flow was armed. */
	if (moved < under_way)
		moved += 1u << 16;

	/* It was armed in vain: the next time it is armed later, after 1, 3, 7 and at most 63
	 * puts. */
	flow->shy = moved ? 0 : (2 * flow->shy + 1) & 63;
	flow->state = FLOW_OPEN;
	flow->next += moved;
	flow->acked = flow->next - under_way;
	flow->doubt = flow->acked;
	mcp_shared.claims++;
	trace(DIBBER_TRACE_CLAIM, number, all);
	for (uint32_t i = 0; i < all; i++)
		adopt(number, i >= entries);
	if (number < MCP_BULK)
		express_claim(number);
	set_add(&flow_active, number);
	set_add(&flow_work, number);

	flow_advance(number);
	flow_works(flow);
	flow->replays = 0;
}

RARE uint32_t fast_given(void)
{
	struct set given;
	uint32_t number, any;

	SET_READ(GIVEN, given);
	any = set_any(&given);
	SET_WRITE(GIVEN, given);
	while (set_take(&given, &number))
		fast_claim(number);
	return any != 0;
}

RARE void fast_claim_active(void)
{
	struct set active;
	uint32_t number;

	SET_READ(FAST_ACTIVE, active);
	while (set_take(&active, &number))
		fast_claim(number);
}

/*
 * Claim flows that have stalled for two ticks, of which the first may be short. The tick that
 * claims a flow counts as one tick that its packets have waited (replay.c). No time counts while
 * nothing that has left is unacknowledged and the work goes on. The work is the send engine's or,
 * for an answer, that of the node that was asked.
 */
RARE void fast_tick(const struct set *works, bool sends)
{
	static struct set stalled;
	struct set moved, still, bulk, left;
	uint32_t number;

	SET_READ(FAST_MOVED, moved);
	SET_READ(FAST_ACTIVE, still);
	set_copy(&bulk, works);
	set_cut(&bulk, MCP_BULK);
	SET_WRITE(FAST_MOVED, moved);
	for (uint32_t i = 0; i < SET_WORDS; i++)
		still.word[i] &= ~moved.word[i] & ~bulk.word[i];
	set_copy(&left, &still);
	while (set_take(&left, &number)) {
		bool waits = flow_waits(number);

		mcp_alive();
		if (!waits && ((sends && number >= MCP_BULK) || set_has(works, number))) {
			set_remove(&still, number);
		} else if (set_has(&stalled, number)) {
			fast_claim(number);
			flows[number].waited = waits;
		}
	}
	for (uint32_t i = 0; i < SET_WORDS; i++)
		stalled.word[i] = still.word[i] & ~stalled.word[i];
}
