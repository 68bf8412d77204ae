/* Which flows the hardware fast path has: arming a flow for it, and claiming it back. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_FAST_H
#define MCP_FAST_H

#include "flows/flow.h"

void fast_boot(void);

/* Give a flow to the fast path. Nothing is under way on it. */
void fast_arm(uint32_t number);

/* An idle flow: whether to arm it again. After arming without any use it must be idle more often
 * first. */
static inline bool fast_rests(uint32_t number)
{
	return flows[number].puts++ >= flows[number].shy;
}

/*
 * An EXPRESS flow that is not armed is brought to rest in a pause, which is the latter 32 of each
 * 64 ticks. In a pause it sends no request. When all requests are answered it is SHUT: it sends
 * nothing until its packets are acknowledged, or for one tick.
 *
 * A BULK flow is SHUT in one of 8 ticks of its pause. Then no put and no answer is added to it, so
 * that it becomes empty. Gets of its node wait in ARRIVAL, where hardware can still take them.
 */
#define MCP_TICK 4 /* step of `ticks`; a negative sum is a pause */
#define MCP_SHUT 1

static inline bool fast_pauses(uint32_t number)
{
	return flows[number].ticks < 0;
}

static inline bool fast_shut(uint32_t number)
{
	return flows[number].ticks & MCP_SHUT;
}

/* Whether hardware may take an item after all, because its flow was armed after the item came
 * here. Hardware shows an item that it does not take a second time, with `again`. */
static inline bool fast_wants(uint32_t number, uint32_t again)
{
	return flows[number].state == FLOW_ARMED && !again;
}

static inline void fast_rest(uint32_t number)
{
	if (fast_rests(number))
		fast_arm(number);
}

/* Claim an armed flow: what is under way on it is this program's, as if this program had sent
 * it. */
void fast_take(uint32_t number);

/* Claim a flow if it is armed. */
static inline void fast_claim(uint32_t number)
{
	if (flows[number].state == FLOW_ARMED)
		fast_take(number);
}

/* Claim the flows that the fast path gave away (GIVEN). Returns whether there were any. */
uint32_t fast_given(void);

/* Claim the flows that have something under way. */
void fast_claim_active(void);

/* Claim the flows that have stalled. `works` and `sends` are PEER_WORKS and SEND_MOVED of the
 * tick. */
void fast_tick(const struct set *works, bool sends);

#endif
