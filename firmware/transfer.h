/* The table of transfers: what was sent from a slot and has not ended, and lines of them. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_TRANSFER_H
#define MCP_TRANSFER_H

#include "runtime.h"

/* The order matters: the fast path does the kinds up to ANSWER on lane BULK. */
enum transfer_kind {
	TRANSFER_PUT,	  /* BULK: a command */
	TRANSFER_INLINE,  /* EXPRESS: a command that carries its bytes */
	TRANSFER_ANSWER,  /* BULK: answer to a get, from a slot of the INBOX */
	TRANSFER_SEND,	  /* BULK: a command; before that it waits for its READY */
	TRANSFER_GET,	  /* EXPRESS: a command that goes as a message and gets an answer */
	TRANSFER_ATOMIC,  /* EXPRESS: as GET */
	TRANSFER_RECEIVE, /* EXPRESS: as GET; before that it waits for credit */
	TRANSFER_MESSAGE, /* EXPRESS: a message from the OUTBOX, or a reply from the INBOX */
	TRANSFER_REPLY,	  /* a reply that cannot go yet, at the INBOX slot of its request */
	TRANSFER_PROBE,	  /* EXPRESS: a put of no bytes from the OUTBOX. Any end of it shows that
			     the target was reached */
	TRANSFER_READY,	  /* a RECEIVE of another node, at its slot of the INBOX */
};

enum transfer_state {
	TRANSFER_FREE,
	TRANSFER_SENT,
	TRANSFER_AGAIN, /* BULK: sent more than once, no pass was whole */
	TRANSFER_WHOLE, /* BULK: a job of it ended, so all its packets may have been executed */
	TRANSFER_CUT,	/* BULK: its job failed; `end` is where it stopped */
	TRANSFER_OVER,	/* BULK: lost with its incarnation */
};

/* Bits of `busy`: what a transfer waits for, besides the acknowledgement of its packets. */
#define BUSY_JOB     1u	 /* the engine has a job with this tag and reads its slot */
#define BUSY_SUM     2u	 /* the checksum of one whole pass over its bytes */
#define BUSY_REQUEST 4u	 /* its message is not acknowledged: the slot is still read */
#define BUSY_ANSWER  8u	 /* the answer to its message */
#define BUSY_TURN    16u /* RECEIVE: credit to send its message */

/*
 * One transfer. Its index in the table is its tag. PSNs have 32 bits here ("extended"); the wire
 * carries the low 16.
 */
struct transfer {
	union {
		struct {
			uint32_t first, end; /* BULK: PSNs [first, end) */
		};
		uint32_t word; /* EXPRESS: the message word */
	};
	uint32_t cookie; /* of the command; ANSWER, REPLY, READY: the request's message word */
	uint32_t length; /* bytes */
	uint32_t key;	 /* of the completion; SEND, READY that wait: node and endpoints to match */
	uint16_t next;	 /* tag of the following transfer: of its flow (BULK), or of its line */
	uint8_t node;
	uint8_t flags; /* the command's */
	union {
		struct {
			uint8_t status;
			uint8_t busy;
			uint8_t kind;
			uint8_t state;
		};
		uint32_t life; /* the four bytes above as one word; 0: the entry is free */
	};
	union {
		uint32_t age;  /* GET, ATOMIC: ticks without an answer */
		uint32_t peer; /* SEND, READY: tag of the matching one, or MCP_NO_TAG */
	};
} __attribute__((aligned(32))); /* the address of an entry is a shift */

extern struct transfer transfers[MCP_TRANSFERS];

static inline bool transfer_is_free(uint32_t tag)
{
	return !transfers[tag].life;
}

/* Fill an entry that is free. The caller sets length, cookie, key and flags. */
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

/* Free an entry. Its slot stays reserved while the engine keeps a job of a transfer that was given
 * up. */
static inline void transfer_free(struct transfer *transfer)
{
	uint32_t busy = transfer->busy & BUSY_JOB;

	transfer->life = 0;
	transfer->busy = busy;
}

/* Free an entry of the INBOX and give its slot back to the gateware. */
void transfer_free_inbox(uint32_t tag);

/* A line (FIFO) of transfers that wait for something other than their flow. */
struct line {
	uint16_t head, tail;
};

static inline void line_clear(struct line *line)
{
	line->head = MCP_NO_TAG;
	line->tail = MCP_NO_TAG;
}

void line_append(struct line *line, uint32_t tag);

/* Take out `tag`, which follows `before`; `before` is MCP_NO_TAG if `tag` is the first. */
void line_remove(struct line *line, uint32_t tag, uint32_t before);

#endif
