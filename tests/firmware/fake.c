/* What the control program sees of the card, for native builds and for the RV32 model: registers
 * with their side effects, command slots, and a clock that moves with each access. What takes
 * commands and posts entries beside the program is in fake_fast.c; for the rest it decides nothing:
 * writes that start something go to a log, and tests push what the engines would say.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

#define LOG	      65536
#define FIFO	      1024
#define ACCESS_CYCLES 4

uint32_t fake_registers[DIBBER_MCP_SIZE / 4];
uint8_t fake_slots[DIBBER_SLOT_SETS * DIBBER_SLOTS * DIBBER_SLOT_BYTES];
struct fake_log fake_log[LOG];
uint32_t fake_logged;
uint32_t fake_accesses;
uint32_t fake_post_every; /* accesses until a post leaves the queue; 0: tests do it */

static uint32_t fifo[FIFOS][FIFO][4];
static uint32_t fifo_head[FIFOS], fifo_tail[FIFOS];
static uint64_t cycles;
static uint32_t timer;

/* What the program cannot read back on the card either. */
static const uint32_t silent[] = DIBBER_MCP_SILENT;

#define OUTBOX_BASE (DIBBER_MCP_SLOT_BASE + DIBBER_OUTBOX * DIBBER_SLOTS * DIBBER_SLOT_BYTES)

void fake_reset(void)
{
	uint32_t generation = REG(GENERATION);

	memset(fake_registers, 0, sizeof(fake_registers));
	REG(GENERATION) = generation; /* only power clears it */
	memset(fake_slots, 0, sizeof(fake_slots));
	memset(fifo_head, 0, sizeof(fifo_head));
	memset(fifo_tail, 0, sizeof(fifo_tail));
	fake_logged = 0;
	fake_accesses = 0;
	fake_post_every = 0;
	fast_reset();
	cycles = 0;
	timer = 0;
	REG(JOB_SPACE) = 16;
	REG(POST_SPACE) = 16;
	REG(EXPRESS_SPACE) = 16;
	REG(SCOUT_SPACE) = DIBBER_SCOUTS;
	REG(LINK) = 1;
	REG(REGION_FRESH) = 1;
	REG(ENDPOINTS) = DIBBER_ENDPOINTS;
}

void fake_push(uint32_t which, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	const uint32_t words[4] = { a, b, c, d };

	if (which == FIFO_ARRIVAL &&
	    (fast_answered(a, b) || fast_request(a, b) || fast_atomic(a, b)))
		return;
	if (fifo_tail[which] - fifo_head[which] == FIFO)
		abort();
	memcpy(fifo[which][fifo_tail[which]++ % FIFO], words, sizeof(words));
}

void fake_ack(uint32_t flow, uint32_t psn)
{
	(&REG(ACKED))[flow] = psn;
	if (fast_is_armed(flow) && !fast_waits(flow))
		FLOW_WORD(FAST_MOVED, flow) |= FLOW_BIT(flow);
	else if (!fast_is_armed(flow))
		FLOW_WORD(ACKED_CHANGED, flow) |= FLOW_BIT(flow);
}

void fake_job_done(uint32_t tag, uint32_t status, uint32_t psn, uint32_t checksum)
{
	if (!fast_job_done(tag, status, psn))
		fake_push(FIFO_JOB_DONE,
			  tag << DIBBER_MCP_JOB_DONE_TAG_SHIFT |
				  status << DIBBER_MCP_JOB_DONE_STATUS_SHIFT |
				  psn << DIBBER_MCP_JOB_DONE_PSN_SHIFT,
			  checksum, 0, 0);
}

void fake_nak(uint32_t flow)
{
	FLOW_WORD(NAKED, flow) |= FLOW_BIT(flow);
}

/* A packet has left to its end. */
void fake_left(uint32_t flow, uint32_t psn)
{
	(&REG(LEFT))[flow] = psn | 1u << DIBBER_MCP_LEFT_VALID_SHIFT;
}

/* Packets of the flow were dropped, because its target did not answer what it holds. */
void fake_vain(uint32_t flow)
{
	(&REG(LEFT))[flow] |= 1u << DIBBER_MCP_LEFT_VAIN_SHIFT;
}

/* The target's late answer: packets may leave from now on, and the program is told. */
void fake_answered(uint32_t flow)
{
	(&REG(LEFT))[flow] &= ~(1u << DIBBER_MCP_LEFT_VAIN_SHIFT);
	fake_nak(flow);
}

void fake_link(uint32_t up)
{
	REG(LINK) = up;
	REG(LINK_CHANGED) = 1;
}

/* A card with two links: a bit for each in `up`. Those that change are told. */
void fake_links(uint32_t up)
{
	uint32_t before = REG(LINK) >> DIBBER_MCP_LINK_UP_SHIFT & DIBBER_MCP_LINK_UP_MASK;

	REG(LINK_CHANGED) |= before ^ up;
	REG(LINK) = up << DIBBER_MCP_LINK_UP_SHIFT | 1u << DIBBER_MCP_LINK_TWO_SHIFT;
}

void fake_advance(uint64_t by)
{
	cycles += by;
}

uint64_t fake_now(void)
{
	return cycles;
}

bool fake_waiting(uint32_t which)
{
	return fifo_head[which] != fifo_tail[which];
}

static uint32_t events(void)
{
	uint32_t value = 0;

	value |= (uint32_t)(fast_pending() != 0) << DIBBER_MCP_EVENTS_COMMAND_SHIFT;
	value |= (uint32_t)fake_waiting(FIFO_JOB_DONE) << DIBBER_MCP_EVENTS_JOB_DONE_SHIFT;
	value |= (uint32_t)fake_any(&REG(ACKED_CHANGED)) << DIBBER_MCP_EVENTS_ACK_SHIFT;
	value |= (uint32_t)fake_waiting(FIFO_REFUSAL) << DIBBER_MCP_EVENTS_REFUSAL_SHIFT;
	value |= (uint32_t)fake_waiting(FIFO_ARRIVAL) << DIBBER_MCP_EVENTS_ARRIVAL_SHIFT;
	value |= (uint32_t)((int32_t)((uint32_t)cycles - timer) >= 0)
		 << DIBBER_MCP_EVENTS_TIMER_SHIFT;
#if DIBBER_NODES > 16
	value |= (uint32_t)(fake_any(&REG(NAKED)) || REG(LINK_CHANGED) || fake_any(&REG(GIVEN)))
		 << DIBBER_MCP_EVENTS_REPLAY_SHIFT;
#elif DIBBER_ENDPOINTS > 8
	value |= (uint32_t)(REG(NAKED) || REG(LINK_CHANGED)) << DIBBER_MCP_EVENTS_REPLAY_SHIFT;
	value |= (uint32_t)(REG(GIVEN) != 0) << DIBBER_MCP_EVENTS_GIVEN_SHIFT;
#else
	value |= (uint32_t)(REG(NAKED) != 0) << DIBBER_MCP_EVENTS_NAK_SHIFT;
	value |= (uint32_t)(REG(LINK_CHANGED) != 0) << DIBBER_MCP_EVENTS_LINK_SHIFT;
	value |= (uint32_t)(REG(GIVEN) != 0) << DIBBER_MCP_EVENTS_GIVEN_SHIFT;
#endif
	value |= (uint32_t)fake_waiting(FIFO_ATOMIC) << DIBBER_MCP_EVENTS_ATOMIC_SHIFT;
	value |= (uint32_t)fake_waiting(FIFO_SCOUT) << DIBBER_MCP_EVENTS_SCOUT_SHIFT;
	return value | (REG(EXPRESS_SPACE) ? fast_digest() : 0);
}

static uint32_t front(uint32_t which, uint32_t word)
{
	return fake_waiting(which) ? fifo[which][fifo_head[which] % FIFO][word] : 0xdeadbeefu;
}

uint32_t fake_read(uint32_t address)
{
	uint32_t offset = address - DIBBER_MCP_REGISTER_BASE;

	fast_work();
	cycles += ACCESS_CYCLES;
	fake_accesses++;
	if (fake_post_every && fake_accesses % fake_post_every == 0)
		REG(POST_SPACE)++;
	if (address % 4)
		abort();
	if (address - DIBBER_MCP_SLOT_BASE < sizeof(fake_slots)) {
		uint32_t value;

		memcpy(&value, &fake_slots[address - DIBBER_MCP_SLOT_BASE], 4);
		return value;
	}
	if (offset >= DIBBER_MCP_SIZE)
		abort();
	if (offset - DIBBER_MCP_ACKED < 4 * DIBBER_LANES * DIBBER_NODES)
		return fake_registers[offset / 4] | (uint32_t)fake_waiting(FIFO_REFUSAL)
							    << DIBBER_MCP_ACKED_REFUSAL_SHIFT;
	if (offset - DIBBER_MCP_FAST_ACTIVE < 4 * FLOW_WORDS)
		return fast_active(8 * (offset - DIBBER_MCP_FAST_ACTIVE));
	switch (offset) {
	case DIBBER_MCP_EVENTS:
	case DIBBER_MCP_EVENTS_HELD: /* without a wait: the tests' time stands while they look */
		return events();
	case DIBBER_MCP_CYCLES_LOW:
		return cycles;
	case DIBBER_MCP_COMMAND_PENDING:
		return fast_pending();
	case DIBBER_MCP_QUEUE_ROOM:
		return fast_room();
	case DIBBER_MCP_FAST_BUSY:
		return fast_busy();
	case DIBBER_MCP_CLAIM_STATE:
	case DIBBER_MCP_CLAIM_ENTRY:
	case DIBBER_MCP_CLAIM_COOKIE:
	case DIBBER_MCP_CLAIM_LENGTH:
		return fast_claimed(offset);
	case DIBBER_MCP_JOB_DONE:
		return front(FIFO_JOB_DONE, 0);
	case DIBBER_MCP_JOB_CHECKSUM:
		return front(FIFO_JOB_DONE, 1);
	case DIBBER_MCP_ATOMIC_DONE:
		return front(FIFO_ATOMIC, 0);
	case DIBBER_MCP_ATOMIC_WORD:
		return front(FIFO_ATOMIC, 1);
	case DIBBER_MCP_SCOUT:
		return front(FIFO_SCOUT, 0);
	case DIBBER_MCP_SCOUT_CAME_NUMBER:
		return front(FIFO_SCOUT, 1);
	case DIBBER_MCP_SCOUT_CAME_BACK:
		return front(FIFO_SCOUT, 2);
	case DIBBER_MCP_REFUSAL:
		return front(FIFO_REFUSAL, 0);
	case DIBBER_MCP_ARRIVAL:
		return front(FIFO_ARRIVAL, 0);
	case DIBBER_MCP_ARRIVAL_VALUE:
		return front(FIFO_ARRIVAL, 1);
	case DIBBER_MCP_ARRIVAL_LENGTH:
		return front(FIFO_ARRIVAL, 2);
	case DIBBER_MCP_ARRIVAL_KEY:
		return front(FIFO_ARRIVAL, 3);
	default:
		return silent[offset / 128] >> offset / 4 % 32 & 1 ? 0 : fake_registers[offset / 4];
	}
}

void fake_log_write(uint32_t offset, uint32_t value, const uint32_t *words, uint32_t count)
{
	struct fake_log *entry = &fake_log[fake_logged];

	if (fake_logged == LOG)
		abort();
	entry->offset = offset;
	entry->value = value;
	entry->cycles = cycles;
	memcpy(entry->words, words, 4 * count);
	fake_logged++;
}

static void pop(uint32_t which)
{
	if (!fake_waiting(which))
		abort();
	fifo_head[which]++;
}

/* The oldest is offered to the fast path again. */
static void again(uint32_t which, uint32_t shift, bool (*take)(uint32_t, uint32_t))
{
	uint32_t *oldest = fifo[which][fifo_head[which] % FIFO];

	if (!fake_waiting(which) || oldest[0] >> shift & 1)
		abort();
	if (take(oldest[0], oldest[1]))
		pop(which);
	else
		oldest[0] |= 1u << shift;
}

/* A write of ones clears bits of a register of flows. Returns whether it is one. */
static bool clear_flows(uint32_t offset, uint32_t value)
{
	static const uint32_t bases[] = { DIBBER_MCP_ACKED_CHANGED, DIBBER_MCP_NAKED,
					  DIBBER_MCP_FAST_MOVED, DIBBER_MCP_PEER_WORKS,
					  DIBBER_MCP_GIVEN };

	for (uint32_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++)
		if (offset - bases[i] < 4 * FLOW_WORDS) {
			fake_registers[offset / 4] &= ~value;
			return true;
		}
	return false;
}

void fake_write(uint32_t address, uint32_t value)
{
	uint32_t offset = address - DIBBER_MCP_REGISTER_BASE;

	fast_work();
	cycles += ACCESS_CYCLES;
	fake_accesses++;
	if (address % 4)
		abort();
	if (address - OUTBOX_BASE < DIBBER_SLOTS * DIBBER_SLOT_BYTES) {
		memcpy(&fake_slots[address - DIBBER_MCP_SLOT_BASE], &value, 4);
		return;
	}
	if (offset >= DIBBER_MCP_SIZE)
		abort();
	if (clear_flows(offset, value))
		return;
	switch (offset) {
	case DIBBER_MCP_TIMER:
		REG(TIMER) = timer = value;
		break;
	case DIBBER_MCP_JOB_START:
		if (!REG(JOB_SPACE))
			abort();
		REG(JOB_SPACE)--;
		fake_log_write(offset, value, &REG(JOB_SLOT), 5);
		break;
	case DIBBER_MCP_EXPRESS_START:
		if (!REG(EXPRESS_SPACE))
			abort();
		REG(EXPRESS_SPACE)--;
		fake_log_write(offset, value, &REG(EXPRESS_FLOW), 2);
		break;
	case DIBBER_MCP_JOB_DONE_POP:
		pop(FIFO_JOB_DONE);
		break;
	case DIBBER_MCP_LINK_CHANGED:
		REG(LINK_CHANGED) &= ~value;
		break;
	case DIBBER_MCP_FLOW_RESET:
		(&REG(ACKED))[value & DIBBER_MCP_FLOW_RESET_FLOW_MASK] = 0xffff;
		(&REG(LEFT))[value & DIBBER_MCP_FLOW_RESET_FLOW_MASK] = 0;
		fake_log_write(offset, value, fake_registers, 0);
		break;
	case DIBBER_MCP_FLOW_REWIND:
		(&REG(LEFT))[value & DIBBER_MCP_FLOW_REWIND_FLOW_MASK] = 0;
		fake_log_write(offset, value, fake_registers, 0);
		break;
	case DIBBER_MCP_INBOX_FREE:
		fake_log_write(offset, value, fake_registers, 0);
		break;
	case DIBBER_MCP_EXPECT_WRITE:
		fake_log_write(offset, value, &REG(EXPECT_KEY), 1);
		break;
	case DIBBER_MCP_ROUTE_WRITE:
		fake_log_write(offset, value, &REG(ROUTE), 1);
		break;
	case DIBBER_MCP_SCOUT_START:
		if (!REG(SCOUT_SPACE))
			abort();
		REG(SCOUT_SPACE)--;
		fake_log_write(offset, value, &REG(SCOUT_ROUTE), 3);
		break;
	case DIBBER_MCP_SCOUT_POP:
		pop(FIFO_SCOUT);
		break;
	case DIBBER_MCP_ARRIVAL_AGAIN:
		again(FIFO_ARRIVAL, DIBBER_MCP_ARRIVAL_AGAIN_SHIFT, fast_request);
		break;
	case DIBBER_MCP_ATOMIC_AGAIN:
		again(FIFO_ATOMIC, DIBBER_MCP_ATOMIC_DONE_AGAIN_SHIFT, fast_reply);
		break;
	case DIBBER_MCP_ATOMIC_POP:
		pop(FIFO_ATOMIC);
		break;
	case DIBBER_MCP_REFUSAL_POP:
		pop(FIFO_REFUSAL);
		break;
	case DIBBER_MCP_ARRIVAL_POP:
		pop(FIFO_ARRIVAL);
		break;
	case DIBBER_MCP_SEND_MOVED:
		REG(SEND_MOVED) &= ~value;
		break;
	case DIBBER_MCP_SRAM_WRITTEN:
		REG(SRAM_WRITTEN) &= ~value;
		break;
	case DIBBER_MCP_PUT_START:
		if (!REG(EXPRESS_SPACE))
			abort();
		REG(EXPRESS_SPACE)--;
		fast_write(offset, value);
		break;
	case DIBBER_MCP_POST_START:
	case DIBBER_MCP_POST_PUT:
		if (!REG(POST_SPACE))
			abort();
		fast_write(offset, value);
		break;
	case DIBBER_MCP_COMMAND_TAKE:
	case DIBBER_MCP_COMMAND_SKIP:
	case DIBBER_MCP_PUT_PASS:
	case DIBBER_MCP_SLOT_FREE:
	case DIBBER_MCP_QUEUE_OPEN:
	case DIBBER_MCP_QUEUE_CLOSE:
	case DIBBER_MCP_FLOW_ARM:
	case DIBBER_MCP_FLOW_CLAIM:
	case DIBBER_MCP_CLAIM_POP:
		fast_write(offset, value);
		break;
	case DIBBER_MCP_GENERATION_NEXT:
		REG(GENERATION) = (REG(GENERATION) + 1) % 64;
		break;
	case DIBBER_MCP_REGION_WRITE:
		fake_log_write(offset, value, &REG(REGION_KEY), 8);
		break;
	default:
		fake_registers[offset / 4] = value;
	}
}
