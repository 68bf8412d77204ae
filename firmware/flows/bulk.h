/* The BULK lane: transfers that send jobs read from host memory. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_BULK_H
#define MCP_BULK_H

#include "flows/fast.h"
#include "transfer.h"

/* Packets of a transfer of `length` bytes: it is cut at multiples of PACKET_PAYLOAD. A transfer
 * without bytes is one packet without payload. */
static inline uint32_t packets_of(uint32_t length)
{
	/* The same number of instructions for each length. */
	return length / DIBBER_PACKET_PAYLOAD + (length % DIBBER_PACKET_PAYLOAD != 0) + !length;
}

extern uint32_t bulk_space; /* jobs that can surely be queued; by now there may be room for more */
bool bulk_look(void);	    /* read that number again; whether it is not 0 */

/*
 * Whether a transfer of so many packets can be sent to a node now. Behind a gap no PSN may look
 * like the missing one, which a distance of 65,536 would do. A longer transfer goes alone.
 */
static inline bool bulk_accepts(uint32_t node, uint32_t packets)
{
	struct flow *flow = &flows[MCP_BULK + node];
	uint32_t in_flight;

	fast_claim(MCP_BULK + node);
	in_flight = flow->next - flow->acked;
	if (fast_shut(MCP_BULK + node))
		return false;
	if (in_flight && in_flight + packets > MCP_PSNS)
		return false;
	return flow->state == FLOW_OPEN && (bulk_space || bulk_look());
}

/* Send a transfer that was entered. bulk_accepts() said yes before. */
void bulk_submit(uint32_t tag, uint32_t packets);

/* Take over a transfer of the fast path, behind those taken over before. `end` is the PSN after
 * it, `ended` whether its job has ended well. */
void bulk_adopt(uint32_t tag, uint32_t end, uint32_t packets, bool ended);

/* Tag of the transfer that has the extended PSN, or MCP_NO_TAG. */
uint32_t bulk_find(uint32_t number, uint32_t psn);

/* Whether an acknowledgement needs bulk_step(): the oldest transfer may end, or the flow is not
 * OPEN. */
static inline bool bulk_may_end(uint32_t number)
{
	const struct flow *flow = &flows[number];

	return flow->state != FLOW_OPEN || flow->head == MCP_NO_TAG ||
	       !psn_before(flow->acked, transfers[flow->head].end);
}

/* A tick of a pause: give an empty flow to the fast path, or let it become empty. */
void bulk_rest(uint32_t number);

uint32_t bulk_step(uint32_t number); /* complete what has ended, queue again what is lost */
void bulk_rewind(uint32_t number);
bool bulk_is_lost(uint32_t number); /* whether a NAK can be about packets that are still needed */
void bulk_expire(uint32_t number);  /* no progress for too long: all on the flow is lost */

/*
 * Begin a new incarnation because the target does not hold this one. What is before the PSN `end`
 * ends with PEER_RESTARTED, the rest goes again. Call this when bulk_settled() returns true: all
 * that is acknowledged has ended. bulk_settled() itself ends up to MCP_BATCH transfers.
 */
void bulk_restart(uint32_t number, uint32_t end);
bool bulk_settled(uint32_t number);

uint32_t bulk_job_handler(void); /* EVENTS.job_done */

#endif
