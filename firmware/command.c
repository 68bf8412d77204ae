/* This file is part of Dibber. */
/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Commands: endpoints take turns, and each command is checked for what the gateware cannot know.
 * Keys, owners, rights and bounds are the gateware's to check, where it uses them.
 *
 * A command that cannot go on now (no job space, its flow restarts, its completion queue has no
 * room) stays in its slot, HEAD does not move, and the next turn tries again: nothing is ever
 * half taken.
 */

#include "mcp.h"
#include "registers.h"

struct endpoint endpoints[DIBBER_ENDPOINTS];

static uint32_t turn;	/* endpoint that is asked first */

RARE void command_boot(void)
{
	for (uint32_t i = 0; i < DIBBER_ENDPOINTS; i++) {
		/* What was rung before this program ran is not for it. */
		endpoints[i].head = REG_READ_AT(PRODUCER, i);
		REG_WRITE_AT(HEAD, i, endpoints[i].head);
	}
}

void command_take(uint32_t endpoint)
{
	endpoints[endpoint].outstanding++;
	endpoints[endpoint].head++;
	REG_WRITE_AT(HEAD, endpoint, endpoints[endpoint].head);
}

void command_complete(uint32_t endpoint, uint32_t cookie, uint32_t length, uint32_t node,
		      uint32_t status, bool solicit)
{
	const uint32_t words[4] = {
		cookie, length, node | DIBBER_ENTRY_COMPLETION << 16 | status << 24, 0,
	};

	endpoints[endpoint].outstanding--;
	trace(TRACE_COMPLETION, endpoint << 8 | status, cookie);
	queue_write(&endpoints[endpoint].completions, words, solicit);
}

/*
 * counts x block must be the length. A product that does not fit 32 bits is no length; a zero
 * anywhere makes it zero, however large the rest. The steps are as many as there are levels.
 */
static inline enum dibber_status check_walk(uint32_t tag, uint32_t walk, uint32_t levels,
					    uint32_t length)
{
	uint32_t product = slot_word(tag, walk + offsetof(struct dibber_walk, block));
	uint32_t counts = walk + offsetof(struct dibber_walk, count);
	uint32_t overflow = 0;
	bool zero = !product;

	for (uint32_t i = 0; i < levels; i++) {
		uint32_t count = slot_word(tag, counts + 4 * i);
		uint64_t wide = (uint64_t)product * count;

		zero |= !count;
		overflow |= wide >> 32;
		product = wide;
	}
	if (zero)
		return length ? DIBBER_STATUS_BAD_COUNT : DIBBER_STATUS_OK;
	return overflow || product != length ? DIBBER_STATUS_BAD_LENGTH : DIBBER_STATUS_OK;
}

static inline enum dibber_status check_put(uint32_t tag, uint32_t first_word, uint32_t node,
					   uint32_t length)
{
	uint32_t flags = first_word >> 8 & 0xff;
	uint32_t source_levels = first_word >> 16 & 0xf;
	uint32_t target_levels = first_word >> 20 & 0xf;
	uint32_t offset_low, offset_high;
	enum dibber_status status;

	if (flags & ~(DIBBER_FLAG_NOTICE | DIBBER_FLAG_INTERRUPT | DIBBER_FLAG_SOLICIT))
		return DIBBER_STATUS_BAD_FLAGS;
	if ((flags & DIBBER_FLAG_INTERRUPT) && !(flags & DIBBER_FLAG_NOTICE))
		return DIBBER_STATUS_BAD_FLAGS;
	if (source_levels > DIBBER_LEVELS || target_levels > DIBBER_LEVELS)
		return DIBBER_STATUS_BAD_LEVELS;
	if (node >= DIBBER_NODES || node == REG_READ(NODE_ID))
		return DIBBER_STATUS_BAD_NODE;
	status = check_walk(tag, offsetof(struct dibber_command, source), source_levels, length);
	if (status == DIBBER_STATUS_OK)
		status = check_walk(tag, offsetof(struct dibber_command, target), target_levels,
				    length);
	if (status != DIBBER_STATUS_OK)
		return status;

	/*
	 * Offsets travel in 48 bits. Without levels the sender adds a packet's place to the
	 * offset, and a sum that does not fit would come out at the region's start.
	 */
	offset_low = COMMAND_WORD(tag, target.offset);
	offset_high = slot_word(tag, offsetof(struct dibber_command, target.offset) + 4);
	if (!target_levels && length)
		offset_high += offset_low + (length - 1) < offset_low;
	return offset_high >> 16 ? DIBBER_STATUS_REMOTE_BOUNDS : DIBBER_STATUS_OK;
}

/* Put an accepted or refused command off HEAD and complete it at once. */
static RARE void command_end(uint32_t endpoint, uint32_t tag, uint32_t first_word,
			     uint32_t length, uint32_t node, enum dibber_status status)
{
	uint32_t cookie = COMMAND_WORD(tag, cookie);

	command_take(endpoint);
	trace(TRACE_COMMAND, tag, first_word);
	if (status == DIBBER_STATUS_OK)
		mcp_shared.commands++;
	else
		mcp_shared.refused++;
	command_complete(endpoint, cookie, length, node & 0xffff, status,
			 first_word >> 8 & DIBBER_FLAG_SOLICIT);
}

/* Everything but a put: these end at once, except ENDPOINT_CLOSE. */
static RARE void command_other(uint32_t endpoint, uint32_t tag, uint32_t first_word)
{
	uint32_t opcode = first_word & 0xff;
	uint32_t flags = first_word >> 8 & 0xff;
	enum dibber_status status = DIBBER_STATUS_OK;

	if (opcode >= DIBBER_OPCODE_ENDPOINT_OPEN && !endpoint) {
		uint32_t cookie = ADMIN_WORD(tag, cookie);

		command_take(endpoint);
		trace(TRACE_COMMAND, tag, first_word);
		if (admin_command(tag, first_word, &status))
			command_complete(endpoint, cookie, 0, 0, status,
					 flags & DIBBER_FLAG_SOLICIT);
		if (status == DIBBER_STATUS_OK)
			mcp_shared.commands++;
		else
			mcp_shared.refused++;
		return;
	}
	if (opcode != DIBBER_OPCODE_NOP)
		status = DIBBER_STATUS_BAD_OPCODE;
	else if (flags & ~DIBBER_FLAG_SOLICIT)
		status = DIBBER_STATUS_BAD_FLAGS;
	command_end(endpoint, tag, first_word, 0, 0, status);
}

/* Returns whether the command was taken. */
static inline bool command_execute(uint32_t endpoint, uint32_t tag)
{
	uint32_t first_word = COMMAND_WORD(tag, opcode);
	uint32_t node, length;
	enum dibber_status status;

	if ((first_word & 0xff) != DIBBER_OPCODE_PUT || !endpoint) {
		command_other(endpoint, tag, first_word);
		return true;
	}
	node = COMMAND_WORD(tag, node);		/* and reserved0, which makes it too large */
	length = COMMAND_WORD(tag, length);
	status = check_put(tag, first_word, node, length);
	if (status != DIBBER_STATUS_OK) {
		command_end(endpoint, tag, first_word, length, node, status);
		return true;
	}
	if (!flow_accepts(node, packets_of(length)))
		return false;
	mcp_shared.commands++;
	transfer_submit(tag, node, length, COMMAND_WORD(tag, cookie),
			first_word >> 8 & DIBBER_FLAG_SOLICIT);
	command_take(endpoint);
	return true;
}

static bool command_next(uint32_t index)
{
	struct endpoint *endpoint = &endpoints[index];
	uint32_t producer = REG_READ_AT(PRODUCER, index);
	uint32_t tag = index * DIBBER_SLOTS + endpoint->head % DIBBER_SLOTS;

	/* COMMAND_PENDING may not know yet of the command that was just taken. */
	if (producer == endpoint->head)
		return false;
	if (endpoint->state == ENDPOINT_CLOSED) {
		mcp_shared.refused++;
		endpoint->head = producer;
		REG_WRITE_AT(HEAD, index, producer);
		return true;
	}
	/* The slot is in use when the host rings for more commands than there are slots. */
	if (endpoint->state == ENDPOINT_CLOSING || !transfer_is_free(tag) ||
	    !queue_has_room(&endpoint->completions, endpoint->outstanding + 1u))
		return false;
	return command_execute(index, tag);
}

uint32_t command_handler(void)
{
	uint32_t done = 0;

	for (uint32_t i = 0; i < MCP_BATCH; i++) {
		uint32_t pending = REG_READ(COMMAND_PENDING);
		uint32_t endpoint;

		if (!pending)
			break;
		endpoint = next_turn(pending, turn);
		turn = (endpoint + 1) % DIBBER_ENDPOINTS;
		done += command_next(endpoint);
	}
	return done;
}
