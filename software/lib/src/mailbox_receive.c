/* Receiving by mailbox: looking at rings, fetching long messages, copying, and waiting. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <string.h>

#include "clock.h"
#include "endpoint.h"
#include "error.h"
#include "halt.h"
#include "mailbox.h"
#include "mailbox_peer.h"
#include "mailbox_send.h"
#include "poll.h"
#include "put.h"

#define LOOKS 256u /* empty receives until the peers are asked whether they are there */

/* Begin to fetch the next message of a peer, if the only place for long messages is free and the
 * card takes the command. */
static void fetch(struct dib_mailbox *m, struct dib_peer *peer, uint32_t length)
{
	struct dib_delivery delivery = dib_mailbox_delivery(m, peer, TAG_FETCH, 0);

	if (m->fetching != NOBODY || peer->error)
		return;
	if (dib_issue_contiguous(m->endpoint, DIBBER_OPCODE_GET, &delivery, peer->key,
				 long_place(m, !!(length & SECOND)), dib_key(m->own_region),
				 m->landing, length & LENGTH, DIBBER_CALL_PUT))
		return;
	m->fetching = (uint32_t)(peer - m->peers);
	peer->under_way++;
	peer->fetch = FETCH_RUNS;
	peer->fetch_length = length & LENGTH;
}

/* Returns 1 if a peer's next message is here: `length` is its length, with LONG if it lies in
 * `landing`. Returns 0 if there is none, or the peer's error. */
static int look(struct dib_mailbox *m, struct dib_peer *peer, uint32_t *length)
{
	uint32_t number = peer->received + 1;
	uint64_t trailer;

	if (!peer->connected || peer->told)
		return 0;
	if (peer->fetch == FETCH_DONE) {
		*length = peer->fetch_length | LONG;
		return 1;
	}
	trailer = read_word(peer->ring + slot_of(m, number) + capacity(m));
	if ((uint32_t)(trailer >> 32) == number && peer->fetch == FETCH_NONE &&
	    peer->error != DIB_ERR_PROTOCOL) {
		*length = (uint32_t)trailer;
		if (*length & LONG && (*length & LENGTH) - 1u < m->size.max_length)
			fetch(m, peer, *length);
		else if (*length <= capacity(m))
			return 1;
		else
			peer->error = DIB_ERR_PROTOCOL;
	} else {
		dib_mailbox_look_at_words(m, peer);
		/* The peer may have sent a message and then closed, between the two reads. */
		if (peer->error == DIB_ERR_CLOSED && peer->fetch == FETCH_NONE &&
		    (uint32_t)(read_word(peer->ring + slot_of(m, number) + capacity(m)) >> 32) ==
			    number)
			return 0;
	}
	if (peer->error && peer->fetch == FETCH_NONE)
		return peer->error;
	return 0;
}

/* Whether dib_mailbox_receive() has something to return. Begins to fetch a long message. */
static bool has_message(struct dib_mailbox *m)
{
	uint32_t length;

	for (uint32_t i = 0; i < m->size.peers; i++)
		if (look(m, &m->peers[i], &length))
			return true;
	return false;
}

/* Copy a message out. Give its slot back when that is due. */
static int take(struct dib_mailbox *m, struct dib_peer *peer, void *data, uint32_t length)
{
	uint32_t bytes = length & LENGTH;
	const uint8_t *from =
		peer->ring + slot_of(m, peer->received + 1) + capacity(m) - ((bytes + 7u) & ~7u);
	int rc;

	if (length & LONG)
		from = (uint8_t *)m->own + m->landing;
	if (bytes)
		memcpy(data, from, bytes);
	if (length & LONG) {
		peer->fetch = FETCH_NONE;
		m->fetching = NOBODY;
	}
	peer->received++;
	peer->alive = true;
	/* Slots are given back by half a ring. A long message is given back at once, because the
	 * sender has only two places for them. */
	if (length & LONG || peer->received - peer->returned >= m->size.slots / 2)
		peer->owing = true;
	rc = dib_charge(m->endpoint, DIBBER_CALL_MAILBOX_RECEIVE, 1);
	if (!rc && bytes)
		rc = dib_charge(m->endpoint, DIBBER_CALL_COPY, bytes);
	return rc;
}

/* Without a free command slot this happens at the next look. */
static void give_back_what_is_due(struct dib_mailbox *m, struct dib_peer *peer)
{
	if (peer->owing && !peer->error)
		dib_mailbox_give_back(m, peer, false);
}

int dib_mailbox_receive(struct dib_mailbox *m, void *data, uint32_t room,
			struct dib_message *message)
{
	uint32_t length;
	int rc;

	rc = dib_mailbox_check(m);
	if (rc)
		return rc;
	if (!message || (!data && room))
		return dib_fail(DIB_ERR_ARGUMENT, "no %s given",
				message ? "memory" : "place for the message");
	if ((rc = dib_mailbox_progress(m)) || (rc = dib_mailbox_drop_events(m)))
		return rc;
	for (uint32_t i = 0; i < m->size.peers; i++) {
		uint32_t index = (m->turn + i) % m->size.peers;
		struct dib_peer *peer = &m->peers[index];

		rc = look(m, peer, &length);
		if (rc == 0) {
			give_back_what_is_due(m, peer);
			continue;
		}
		*message = (struct dib_message){ .peer = index,
						 .length = rc > 0 ? length & LENGTH : 0 };
		if (message->length > room)
			return dib_fail(DIB_ERR_ARGUMENT,
					"room for %u bytes, and the message of peer %u has %u",
					room, index, message->length);
		m->turn = (index + 1) % m->size.peers;
		if (rc < 0) {
			peer->told = true;
			return dib_mailbox_error(m, peer);
		}
		rc = take(m, peer, data, length);
		give_back_what_is_due(m, peer);
		return rc ? rc : 1;
	}
	rc = dib_found_nothing(m->endpoint, DIBBER_CALL_MAILBOX_EMPTY, m->size.peers);
	if (!rc && ++m->looks >= LOOKS)
		rc = dib_mailbox_ask(m, NULL);
	return !rc && m->endpoint->halted ? dib_halted(m->endpoint) : rc;
}

/* Waiting -------------------------------------------------------------------------------------- */

/* If all connected peers were given up and nothing is left to be reported, no news can come: return
 * the error of one of them. */
static int no_peer_is_left(const struct dib_mailbox *m, unsigned int news)
{
	const struct dib_peer *lost = NULL;

	for (uint32_t i = 0; i < m->size.peers; i++) {
		const struct dib_peer *peer = &m->peers[i];

		if (peer->connected &&
		    !(news & DIB_MAILBOX_MESSAGE ? peer->told : peer->error != 0))
			return 0;
		if (peer->connected)
			lost = peer;
	}
	return lost ? dib_mailbox_error(m, lost) : 0;
}

int dib_mailbox_wait(struct dib_mailbox *m, unsigned int news, uint64_t timeout_ns)
{
	struct dib_clock begin, now;
	uint64_t left, pause;
	int rc;

	rc = dib_mailbox_check(m);
	if (rc)
		return rc;
	if (!news || news & ~(unsigned int)(DIB_MAILBOX_MESSAGE | DIB_MAILBOX_ROOM))
		return dib_fail(DIB_ERR_ARGUMENT,
				"0x%x is not in enum dib_mailbox_news: nothing to wait for", news);
	rc = dib_clock_now(m->endpoint, &begin);
	for (now = begin; !rc; rc = dib_clock_now(m->endpoint, &now)) {
		if ((rc = dib_mailbox_progress(m)) || (rc = dib_mailbox_drop_events(m)))
			return rc;
		if ((news & DIB_MAILBOX_MESSAGE && has_message(m)) ||
		    (news & DIB_MAILBOX_ROOM && dib_mailbox_has_room(m)))
			return 1;
		if ((rc = no_peer_is_left(m, news)))
			return rc;
		rc = dib_mailbox_ask(m, &pause);
		if (rc)
			return rc;
		left = (now.now_ps - begin.now_ps) / 1000u;
		if (left >= timeout_ns)
			return 0;
		left = timeout_ns - left;
		rc = dib_wait(m->endpoint, left < pause ? left : pause);
		if (rc < 0)
			return rc;
	}
	return rc;
}
