/* What the control program's state machines know of each other. README.md tells how they work
 * together. Nothing here waits: a handler does at most MCP_BATCH items and returns how many it
 * did.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_H
#define MCP_H

#include <stdbool.h>
#include <stdint.h>

#include "dibber_interface.h"
#include "identity.h"
#include "registers.h"

#define MCP_BATCH    8		     /* items a handler does before the others have their turn */
#define MCP_PUTS     16		     /* the same of inline puts, which are soon done */
#define MCP_POSTS    (2 * MCP_BATCH) /* queue entries that one handler makes at most */
#define MCP_TICKS_HZ 20000u	     /* how often the flows are looked at: a tick is 50 us */
/* Cycles, 1 ms of 125 MHz; more than mcp_alive() is ever silent: bounds.py. */
#define MCP_WATCHDOG	 125000u
#define MCP_PATIENCE	 2u   /* whole ticks without progress before the first replay: 100 us */
#define MCP_PATIENCE_MAX 32u  /* doubled at each attempt, up to 1.6 ms */
#define MCP_GIVE_UP	 800u /* ticks without progress: 40 ms */

/* A tag is set * SLOTS + slot: commands of the endpoints, then the OUTBOX, then the INBOX. */
#define MCP_COMMANDS  (DIBBER_ENDPOINTS * DIBBER_SLOTS)
#define MCP_OUTBOX    (DIBBER_OUTBOX * DIBBER_SLOTS)
#define MCP_INBOX     (DIBBER_INBOX * DIBBER_SLOTS)
#define MCP_TRANSFERS (DIBBER_SLOT_SETS * DIBBER_SLOTS)
#define MCP_NO_TAG    0xffffu
#define MCP_PSNS      32768u /* in flight on a flow: half of what the wire tells apart */

/* Flows are numbered lane * NODES + node. */
#define MCP_FLOWS   (DIBBER_LANES * DIBBER_NODES)
#define MCP_EXPRESS (DIBBER_LANE_EXPRESS * DIBBER_NODES)
#define MCP_BULK    (DIBBER_LANE_BULK * DIBBER_NODES)

_Static_assert(MCP_TRANSFERS <= 1024, "a job's tag has 10 bits");

/* A context, in a message word's upper half, is a command's tag and a generation above it. */
#define MCP_CONTEXT_TAG(word) ((word) >> 16 & 0x3ff)
_Static_assert(MCP_FLOWS == 32, "a mask of flows is one word");
_Static_assert(DIBBER_OUTBOX == DIBBER_ENDPOINTS && DIBBER_INBOX == DIBBER_OUTBOX + 1,
	       "tags of commands come first");

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

/* SHARED_FROM_END bytes before the end of the SRAM, where the host reads it. */
extern struct dibber_mcp_shared mcp_shared;

extern uint32_t mcp_tick; /* cycles, by the clock of the board */

/*
 * Tell the watchdog that a piece of a long turn is done. Only where a counter says how often at
 * most: a loop that a list leads round for ever must be found out.
 */
void mcp_alive(void);

void mcp_boot(void);
void mcp_step(void); /* one turn of the event loop */

/* trace.c -------------------------------------------------------------------------------------- */

void trace(enum dibber_trace event, uint32_t argument0, uint32_t argument1);

/* Tell the host, and the entries that follow, what this program is doing. */
void trace_state(enum dibber_mcp_state state);

/* queue.c -------------------------------------------------------------------------------------- */

/* Queues of an endpoint. */
#define QUEUE_COMPLETIONS(endpoint) (endpoint)
#define QUEUE_EVENTS(endpoint)	    (DIBBER_ENDPOINTS + (endpoint))

void queue_boot(void);

/* `entries` is a power of two. */
void queue_open(uint32_t queue, uint32_t base_low, uint32_t base_high, uint32_t entries,
		uint32_t vector);

/*
 * Queue an entry and, if `start` asks for it, its interrupt. `what` and `start` are values for
 * POST_WHAT and POST_START.
 */
void queue_post(uint32_t cookie, uint32_t length, uint32_t what, uint32_t key, uint32_t start);

/* Posts that wait for the gateware, and handing them to it; false while there may be no room for
 * MCP_POSTS more. */
extern uint32_t queue_waiting;
bool queue_drain(void);

/* Posts that the gateware takes now, at least, none if others wait; and that some of them were
 * used. */
uint32_t queue_room(void);
void queue_used(uint32_t posts);

static ALWAYS bool queue_flush(void)
{
	return !queue_waiting || queue_drain();
}

/* Whether all that was posted has left for host memory. */
bool queue_is_idle(void);

/* command.c ------------------------------------------------------------------------------------ */

enum endpoint_state {
	ENDPOINT_CLOSED, /* its commands are dropped */
	ENDPOINT_OPENED,
	ENDPOINT_CLOSING, /* no command is taken; waits for its transfers */
	ENDPOINT_ADMIN, /* endpoint 0, the administrator's alone, when it has a queue to be answered
			   in */
};

struct endpoint {
	uint32_t outstanding; /* commands taken and not completed, but for those that FAST_BUSY
				 tells of */
	uint8_t state;
	uint8_t close_left;    /* CLOSING: commands still to be completed as FLUSHED */
	uint8_t close_tag;     /* CLOSING: of the ENDPOINT_CLOSE that waits */
	uint8_t close_solicit; /* CLOSING: its flag */
	uint32_t close_cookie;
} __attribute__((aligned(16))); /* finding one is a shift */

extern struct endpoint endpoints[DIBBER_ENDPOINTS];
extern uint32_t command_node; /* this card's own number, as it was at boot */

void command_boot(void);
uint32_t command_handler(void);

/* One endpoint's commands are taken, by whoever comes first; or by nobody any more. */
void command_allow(uint32_t endpoint);
void command_stop(uint32_t endpoint);

/* An open endpoint's next command, which COMMAND_PENDING shows; whether it was taken. */
bool command_next(uint32_t endpoint);

/* Tag of the endpoint's next command, which is this program's when COMMAND_PENDING shows it. */
static inline uint32_t command_tag(uint32_t endpoint)
{
	return endpoint * DIBBER_SLOTS + REG_READ_AT(HEAD, endpoint) % DIBBER_SLOTS;
}

/* Take the endpoint's next command off. */
static inline void command_take(uint32_t endpoint)
{
	REG_WRITE(COMMAND_TAKE, endpoint);
	endpoints[endpoint].outstanding++;
}

/* POST_WHAT and POST_START of a command's completion. */
static inline uint32_t command_what(uint32_t node, uint32_t status)
{
	return FIELD_PUT(POST_WHAT, NODE, node) | FIELD_PUT(POST_WHAT, STATUS, status) |
	       FIELD_PUT(POST_WHAT, KIND, DIBBER_ENTRY_COMPLETION);
}

static inline uint32_t command_post(uint32_t tag, bool solicit, bool free)
{
	return FIELD_PUT(POST_START, QUEUE, QUEUE_COMPLETIONS(tag / DIBBER_SLOTS)) |
	       FIELD_PUT(POST_START, SLOT, tag % DIBBER_SLOTS) |
	       FIELD_PUT(POST_START, INTERRUPT, solicit) | FIELD_PUT(POST_START, FREE, free);
}

/* Post the completion of a command that was taken; its slot is free unless the engine has a job of
 * it. */
void command_complete(uint32_t tag, uint32_t cookie, uint32_t length, uint32_t node,
		      uint32_t status, uint32_t key, bool solicit);

/* Complete a command at once, taking it off. */
void command_end(uint32_t tag, uint32_t first_word, uint32_t length, uint32_t node,
		 enum dibber_status status);

/* admin.c -------------------------------------------------------------------------------------- */

void admin_boot(void);

/*
 * Give endpoint 0 the queue that the host's registers name; whether there is one. Without, its
 * commands are dropped like a closed endpoint's: this program was started by somebody else than the
 * owner of that queue, who has yet to notice.
 */
bool admin_attach(void);

/*
 * Whether the command in slot `tag` of endpoint 0 must wait before it is taken: a region's removal,
 * until nothing is under way that had found it.
 */
bool admin_must_wait(uint32_t tag, uint32_t first_word);

/*
 * Execute the command in slot `tag` of endpoint 0. Returns false when its completion comes later;
 * its status is OK so far.
 */
bool admin_command(uint32_t tag, uint32_t first_word, enum dibber_status *status);

/* A bit for each endpoint that is being closed; and bring those nearer to it, one step each. */
extern uint32_t admin_closing;
uint32_t admin_close_step(void);

/* routes.c ------------------------------------------------------------------------------------- */

void routes_boot(void);

/* ROUTE_SET in slot `tag` of endpoint 0. */
enum dibber_status routes_set(uint32_t tag);

/* The current route to a node is of no avail: take the next one, if there is one. */
void routes_turn(uint32_t node);

/* See by their acknowledgements which nodes with routes are there. */
void routes_tick(uint32_t now);

/* scout.c -------------------------------------------------------------------------------------- */

void scout_boot(void);

/* A word as DIBBER_ROUTE_HOPS says, of so many hops at most. */
bool route_is_possible(uint32_t route);

/* SCOUT in slot `tag` of endpoint 0; with OK its completion comes later. One at a time. */
enum dibber_status scout_ask(uint32_t tag, bool solicit);

/* Whether one is under way; and its end in time. */
extern uint32_t scout_waiting;
uint32_t scout_step(void);

uint32_t scout_handler(void);

/* transfer.c ----------------------------------------------------------------------------------- */

enum transfer_kind {
	TRANSFER_PUT,	 /* BULK: a command */
	TRANSFER_INLINE, /* EXPRESS: a command that carries its bytes */
	TRANSFER_ANSWER, /* BULK: to a get, from a slot of the INBOX. Up to here: what the fast path
			    does on BULK */
	TRANSFER_SEND,	 /* BULK: a command; before that it waits for its READY */
	TRANSFER_GET,	 /* EXPRESS: a command that goes as a message, and is answered */
	TRANSFER_ATOMIC, /* the same */
	TRANSFER_RECEIVE, /* the same; before that it waits for its turn */
	TRANSFER_MESSAGE, /* EXPRESS: a message from a slot of the OUTBOX, or a reply from that of
			     the INBOX */
	TRANSFER_REPLY, /* what is to be such a message, at the slot of the INBOX that it answers */
	TRANSFER_PROBE, /* EXPRESS: a put of no bytes from a slot of the OUTBOX; however it ends,
			   the target was heard */
	TRANSFER_READY, /* a RECEIVE of another node, at its slot of the INBOX */
};

enum transfer_state {
	TRANSFER_FREE,
	TRANSFER_SENT,
	TRANSFER_AGAIN, /* BULK: sent more than once, though never to its end */
	TRANSFER_WHOLE, /* BULK: a job of it has ended, so that all its packets may have been
			   executed */
	TRANSFER_CUT,	/* BULK: its job failed; `end` is where it stopped */
	TRANSFER_OVER,	/* BULK: lost with its incarnation */
};

/* What a transfer waits for, besides acknowledgement. */
#define BUSY_JOB     1u	 /* the engine has a job with this tag, and reads its slot */
#define BUSY_SUM     2u	 /* the checksum of one whole pass over its bytes */
#define BUSY_REQUEST 4u	 /* its message is not acknowledged: the slot is still read */
#define BUSY_ANSWER  8u	 /* the answer to its message */
#define BUSY_TURN    16u /* RECEIVE: that its message can be sent */

/*
 * What was sent from a slot and has not ended; its index is its tag. PSNs are kept in 32 bits
 * ("extended"); the wire has the low 16.
 */
struct transfer {
	union {
		struct {
			uint32_t first, end; /* BULK: PSNs [first, end) */
		};
		uint32_t word; /* EXPRESS: the message word */
	};
	uint32_t cookie; /* ANSWER, REPLY, READY: message word */
	uint32_t length; /* bytes */
	uint32_t key;	 /* of the completion; SEND, READY that wait: who fits whom */
	uint16_t next; /* BULK: tag of the following transfer of this flow; else of a `struct line`
			*/
	uint8_t node;
	uint8_t flags; /* the command's */
	union {
		struct {
			uint8_t status;
			uint8_t busy;
			uint8_t kind;
			uint8_t state;
		};
		uint32_t life; /* all four; 0: the slot is free */
	};
	union {
		uint32_t age;  /* GET, ATOMIC: ticks without an answer */
		uint32_t peer; /* SEND, READY: tag of the other, or MCP_NO_TAG */
	};
} __attribute__((aligned(32))); /* finding one by its tag is a shift */

extern struct transfer transfers[MCP_TRANSFERS];

static inline bool transfer_is_free(uint32_t tag)
{
	return !transfers[tag].life;
}

/* Enter a transfer in its place, which is free. */
static inline struct transfer *transfer_enter(uint32_t tag, enum transfer_kind kind, uint32_t busy,
					      uint32_t node)
{
	struct transfer *transfer = &transfers[tag];

	transfer->node = node;
	transfer->status = DIBBER_STATUS_OK;
	transfer->busy = busy;
	transfer->kind = kind;
	transfer->state = TRANSFER_SENT;
	return transfer;
}

/* It has ended. Its slot stays reserved while the engine keeps a job that was given up. */
static inline void transfer_free(struct transfer *transfer)
{
	uint32_t busy = transfer->busy & BUSY_JOB;

	transfer->life = 0;
	transfer->busy = busy;
}

/* Transfers in the order in which they came, which wait for something that is not their flow. */
struct line {
	uint16_t head, tail;
};

static inline void line_clear(struct line *line)
{
	line->head = MCP_NO_TAG;
	line->tail = MCP_NO_TAG;
}

void line_append(struct line *line, uint32_t tag);

/* Take out `tag`, which follows `before`; MCP_NO_TAG: it is the first. */
void line_remove(struct line *line, uint32_t tag, uint32_t before);

/* Complete the command of a transfer, and free its place. */
void transfer_complete(uint32_t tag);

/* The end of what is not a put. */
void transfer_end_other(uint32_t tag);

/* All packets of a transfer are acknowledged, or its flow has given it up. */
static inline void transfer_end(uint32_t tag)
{
	if (transfers[tag].kind <= TRANSFER_INLINE)
		transfer_complete(tag);
	else
		transfer_end_other(tag);
}

/* flow.c --------------------------------------------------------------------------------------- */

enum flow_state {
	FLOW_OPEN,
	FLOW_ARMED,   /* the fast path's: nothing of it is known here */
	FLOW_DRAIN,   /* BULK: a job failed; waits for what it and those before it sent */
	FLOW_REWIND,  /* waits for its jobs to end */
	FLOW_REQUEUE, /* what is not acknowledged is queued again */
	FLOW_OVER,    /* EXPRESS: given up, its transfers are being completed */
	FLOW_SELF,    /* to this node itself: there is none */
};

struct flow {
	uint32_t start; /* extended PSN of the incarnation's PSN 0 */
	uint32_t next;	/* PSN that the next packet gets */
	uint32_t acked; /* all before it are acknowledged */
	uint32_t ended; /* EXPRESS: all before it have ended */
	uint32_t limit; /* EXPRESS: first PSN that it does not take now; `next` unless it is OPEN */
	uint32_t order; /* incarnation and epoch, as PUT_START has them */
	uint32_t cursor; /* EXPRESS, REQUEUE: the next to be queued again */
	uint32_t place;	 /* node and incarnation, as JOB_FLOW and EXPRESS_FLOW have them */
	uint16_t epoch;
	uint16_t doubt;	   /* low half of the PSN behind those that a rewind may have sent again */
	uint32_t rewound;  /* `acked` at the last rewind, or before the start */
	uint32_t seen;	   /* `acked` at the last tick */
	uint16_t idle;	   /* ticks without progress */
	uint16_t waited;   /* ticks since the last attempt */
	uint16_t patience; /* ticks to wait for the next one */
	uint16_t jobs;	   /* BULK: that the engine has */
	uint16_t head, tail; /* BULK: transfers, in PSN order */
	uint16_t mark; /* BULK: DRAIN: the transfer that failed; REQUEUE: the next to be queued
			  again */
	uint8_t state;
	uint8_t incarnation;
	uint8_t abandon; /* BULK: jobs of what is OVER are not waited for any longer */
	uint8_t puts; /* not ARMED: how often it came to rest behind what might have been the fast
			 path's */
	uint8_t shy;  /* and how often that must be before it is armed */
	int8_t ticks; /* EXPRESS: since it was claimed, each MCP_TICK; and MCP_SHUT */
} __attribute__((aligned(64))); /* finding one is a shift */

extern struct flow flows[MCP_FLOWS];
extern uint32_t flow_work;   /* a bit for each flow that may go on */
extern uint32_t flow_active; /* a bit for each flow that has something under way, perhaps */

/* PSN `a` comes before `b`. */
static inline bool psn_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

void flow_boot(void);

/* Tell the engines of a new incarnation; drop refusals of the former one. */
void flow_incarnate(uint32_t number);

/* PSNs of the new incarnation. Transfers that have PSNs are of a former one from now on. */
void flow_renumber(struct flow *flow);

/* The next epoch: the engines drop what waits and end its jobs as REWOUND. */
void flow_rewind(uint32_t number);

/* Take over what is acknowledged, and the refusals that came with it. */
void flow_acknowledge(uint32_t number);

/* The former alone. Whoever ends transfers because of it has looked for refusals before. */
void flow_advance(uint32_t number);

/* Whether a packet has left the card to its end, since the flow was reset or rewound, that is not
 * acknowledged. */
bool flow_waits(uint32_t number);

uint32_t flow_ack_handler(void);

/* fast.c --------------------------------------------------------------------------------------- */

void fast_boot(void);

/* A flow that has nothing under way is the fast path's. */
void fast_arm(uint32_t number);

/* What might have been the fast path's has ended on a flow, which has nothing else under way:
 * whether to arm it, or that was in vain of late. */
static inline bool fast_rests(uint32_t number)
{
	return flows[number].puts++ >= flows[number].shy;
}

/*
 * An EXPRESS flow that is not armed comes to rest in a pause, the latter 32 of each 64 ticks: it
 * asks for nothing, and when all was answered it is SHUT until what it has sent is acknowledged, or
 * for a tick.
 */
#define MCP_TICK 4 /* below 0 is a pause */
#define MCP_SHUT 1

static inline bool fast_pauses(uint32_t number)
{
	return flows[number].ticks < 0;
}

/* A flow has been armed since something of it came here: hardware may take that after all. What it
 * does not want is shown `again`. */
static inline bool fast_wants(uint32_t number, uint32_t again)
{
	return flows[number].state == FLOW_ARMED && !again;
}

static inline void fast_rest(uint32_t number)
{
	if (fast_rests(number))
		fast_arm(number);
}

/*
 * A flow is this program's, and so is what is under way on it, as if this program had put it.
 * Nothing happens if it was before.
 */
void fast_take(uint32_t number);

static inline void fast_claim(uint32_t number)
{
	if (flows[number].state == FLOW_ARMED)
		fast_take(number);
}

/*
 * Claim what the fast path gave away, what has anything under way, what has stalled. `works` and
 * `sends` are what PEER_WORKS and SEND_MOVED said in the tick.
 */
uint32_t fast_given(void);
void fast_claim_active(void);
void fast_tick(uint32_t works, bool sends);

/* bulk.c --------------------------------------------------------------------------------------- */

/* Packets of a transfer: it is cut at multiples of PACKET_PAYLOAD. One without bytes is one packet
 * without payload. */
static inline uint32_t packets_of(uint32_t length)
{
	/* As many instructions for each length. */
	return length / DIBBER_PACKET_PAYLOAD + (length % DIBBER_PACKET_PAYLOAD != 0) + !length;
}

extern uint32_t bulk_space; /* jobs that can be queued for certain; by now there may be more */
bool bulk_look(void);	    /* whether there are any */

/*
 * Whether a transfer of so many packets can be sent to a node now. Behind a gap no PSN may be taken
 * for the missing one, which a difference of 65,536 would be. A transfer that is longer than that
 * goes alone.
 */
static inline bool bulk_accepts(uint32_t node, uint32_t packets)
{
	struct flow *flow = &flows[MCP_BULK + node];
	uint32_t in_flight;

	fast_claim(MCP_BULK + node);
	in_flight = flow->next - flow->acked;
	if (in_flight && in_flight + packets > MCP_PSNS)
		return false;
	return flow->state == FLOW_OPEN && (bulk_space || bulk_look());
}

/* Send a transfer that was entered. The caller saw that the flow accepts it. */
void bulk_submit(uint32_t tag, uint32_t packets);

/* Take over a transfer that the fast path put, behind those taken over before; `end` is the PSN
 * after it. */
void bulk_adopt(uint32_t tag, uint32_t end, uint32_t packets, bool ended);

/* Transfer that has the extended PSN, or MCP_NO_TAG. */
uint32_t bulk_find(uint32_t number, uint32_t psn);

/* Whether an acknowledgement has anything to be done for it: the oldest transfer may end, or it is
 * not as usual. */
static inline bool bulk_may_end(uint32_t number)
{
	const struct flow *flow = &flows[number];

	return flow->state != FLOW_OPEN || flow->head == MCP_NO_TAG ||
	       !psn_before(flow->acked, transfers[flow->head].end);
}

uint32_t bulk_step(uint32_t number); /* complete what has ended, queue again what is lost */
void bulk_rewind(uint32_t number);
bool bulk_is_lost(uint32_t number); /* whether a NAK can be about packets that are wanted */
void bulk_expire(uint32_t number);

/*
 * A new incarnation, as the target does not hold this one: what is before the PSN `end` ends with
 * PEER_RESTARTED, the rest goes again. Not before all that is acknowledged has ended, of which
 * bulk_settled() ends a batch.
 */
void bulk_restart(uint32_t number, uint32_t end);
bool bulk_settled(uint32_t number);
uint32_t bulk_job_handler(void);

/* express.c ------------------------------------------------------------------------------------ */

/* Whether a packet can be queued to a node now. */
bool express_accepts(uint32_t node);

/* Queue the message of a transfer that was entered, with its `word`. */
void express_message(uint32_t tag);

/* Queue the put of a probe that was entered. */
void express_probe(uint32_t tag);

/* A PUT_INLINE; whether it was taken. */
bool express_command(uint32_t tag, uint32_t first_word);

/* EVENTS shows an inline put in which nothing is wrong. It is the register's highest bit. */
static inline bool express_is_put(uint32_t events)
{
	return (int32_t)events < 0;
}

/* Send the inline put that `events` shows, and those that EVENTS shows after it: how many. */
uint32_t express_puts(uint32_t events);

/* Take over a put of the fast path, as bulk_adopt; and behind the last one, the flow. */
void express_adopt(uint32_t tag, uint32_t end);
void express_claim(uint32_t node);

/* Something has ended that was asked of a node: its flow is the fast path's if nothing else is
 * under way there. */
void express_rest(uint32_t node);

/* Tag of what has the extended PSN, or MCP_NO_TAG; and where its status is kept. */
uint32_t express_find(uint32_t number, uint32_t psn);
uint8_t *express_status(uint32_t number, uint32_t psn);
uint32_t express_step(uint32_t number);
void express_rewind(uint32_t number);
void express_expire(uint32_t number);
void express_restart(uint32_t number, uint32_t end); /* as bulk_restart */

/* put.c ---------------------------------------------------------------------------------------- */

/* A PUT; whether it was taken. */
bool put_command(uint32_t tag, uint32_t first_word);

/* Of a side, in its half of a command's `levels`: all up to this are known. */
#define MCP_LEVELS_MAX (DIBBER_LIST + DIBBER_LIST_LEVELS)
_Static_assert(DIBBER_LIST == DIBBER_LEVELS + 1 && !(DIBBER_LIST & DIBBER_LEVELS),
	       "an index list is a bit above the strides");

/* Whether counts x block of a walk in a slot is the length; with an index list, whether it can have
 * entries. */
enum dibber_status put_check_walk(uint32_t tag, uint32_t walk, uint32_t levels, uint32_t length);

/* message.c ------------------------------------------------------------------------------------ */

extern uint32_t
	message_work; /* a bit for each slot of the inbox whose request can go on, perhaps */

void message_boot(void);

/*
 * A place for a request if its node may be asked for something now, else NULL; and asking it by the
 * slot of a transfer that was entered. A request that may wait for ever is sent without being
 * counted among those asked.
 */
uint16_t *message_may_ask(uint32_t node);
void message_ask(uint16_t *place, uint32_t tag, enum dibber_message type);
void message_request(uint32_t tag, enum dibber_message type);

/*
 * One that the fast path made, of a transfer that was entered, with its generation. And whether a
 * node has been asked for anything that it has not answered.
 */
void message_adopt(uint32_t tag, uint32_t generation);
bool message_asks(uint32_t node);

/* A node has answered: what the fast path has asked it for may be meant, which is this program's
 * from now on. */
void message_claim(uint32_t node);

/* Give a request its context, before anything else is told of it. */
void message_context(uint32_t tag);

/* Send a message that nothing asked for; false while it must wait. */
bool message_tell(uint32_t node, uint32_t word);

/* A request, and a message from the OUTBOX or the INBOX, was acknowledged or given up. */
void message_acknowledged(uint32_t tag);
void message_sent(uint32_t tag);

/* The request that a node may answer by this word, or MCP_NO_TAG; and its answer. */
uint32_t message_asked(uint32_t node, uint32_t word, enum dibber_message type,
		       enum transfer_kind kind);
void message_answered(uint32_t tag, enum dibber_status status);

/*
 * Reply to the request at a slot of the inbox, when that can be: GET_FAILED, and the slot is free
 * then; or what an atomic of another node has left in it.
 */
void message_failed(uint32_t tag, uint32_t length, enum dibber_status status);
void message_executed(uint32_t node, uint32_t slot, uint32_t word);
void message_free(uint32_t tag);

/*
 * A node began anew: its requests that were acknowledged will not be answered. They are marked, and
 * then ended, at most `most` at a time: how many were.
 */
void message_lose(uint32_t node);
uint32_t message_restarted(uint32_t node, uint32_t most);

/* Put no bytes to a node where nothing is under way: if it has begun anew it says so. Takes no room
 * in its INBOX. */
void message_probe(uint32_t node);

void message_arrived(uint32_t arrival, uint32_t word);
void message_stray(uint32_t arrival, uint32_t word);
uint32_t message_handler(void);
uint32_t message_tick(uint32_t works); /* what PEER_WORKS said in this tick */

/* get.c ---------------------------------------------------------------------------------------- */

void get_boot(void);
bool get_command(uint32_t tag, uint32_t first_word);
void get_answered(uint32_t arrival, uint32_t word, uint32_t length); /* the last packet has come */
bool get_failed(uint32_t node, uint32_t inbox_tag, uint32_t word);

/* Let the answer to a request in, which has its context; or no longer. */
void get_expect(uint32_t tag, uint32_t key);
void get_forget(uint32_t tag);

/* What both ends check of the walk that is written to. */
enum dibber_status get_check_target(uint32_t tag, uint32_t levels, uint32_t length);

void get_asked(uint32_t tag);  /* the request lies in a slot of the inbox */
bool get_answer(uint32_t tag); /* queue the answer; false when it must wait */
void get_sent(uint32_t tag);   /* the answer has ended */

/* receive.c ------------------------------------------------------------------------------------ */

extern uint32_t receive_work;	 /* whether a RECEIVE that waits for its turn may go on */
extern uint32_t receive_waiting; /* RECEIVEs that have not ended */

void receive_boot(void);
bool receive_command(uint32_t tag, uint32_t first_word);
uint32_t receive_handler(void);
void receive_answered(uint32_t tag, uint32_t length); /* the message has come */
void receive_ended(uint32_t tag);
void receive_probe(void); /* the nodes whose messages are waited for */

/* End one that waits for its message; false when that must wait. */
bool receive_cancel(uint32_t tag, enum dibber_status status);

/* send.c --------------------------------------------------------------------------------------- */

extern uint32_t send_waiting; /* SENDs and READYs that have found none of the other */

void send_boot(void);
bool send_command(uint32_t tag, uint32_t first_word);
void send_ready(uint32_t tag); /* a RECEIVE of another node lies in a slot of the inbox */
bool send_unready(uint32_t node, uint32_t word); /* it waits no longer */
bool send_start(uint32_t ready_tag);		 /* queue what it met; false when it must wait */
void send_ended(uint32_t tag);			 /* the job and its acknowledgements */

/* Who waits for a node that is lost, or for an endpoint that closes, ends: how many did, at most
 * MCP_BATCH. */
extern uint32_t send_lost; /* a bit for each node of which a flow was given up */
uint32_t send_lose_step(void);
bool send_close_step(uint32_t endpoint);
void send_tick(bool link);

/* atomic.c ------------------------------------------------------------------------------------- */

bool atomic_command(uint32_t tag, uint32_t first_word);
bool atomic_replied(uint32_t node, uint32_t inbox_tag, uint32_t word);

/* An atomic of another node has ended, and hardware has not replied. */
uint32_t atomic_handler(void);

/* restart.c ------------------------------------------------------------------------------------ */

extern uint32_t restart_work; /* a bit for each flow that its target does not hold any more */

/* The target has refused a packet for that reason; and a new incarnation began for another one. */
void restart_heard(uint32_t number, uint32_t psn);
void restart_forget(uint32_t number);
uint32_t restart_step(void);

/* replay.c ------------------------------------------------------------------------------------- */

uint32_t replay_handler(void); /* EVENTS.nak, EVENTS.link */
uint32_t replay_timer_handler(void);

/* arrival.c ------------------------------------------------------------------------------------ */

uint32_t arrival_handler(void);

#endif
