/* Messages between peers: puts into a ring of slots at the receiver, one ring for each sender.
 *
 * A message ends with the end of its slot, because bytes of a put are written in order:
 *
 *	payload, padded in front to 8 bytes · data (8) · tag (8) · trailer (8)
 *
 * `data` and `tag` are there if the flags say so. The trailer holds kind (bits 7:0), flags (15:8),
 * length of the payload (31:16) and number (63:32). The number of the next message in the place of
 * the next trailer says that the message is there. So 40 bytes with tag and data go inline.
 *
 * The receiver puts how many messages it has taken into a word at the sender, after each half ring.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_RING_H
#define DFI_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "command.h"

struct domain;
struct peer;

#define RING_SLOTS    16u
#define RING_BYTES    (RING_SLOTS * BUFFER_BYTES)
#define PAYLOAD_BYTES 4096u /* of the longest message */

enum message_kind {
	MESSAGE_HELLO = 1, /* the first of all: the sender's key */
	MESSAGE_EAGER,	   /* a message of the program with its bytes */
	MESSAGE_OFFER,	   /* a message of the program whose bytes wait at the sender */
	MESSAGE_FETCHED,   /* the bytes of an offer were fetched */
	MESSAGE_NOTE,	   /* data of a write that has ended */
	MESSAGE_ATOMIC,
	MESSAGE_RESULT, /* of an atomic */
	MESSAGE_ASK_KEY,
	MESSAGE_TELL_KEY,
};

#define MESSAGE_TAG  1u /* the message has a tag */
#define MESSAGE_DATA 2u /* the message has data */

struct message {
	uint8_t kind, flags;
	uint16_t length;
	uint64_t tag, data;
	const void *payload;
};

/* Called when a message has been put (error 0) or could not be (a positive FI_ number). */
typedef void (*sent_t)(void *owner, int error);

/* Send a message, at once or when there is room. `done` may be NULL. It is never called from here.
 * Returns 0 or a negative FI_ number. */
int dfi_ring_send(struct domain *domain, struct peer *peer, const struct message *message,
		  sent_t done, void *owner);

/* Whether a message would go at once. */
bool dfi_ring_is_open(const struct peer *peer);

/* Take what a peer has sent, and send to it what there is room for. */
void dfi_ring_look(struct domain *domain, struct peer *peer);

/* End the messages that wait for room at a lost peer. */
void dfi_ring_drop(struct domain *domain, struct peer *peer);

/* Tell a peer that this domain ends. */
void dfi_ring_close(struct domain *domain, struct peer *peer);

/* Bytes of the memory that all rings need, and the offset of a peer's word of credit. */
uint64_t dfi_ring_memory(void);
uint64_t dfi_ring_credit(unsigned int index);

#endif
