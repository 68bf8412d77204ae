/* A flow: the packet sequence of one lane to one node. Both lanes use it. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_FLOW_H
#define MCP_FLOW_H

#include "runtime.h"
#include "sets.h"

/* Flows are numbered lane * NODES + node. */
#define MCP_FLOWS   (DIBBER_LANES * DIBBER_NODES)
#define MCP_EXPRESS (DIBBER_LANE_EXPRESS * DIBBER_NODES)
#define MCP_BULK    (DIBBER_LANE_BULK * DIBBER_NODES)

#define MCP_PSNS	 32768u /* packets in flight on a flow: half of what 16 bits tell apart */
#define MCP_PATIENCE	 2u	/* whole ticks without progress before the first replay: 100 us */
#define MCP_PATIENCE_MAX 32u	/* doubled at each replay, up to 1.6 ms */
#define MCP_GIVE_UP	 800u	/* ticks without progress before a flow is given up: 40 ms */
/* A packet that its target hears in part each time, and never whole, makes no progress. At a target
 * of which nothing is heard, 40 ms are over before so many replays. */
#define MCP_REPLAYS 32u

_Static_assert(MCP_FLOWS % 32 == 0, "a register of flows is whole words");
_Static_assert(MCP_FLOWS <= 256, "a flow's number has 8 bits in registers");

enum flow_state {
	FLOW_OPEN,
	FLOW_ARMED,   /* the fast path has it; nothing about it is known here */
	FLOW_DRAIN,   /* BULK: a job failed; waits for what it and those before it sent */
	FLOW_REWIND,  /* waits for its jobs to end */
	FLOW_REQUEUE, /* queues again what is not acknowledged */
	FLOW_OVER,    /* EXPRESS: given up; its transfers are being completed */
	FLOW_SELF,    /* to this node itself: not used */
};

struct flow {
	uint32_t start; /* extended PSN of the incarnation's PSN 0 */
	uint32_t next;	/* PSN of the next packet */
	uint32_t acked; /* all before it are acknowledged */
	uint32_t ended; /* EXPRESS: all before it have ended */
	uint32_t limit; /* EXPRESS: first PSN that it does not take now; `next` unless it is OPEN */
	uint32_t order; /* incarnation and epoch, as in PUT_START */
	uint32_t cursor; /* EXPRESS, REQUEUE: PSN that is queued again next */
	uint32_t place;	 /* node and incarnation, as in JOB_FLOW and EXPRESS_FLOW */
	uint16_t epoch;
	uint16_t doubt;	  /* low half of the PSN behind those that a rewind may have sent again */
	uint32_t rewound; /* `acked` at the last rewind; one less if no packet had left */
	uint32_t seen;	  /* `acked` at the last tick */
	uint16_t idle;	  /* ticks without progress */
	uint16_t waited;  /* ticks since the last replay */
	uint16_t jobs;	  /* BULK: jobs that the engine has */
	uint16_t head, tail; /* BULK: list of transfers, in PSN order */
	uint16_t mark; /* BULK, DRAIN: transfer that failed; REQUEUE: next to be queued again */
	uint8_t state;
	uint8_t incarnation;
	uint8_t abandon;	/* BULK: no longer wait for jobs of transfers that are OVER */
	uint8_t puts;		/* not ARMED: how often it became idle since it was claimed */
	uint8_t shy;		/* `puts` at which it is armed again */
	uint8_t patience;	/* ticks before the next replay */
	uint8_t replays;	/* after a time without progress, since the last acknowledgement */
	int8_t ticks;		/* MCP_TICK for each tick since it was claimed; and MCP_SHUT */
} __attribute__((aligned(64))); /* the address of a flow is a shift */

extern struct flow flows[MCP_FLOWS];
extern struct set flow_work;   /* flows that may go on */
extern struct set flow_active; /* flows that may have something under way */
extern struct set flow_lost;   /* nodes of which a flow was given up; send.c clears */

/* Flows whose target does not hold them any more, and the PSN that it refused. restart.c starts
 * them anew; `flow_restart_begun` are those that it has begun with. */
extern struct set flow_restart, flow_restart_begun;
extern uint16_t flow_restart_psn[MCP_FLOWS];

/* Whether PSN `a` comes before `b`. */
static inline bool psn_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

/* A flow makes progress, or its target does: the time without progress begins anew. */
static inline void flow_works(struct flow *flow)
{
	flow->seen = flow->acked;
	flow->idle = 0;
	flow->waited = 0;
	flow->patience = MCP_PATIENCE;
}

void flow_boot(void);

/* Begin a new incarnation: tell the engines, and drop refusals of the former one. */
void flow_incarnate(uint32_t number);

/* PSNs of the new incarnation. Transfers that have PSNs belong to a former one from now on. */
void flow_renumber(struct flow *flow);

/* Begin the next epoch: the engines drop what waits, and end its jobs as REWOUND. */
void flow_rewind(uint32_t number);

/* Take over what is acknowledged, and the refusals that came with it. */
void flow_acknowledge(uint32_t number);

/* Take over only what is acknowledged. A caller that ends transfers because of it has taken the
 * refusals before. */
void flow_advance(uint32_t number);

/* Whether a packet has left the card completely since the last reset or rewind, and is not
 * acknowledged. */
bool flow_waits(uint32_t number);

uint32_t flow_ack_handler(void); /* EVENTS.ack, EVENTS.refusal, flow_work */

#endif
