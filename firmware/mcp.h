/* This file is part of Dibber. */
/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What the control program's state machines know of each other. README.md tells how they work
 * together. Nothing here waits: a handler does at most MCP_BATCH items and returns how many it
 * did.
 */

#ifndef MCP_H
#define MCP_H

#include <stdbool.h>
#include <stdint.h>

#include "dibber_interface.h"

#define MCP_BATCH	4	/* items a handler does before the others have their turn */
#define MCP_POSTS	(2 * MCP_BATCH)	/* queue entries that one handler makes at most */
#define MCP_CLOCK_HZ	125000000u
#define MCP_TIMEOUT	(MCP_CLOCK_HZ / 250)	/* cycles: 4 ms without progress */
#define MCP_TICK	(MCP_TIMEOUT / 16)	/* how often that is looked at */

#define MCP_TRANSFERS	(DIBBER_ENDPOINTS * DIBBER_SLOTS)
#define MCP_NO_TAG	0xffffu
#define MCP_PSNS	32768u	/* in flight to a node: half of what the wire tells apart */

_Static_assert(MCP_TRANSFERS <= 256, "a job's tag has 8 bits");
_Static_assert(DIBBER_NODES <= 32, "a mask of nodes is one word");

/* Masks ---------------------------------------------------------------------------------------- */

extern const uint8_t bit_index[32];

/* The lowest bit of a mask that is not 0: the isolated bit times a de Bruijn sequence. */
static inline uint32_t lowest_bit(uint32_t mask)
{
	return bit_index[(mask & -mask) * 0x077cb531u >> 27];
}

/* Whose turn it is: the first bit of a mask (not 0) at or after `turn`, which is below 32. */
static inline uint32_t next_turn(uint32_t mask, uint32_t turn)
{
	uint32_t later = mask >> turn << turn;

	return lowest_bit(later ? later : mask);
}

/* main.c --------------------------------------------------------------------------------------- */

/* At SHARED_OFFSET of the SRAM, where the host reads it. */
extern struct dibber_mcp_shared mcp_shared;

void mcp_boot(void);
void mcp_step(void);	/* one turn of the event loop */

/* trace.c -------------------------------------------------------------------------------------- */

/* Event numbers of the trace ring; arguments in parentheses. */
enum trace_event {
	TRACE_BOOT		= 1,	/* (identity, cycles) */
	TRACE_COMMAND		= 2,	/* a command that is not sent was taken (tag, first word) */
	TRACE_COMPLETION	= 3,	/* its end (endpoint << 8 | status, cookie) */
	TRACE_JOB		= 4,	/* a put was taken, or is sent again (tag, extended PSN) */
	TRACE_JOB_ERROR		= 5,	/* a send job failed (JOB_DONE, extended PSN after it) */
	TRACE_JOB_UNKNOWN	= 6,	/* the end of a job that there is not (JOB_DONE, 0) */
	TRACE_REFUSED		= 7,	/* (REFUSAL, tag of the transfer or MCP_NO_TAG) */
	TRACE_ACK_UNKNOWN	= 8,	/* an acknowledgement of what was not sent (node, ACKED) */
	TRACE_TIMEOUT		= 9,	/* (node, extended PSN not acknowledged) */
	TRACE_INCARNATION	= 10,	/* a new flow (node, incarnation) */
	TRACE_ARRIVAL		= 11,	/* (ARRIVAL, value) */
	TRACE_LOST		= 12,	/* an entry had nowhere to go (its third word, its first) */
	TRACE_OPEN		= 13,	/* (endpoint, COMMAND_HEAD) */
	TRACE_CLOSE		= 14,	/* (endpoint, COMMAND_HEAD) */
};

void trace(enum trace_event event, uint32_t argument0, uint32_t argument1);

/* Tell the host, and the entries that follow, what this program is doing. */
void trace_state(enum dibber_mcp_state state);

/* queue.c -------------------------------------------------------------------------------------- */

/* A ring of queue_entry in host memory. Counts are modulo 2^32, as in the doorbell page. */
struct queue {
	uint32_t base_low, base_high;
	uint32_t entries;	/* a power of two; 0: there is no queue */
	uint32_t index;		/* where the next entry goes */
	uint32_t produced;	/* entries written */
	uint32_t consumer;	/* the host's count when it was last looked at */
	uint32_t overruns;	/* entries lost since it was opened */
	uint32_t consumer_register;	/* address of the host's count */
	uint8_t phase;
	uint8_t vector;
};

void queue_open(struct queue *queue, uint32_t base_low, uint32_t base_high, uint32_t entries,
		uint32_t vector, uint32_t consumer_register);

/* Whether `count` entries can be written before the host reads any more. */
bool queue_has_room(struct queue *queue, uint32_t count);

/*
 * Write an entry and then, if asked, raise the interrupt. `words` are its first four words; what
 * depends on the queue is added here. An entry for a full queue, or for none, is lost and
 * counted.
 */
void queue_write(struct queue *queue, const uint32_t words[4], bool interrupt);

/* Hand waiting posts to the gateware; false while fewer than MCP_POSTS more could wait. */
bool queue_flush(void);

/* command.c ------------------------------------------------------------------------------------ */

enum endpoint_state {
	ENDPOINT_CLOSED,	/* its commands are dropped */
	ENDPOINT_OPENED,
	ENDPOINT_CLOSING,	/* no command is taken; waits for its transfers */
};

struct endpoint {
	struct queue completions;
	struct queue events;
	uint32_t head;			/* commands taken */
	uint16_t outstanding;		/* commands taken and not completed */
	uint8_t state;
	uint8_t close_left;		/* CLOSING: commands still to be completed as FLUSHED */
	uint8_t close_solicit;		/* CLOSING: of the ENDPOINT_CLOSE that waits */
	uint32_t close_cookie;
};

extern struct endpoint endpoints[DIBBER_ENDPOINTS];

void command_boot(void);
uint32_t command_handler(void);

/* Take the endpoint's next command off: HEAD moves. */
void command_take(uint32_t endpoint);

/* Post a completion of kind COMPLETION to an endpoint, whose `outstanding` goes down by one. */
void command_complete(uint32_t endpoint, uint32_t cookie, uint32_t length, uint32_t node,
		      uint32_t status, bool solicit);

/* admin.c -------------------------------------------------------------------------------------- */

void admin_boot(void);

/*
 * Execute the command in slot `tag` of endpoint 0. Returns false when its completion comes later; its
 * status is OK so far.
 */
bool admin_command(uint32_t tag, uint32_t first_word, enum dibber_status *status);

/* Whether any endpoint is being closed, and bring those that are nearer to it, one step each. */
bool admin_is_closing(void);
uint32_t admin_close_step(void);

/* transfer.c ----------------------------------------------------------------------------------- */

/*
 * A put from its command to its completion; its index is its tag, endpoint * SLOTS + slot. PSNs
 * are kept in 32 bits ("extended"); the wire has the low 16.
 */
struct transfer {
	uint32_t first, end;	/* PSNs [first, end) */
	uint32_t cookie;
	uint32_t length;	/* bytes */
	uint16_t next;		/* tag of the following transfer to this node */
	uint8_t node;
	uint8_t status;
	uint8_t solicit;
	uint8_t outstanding;	/* its completion has not been posted */
	uint8_t job;		/* the engine has a job with this tag */
} __attribute__((aligned(32)));	/* finding one by its tag is a shift */

extern struct transfer transfers[MCP_TRANSFERS];

bool transfer_is_free(uint32_t tag);
void transfer_submit(uint32_t tag, uint32_t node, uint32_t length, uint32_t cookie, bool solicit);

/* Whether the engine takes another job. */
bool transfer_has_space(void);

/* Give the transfer PSNs and the engine its job. The caller saw that there is space. */
void transfer_start(uint32_t tag);

void transfer_complete(uint32_t tag);
uint32_t transfer_done_handler(void);

/* flow.c --------------------------------------------------------------------------------------- */

enum flow_state {
	FLOW_OPEN,
	FLOW_DRAIN,	/* a job failed: waits for what was before it; what came after is void */
	FLOW_RESTART,	/* a new incarnation: what came after is sent again */
};

/* The flow to one node. head…tail are its transfers in PSN order. */
struct flow {
	uint32_t start;		/* extended PSN of the incarnation's PSN 0 */
	uint32_t next;		/* PSN that the next transfer gets */
	uint32_t acked;		/* all before it are acknowledged */
	uint32_t progress;	/* card's clock when this flow last moved */
	uint16_t head, tail;
	uint16_t mark;		/* DRAIN: the job that failed; RESTART: the next to be sent again */
	uint8_t state;
	uint8_t incarnation;
	uint8_t abandon;	/* do not wait for the jobs of former incarnations any longer */
} __attribute__((aligned(32)));

extern struct flow flows[DIBBER_NODES];

/* PSN `a` comes before `b`. */
static inline bool psn_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

/* Packets of a transfer. One without bytes is one packet without payload. */
static inline uint32_t packets_of(uint32_t length)
{
	return length / DIBBER_PACKET_PAYLOAD + (length % DIBBER_PACKET_PAYLOAD != 0) + !length;
}

void flow_boot(void);

/* Whether a put of so many packets can be sent to a node now. */
bool flow_accepts(uint32_t node, uint32_t packets);
void flow_append(uint32_t node, uint32_t tag);
void flow_job_done(uint32_t tag, uint32_t done);
uint32_t flow_ack_handler(void);
uint32_t flow_timer_handler(void);
bool flow_has_work(void);

/* arrival.c ------------------------------------------------------------------------------------ */

uint32_t arrival_handler(void);

#endif
