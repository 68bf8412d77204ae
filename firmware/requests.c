/* Requests of this card that wait for answers. A request goes from the slot of its command; its
 * context comes back in the answer. The gateware lets the data of an answer in by a table that is
 * indexed by the context's tag (EXPECT_*).
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "requests.h"

uint16_t request_asks[DIBBER_NODES][REQUEST_ASKS];
struct set request_nodes;
uint8_t request_readies[DIBBER_NODES];
struct line request_turn;
uint32_t request_turn_work;
uint32_t request_receives;
uint8_t request_generation;

void request_next_generation(void)
{
	REG_WRITE(GENERATION_NEXT, 0);
	request_generation = REG_READ(GENERATION);
}

/* Boot ----------------------------------------------------------------------------------------- */

static void expect(uint32_t context, uint32_t node, bool valid)
{
	REG_WRITE(EXPECT_WRITE, FIELD_PUT(EXPECT_WRITE, CONTEXT, context) |
					FIELD_PUT(EXPECT_WRITE, NODE, node) |
					FIELD_PUT(EXPECT_WRITE, VALID, valid));
}

/* The last program may have left some. */
static RARE void forget_all(void)
{
	for (uint32_t tag = 0; tag < MCP_COMMANDS; tag++)
		expect(tag, 0, false);
}

RARE void request_boot(void)
{
	request_next_generation();
	for (uint32_t node = 0; node < DIBBER_NODES; node++)
		for (uint32_t i = 0; i < REQUEST_ASKS; i++)
			request_asks[node][i] = MCP_NO_TAG;
	line_clear(&request_turn);
	forget_all();
}

/* Credit --------------------------------------------------------------------------------------- */

uint16_t *request_find(uint32_t node, uint32_t tag)
{
	for (uint32_t i = 0; i < REQUEST_ASKS; i++)
		if (request_asks[node][i] == tag)
			return &request_asks[node][i];
	return NULL;
}

bool request_is_open(uint32_t node)
{
	return request_asks[node][0] != MCP_NO_TAG || request_asks[node][1] != MCP_NO_TAG;
}

void request_enter(uint16_t *place, uint32_t tag)
{
	transfers[tag].age = 0;
	*place = tag;
	set_add(&request_nodes, transfers[tag].node);
}

void request_ready_ended(uint32_t tag)
{
	request_readies[transfers[tag].node]--;
	request_receives--;
	request_turn_work |= request_turn.head != MCP_NO_TAG;
}

/* Contexts ------------------------------------------------------------------------------------- */

static uint32_t context(uint32_t tag, uint32_t generation)
{
	return tag / DIBBER_SLOTS << 8 | tag << 16 | generation << 26;
}

void request_context(uint32_t tag)
{
	transfers[tag].word = context(tag, request_generation);
}

RARE void request_adopt(uint32_t tag, uint32_t generation)
{
	struct transfer *transfer = &transfers[tag];

	transfer->word =
		context(tag, generation) |
		(transfer->kind == TRANSFER_GET ? DIBBER_MESSAGE_GET : DIBBER_MESSAGE_ATOMIC);
	request_enter(request_find(transfer->node, MCP_NO_TAG), tag);
}

uint32_t request_answered_by(uint32_t node, uint32_t word, enum dibber_message type,
			     enum transfer_kind kind)
{
	uint32_t tag = REQUEST_TAG(word);

	if (tag >= MCP_COMMANDS || node >= DIBBER_NODES || transfers[tag].kind != kind ||
	    !(transfers[tag].busy & BUSY_ANSWER) || transfers[tag].node != node ||
	    ((transfers[tag].word ^ word) & ~0xffu) || (word & 0xff) != type)
		return MCP_NO_TAG;
	return tag;
}

/* Answers that are let in ---------------------------------------------------------------------- */

void request_expect(uint32_t tag, uint32_t key)
{
	REG_WRITE(EXPECT_KEY, key);
	expect(transfers[tag].word >> 16, transfers[tag].node, true);
}

void request_forget(uint32_t tag)
{
	expect(transfers[tag].word >> 16, transfers[tag].node, false);
}
