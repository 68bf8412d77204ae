/* BARRIER: an operation in firmware alone, the example of README.md, "How to add an opcode".
 * Gateware, library and interface do not know it; a program submits its slot with
 * dib_submit().
 *
 * Endpoints of the same number on a set of nodes enter, and each command completes when all
 * have entered. An endpoint that enters sends a message to each other node. Messages of one
 * node come in order. A node cannot enter the next barrier before this one is over for it, so
 * at most two messages of a node are counted.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "barrier.h"

#include "command.h"
#include "message.h"
#include "sets.h"

struct barrier {
	uint32_t cookie;
	uint32_t began;	   /* card's clock when it was taken */
	uint32_t limit;	   /* cycles after that; 0: no limit */
	struct set nodes;  /* the other nodes; empty: no barrier is under way */
	struct set untold; /* those of them that were not told yet */
	uint8_t tag;
	bool solicit;
	uint8_t came[DIBBER_NODES]; /* messages of each node that are not used up */
};

static struct barrier barriers[DIBBER_ENDPOINTS];
uint32_t barrier_work;

RARE void barrier_boot(void)
{
	for (uint32_t index = 0; index < DIBBER_ENDPOINTS; index++)
		barrier_forget(index);
}

/* A new owner of the endpoint does not wait for the messages to the last one. */
RARE void barrier_forget(uint32_t index)
{
	for (uint32_t node = 0; node < DIBBER_NODES; node++)
		barriers[index].came[node] = 0;
}

static RARE void end(uint32_t index, enum dibber_status status)
{
	struct barrier *barrier = &barriers[index];

	set_fill(&barrier->nodes, 0);
	barrier_work &= ~(1u << index);
	command_complete(barrier->tag, barrier->cookie, 0, command_node, status, 0,
			 barrier->solicit);
}

/* The nodes that a command names. False: there is none, or one that cannot be. */
static bool nodes_of(uint32_t tag, struct set *nodes)
{
	set_fill(nodes, 0);
	nodes->word[0] = COMMAND_WORD(tag, notice);
	if (DIBBER_NODES < 32)
		return nodes->word[0] && !(nodes->word[0] >> DIBBER_NODES % 32);
	if (DIBBER_NODES > 32)
		nodes->word[SET_WORDS / 2 - 1] = COMMAND_WORD(tag, reserved1);
	return set_any(nodes);
}

RARE bool barrier_command(uint32_t tag, uint32_t first_word)
{
	uint32_t index = tag / DIBBER_SLOTS;
	uint32_t flags = first_word >> 8 & 0xff;
	struct set nodes;
	uint32_t limit = COMMAND_WORD(tag, length);
	struct barrier *barrier = &barriers[index];

	if (flags & ~(DIBBER_FLAG_SOLICIT | DIBBER_FLAG_FENCE)) {
		command_end(tag, first_word, 0, 0, DIBBER_STATUS_BAD_FLAGS);
		return true;
	}
	if (!nodes_of(tag, &nodes) || set_has(&nodes, command_node) || limit > BARRIER_LIMIT) {
		command_end(tag, first_word, 0, 0, DIBBER_STATUS_BAD_ARGUMENT);
		return true;
	}
	if (set_any(&barrier->nodes))
		return false;
	barrier->cookie = COMMAND_WORD(tag, cookie);
	barrier->began = REG_READ(CYCLES_LOW);
	barrier->limit = limit;
	set_copy(&barrier->nodes, &nodes);
	set_copy(&barrier->untold, &nodes);
	barrier->tag = tag;
	barrier->solicit = flags & DIBBER_FLAG_SOLICIT;
	barrier_work |= 1u << index;
	command_take(index);
	mcp_shared.commands++;
	return true;
}

static bool is_over(struct barrier *barrier)
{
	struct set nodes;
	uint32_t node;

	set_copy(&nodes, &barrier->nodes);
	while (set_take(&nodes, &node))
		if (!barrier->came[node])
			return false;
	set_copy(&nodes, &barrier->nodes);
	while (set_take(&nodes, &node))
		barrier->came[node]--;
	return true;
}

static RARE uint32_t step(uint32_t index)
{
	struct barrier *barrier = &barriers[index];
	struct set untold;
	uint32_t done = 0, node;

	set_copy(&untold, &barrier->untold);
	mcp_alive();
	while (set_take(&untold, &node)) {
		if (message_tell(node, BARRIER_MESSAGE | index << 8)) {
			set_remove(&barrier->untold, node);
			done++;
		}
	}
	if (!set_any(&barrier->untold) && is_over(barrier)) {
		end(index, DIBBER_STATUS_OK);
		done++;
	} else if (barrier->limit && REG_READ(CYCLES_LOW) - barrier->began >= barrier->limit) {
		mcp_shared.timeouts++;
		end(index, DIBBER_STATUS_TIMEOUT);
		done++;
	}
	return done;
}

RARE uint32_t barrier_handler(void)
{
	uint32_t done = 0;

	for (uint32_t mask = barrier_work; mask; mask &= mask - 1)
		done += step(lowest_bit(mask));
	return done;
}

RARE bool barrier_close_step(uint32_t index)
{
	if (!set_any(&barriers[index].nodes))
		return false;
	end(index, DIBBER_STATUS_FLUSHED);
	return true;
}

RARE bool barrier_arrived(uint32_t node, uint32_t word)
{
	uint32_t index = word >> 8 & 0xff;

	/* At most two. A node that sends more harms only its own barriers. */
	if (node >= DIBBER_NODES || index >= REG_READ(ENDPOINTS) || barriers[index].came[node] == 2)
		return false;
	barriers[index].came[node]++;
	return true;
}
