/*
 * The parts of mailboxes that several files share. A connection has two ends of the same form.
 * For each peer an end has memory that only this peer can reach:
 *
 *	ring of slots | how many of our messages it took | our long messages, two places
 *
 * A message ends with the last 8 bytes of its slot: its length and its number, counted from 1.
 * They are the last bytes of the put, and its bytes are written in order. So a slot with the
 * next number has the whole message. If a message's length has LONG set, the message is in the
 * sender's memory, in the second place there if SECOND is set.
 *
 * Everything that a peer can write is checked here whenever it is read, once, from a copy. A
 * peer's notices wake this thread and carry nothing else.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_MAILBOX_H
#define DIBBER_MAILBOX_H

#include "handle.h"

#define TRAILER 8u /* bytes of length and number at the end of a slot */
#define LONG	0x80000000u
#define SECOND	0x40000000u
#define LENGTH	0x3fffffffu /* the other bits of a length */
/* Bytes between ring and long messages. The first 8: messages taken, and 1 when closed. */
#define WORDS  64u
#define NOBODY ~0u

/* The low bits of a command's tag. The bits above are the peer's index. */
#define TAG_BITS  2u
#define TAG_PUT	  0u
#define TAG_FETCH 1u
#define TAG_PROBE 2u

#define PROBE_BYTES 8u /* that a probe reads of the peer's words */

enum fetch { FETCH_NONE, FETCH_RUNS, FETCH_DONE };

struct dib_peer {
	struct dib_region *region;
	uint8_t *ring;	  /* start of its memory */
	uint8_t *staging; /* copies of messages to be put, in the layout of the peer's ring */
	bool connected;
	/* The peer's: the key of its memory for this end, its node and its endpoint. */
	uint32_t key;
	uint16_t node, endpoint;

	uint32_t sent;		 /* messages, modulo 2³² */
	uint32_t taken;		 /* of them, taken by the other end */
	uint32_t long_sent;	 /* of them, long ones */
	uint32_t long_number[2]; /* number of the last message in each place */
	uint8_t refused;	 /* kinds that dib_mailbox_send() had no room for, or'ed */
#define REFUSED_SHORT 1u
#define REFUSED_LONG  2u

	uint32_t received;     /* messages, modulo 2³² */
	uint32_t returned;     /* the value of `received` that the other end knows */
	bool owing;	       /* the other end is to be told */
	enum fetch fetch;      /* state of the next message, if it is a long one */
	uint32_t fetch_length; /* its length */

	bool alive;	     /* something came from the peer since the last question */
	uint64_t heard_ps;   /* when that was noticed */
	uint64_t silence_ns; /* time without news until the peer is asked */
	bool asked;	     /* a probe is under way */

	unsigned int under_way; /* commands under way */
	int error;		/* why the peer was given up, or 0 */
	uint8_t status;		/* with COMMAND: enum dibber_status */
	bool told;
};

struct dib_mailbox {
	struct dib_handle handle;
	struct dib_endpoint *endpoint;
	struct dib_mailbox_options size;
	void *memory; /* of all peers */
	size_t peer_bytes;
	void *own; /* staging of all peers, then the place for a long message that is fetched */
	struct dib_region *own_region;
	uint64_t landing;  /* offset of that place */
	uint64_t probes;   /* offset of the answers to probes, PROBE_BYTES for each peer */
	uint32_t fetching; /* peer whose message is fetched, or NOBODY */
	uint32_t turn;	   /* peer that is looked at first */
	uint32_t renewed;  /* peer in whose place another one is being connected */
	uint32_t looks;	   /* receives that found nothing since the peers were last asked */
	struct dib_peer peers[];
};

static inline uint32_t ring_bytes(const struct dib_mailbox *m)
{
	return m->size.slots * m->size.slot_bytes;
}

/* Bytes of the longest message that a slot holds. */
static inline uint32_t capacity(const struct dib_mailbox *m)
{
	return m->size.slot_bytes - TRAILER;
}

/* Offset in a ring of the slot of the message with this number. */
static inline uint32_t slot_of(const struct dib_mailbox *m, uint32_t number)
{
	return ((number - 1) & (m->size.slots - 1)) * m->size.slot_bytes;
}

/* Offset of a place for long messages in a peer's memory, at either end. */
static inline uint64_t long_place(const struct dib_mailbox *m, unsigned int place)
{
	return (uint64_t)ring_bytes(m) + WORDS + (uint64_t)place * m->size.max_length;
}

/* A word that the other end writes. */
static inline uint64_t read_word(const uint8_t *memory)
{
	return __atomic_load_n((const uint64_t *)(const void *)memory, __ATOMIC_ACQUIRE);
}

/* Check that a call on the mailbox can be served. Returns 0, or what the call returns. */
int dib_mailbox_check(const struct dib_mailbox *mailbox);

#endif
