/* Sending by mailbox: inline, from a copy, or by an announcement that there is something to fetch.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <string.h>

#include "card.h"
#include "clock.h"
#include "endpoint.h"
#include "error.h"
#include "halt.h"
#include "mailbox.h"
#include "mailbox_peer.h"
#include "mailbox_send.h"
#include "poll.h"
#include "put.h"

/* Whether memory and the card's slots have room for a message to a peer. */
static bool has_room(const struct dib_mailbox *m, const struct dib_peer *peer, uint8_t kind)
{
	const struct dib_endpoint *endpoint = m->endpoint;
	uint32_t slot = endpoint->producer & (endpoint->card->fixed.slots - 1);

	if (peer->sent - peer->taken >= m->size.slots || endpoint->busy & 1u << slot)
		return false;
	return kind == REFUSED_SHORT ||
	       (int32_t)(peer->taken - peer->long_number[peer->long_sent & 1]) >= 0;
}

bool dib_mailbox_has_room(struct dib_mailbox *m)
{
	for (uint32_t i = 0; i < m->size.peers; i++) {
		struct dib_peer *peer = &m->peers[i];

		if (!peer->refused)
			continue;
		dib_mailbox_look_at_words(m, peer);
		if (peer->error ||
		    (peer->refused & REFUSED_SHORT && has_room(m, peer, REFUSED_SHORT)) ||
		    (peer->refused & REFUSED_LONG && has_room(m, peer, REFUSED_LONG)))
			return true;
	}
	return false;
}

/* Put a message that a slot holds, or (`length` with LONG) the announcement of a long one. */
static int put(struct dib_mailbox *m, struct dib_peer *peer, const void *data, uint32_t length)
{
	struct dib_delivery delivery = dib_mailbox_delivery(m, peer, TAG_PUT, DIBBER_FLAG_NOTICE);
	uint32_t trailer[2] = { length, peer->sent + 1 };
	uint32_t bytes = length & LONG ? 0 : length;
	uint32_t padded = (bytes + 7u) & ~7u; /* a message is padded to whole words */
	uint32_t at = slot_of(m, peer->sent + 1) + capacity(m) - padded;
	uint8_t image[DIBBER_INLINE_BYTES];
	int rc;

	if (padded + TRAILER <= sizeof(image)) {
		memset(image, 0, sizeof(image));
		if (bytes)
			memcpy(image, data, bytes);
		memcpy(image + padded, trailer, TRAILER);
		return dib_issue_inline(m->endpoint, &delivery, image, peer->key, at,
					padded + TRAILER, DIBBER_CALL_MAILBOX_SEND);
	}
	memcpy(peer->staging + at, data, bytes);
	memcpy(peer->staging + at + padded, trailer, TRAILER);
	rc = dib_charge(m->endpoint, DIBBER_CALL_COPY, bytes);
	if (rc)
		return rc;
	return dib_issue_contiguous(m->endpoint, DIBBER_OPCODE_PUT, &delivery,
				    dib_key(m->own_region),
				    (uint64_t)(peer->staging - (uint8_t *)m->own) + at, peer->key,
				    at, padded + TRAILER, DIBBER_CALL_MAILBOX_SEND);
}

static int put_long(struct dib_mailbox *m, struct dib_peer *peer, const void *data, uint32_t length)
{
	unsigned int place = peer->long_sent & 1;
	int rc;

	memcpy(peer->ring + long_place(m, place), data, length);
	rc = dib_charge(m->endpoint, DIBBER_CALL_COPY, length);
	if (!rc)
		rc = put(m, peer, NULL, length | LONG | (place ? SECOND : 0));
	if (rc)
		return rc;
	peer->long_number[place] = peer->sent + 1;
	peer->long_sent++;
	return 0;
}

int dib_mailbox_send(struct dib_mailbox *m, uint32_t index, const void *data, uint32_t length)
{
	struct dib_peer *peer;
	uint8_t kind;
	int rc;

	rc = dib_mailbox_check(m);
	if (rc)
		return rc;
	if (index >= m->size.peers || !m->peers[index].connected || (!data && length) ||
	    length > m->size.max_length)
		return dib_fail(
			DIB_ERR_ARGUMENT,
			"%u bytes to peer %u, of which %u can be connected, %u bytes being possible",
			length, index, m->size.peers, m->size.max_length);
	rc = dib_mailbox_progress(m);
	if (rc)
		return rc;
	peer = &m->peers[index];
	dib_mailbox_look_at_words(m, peer);
	if (peer->error)
		return dib_mailbox_error(m, peer);
	kind = length > capacity(m) ? REFUSED_LONG : REFUSED_SHORT;
	if (!has_room(m, peer, kind))
		rc = DIB_ERR_AGAIN;
	else
		rc = kind == REFUSED_LONG ? put_long(m, peer, data, length)
					  : put(m, peer, data, length);
	if (rc == DIB_ERR_AGAIN) {
		peer->refused |= kind;
		/* A program that tries again and again must not stop time. */
		rc = dib_found_nothing(m->endpoint, DIBBER_CALL_MAILBOX_EMPTY, 1);
		if (!rc && m->endpoint->halted)
			return dib_halted(m->endpoint);
		/* If the peer is gone, there will never be room. */
		if (!rc)
			rc = dib_mailbox_ask(m, NULL);
		return rc ? rc
			  : dib_fail(
				    DIB_ERR_AGAIN,
				    "peer %u has not taken its messages, or the card is busy: wait for room",
				    index);
	}
	if (rc)
		return rc;
	peer->refused &= (uint8_t)~kind;
	peer->under_way++;
	peer->sent++;
	return 0;
}
