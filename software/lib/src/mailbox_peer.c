/* This file is part of Dibber.
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* What passes between a mailbox and a peer beside messages: how many were taken, that it closed, that it failed. */

#include "mailbox.h"

#define BATCH 16

static int error_of(enum dibber_status status)
{
	switch (status) {
	case DIBBER_STATUS_TIMEOUT:
		return DIB_ERR_TIMEOUT;
	case DIBBER_STATUS_REMOTE_BAD_KEY:	/* its memory is gone: it ended without saying so */
		return DIB_ERR_CLOSED;
	default:
		return DIB_ERR_COMMAND;
	}
}

int dib_mailbox_error(const struct dib_mailbox *m, const struct dib_peer *peer)
{
	unsigned int index = (unsigned int)(peer - m->peers);

	switch (peer->error) {
	case DIB_ERR_TIMEOUT:
		return dib_fail(DIB_ERR_TIMEOUT, "peer %u (node %u) cannot be reached", index, peer->node);
	case DIB_ERR_CLOSED:
		return dib_fail(DIB_ERR_CLOSED, "peer %u (node %u) has closed its mailbox", index, peer->node);
	case DIB_ERR_PROTOCOL:
		return dib_fail(DIB_ERR_PROTOCOL, "peer %u (node %u) wrote what no mailbox does", index, peer->node);
	default:
		return dib_fail(DIB_ERR_COMMAND, "peer %u (node %u): %s (%s)", index, peer->node,
				dib_status_name(peer->status), dib_status_string(peer->status));
	}
}

struct dib_delivery dib_mailbox_delivery(const struct dib_mailbox *m, const struct dib_peer *peer, unsigned int tag,
					 unsigned int flags)
{
	return (struct dib_delivery){
		.tag = (uint64_t)(peer - m->peers) << 1 | tag, .node = peer->node, .endpoint = (uint8_t)peer->endpoint,
		.flags = (uint8_t)flags,
	};
}

static void ended(struct dib_mailbox *m, const struct dib_completion *done)
{
	struct dib_peer *peer = &m->peers[done->tag >> 1];

	peer->under_way--;
	if ((done->tag & 1) == TAG_FETCH)
		peer->fetch = done->status == DIBBER_STATUS_OK ? FETCH_DONE : FETCH_NONE;
	if (done->status == DIBBER_STATUS_OK)
		return;
	if ((done->tag & 1) == TAG_FETCH)
		m->fetching = NOBODY;
	if (!peer->error) {
		peer->status = done->status;
		peer->error = error_of(done->status);
	}
}

int dib_mailbox_progress(struct dib_mailbox *m)
{
	struct dib_completion done[BATCH];
	int count;

	if (!dib_has_completion(m->endpoint))
		return 0;
	do {
		count = dib_take_completions(m->endpoint, done, BATCH);
		for (int i = 0; i < count; i++)
			ended(m, &done[i]);
	} while (count == BATCH);
	return count < 0 ? count : 0;
}

int dib_mailbox_drop_events(struct dib_mailbox *m)
{
	struct dib_event events[BATCH];
	int count;

	if (!dib_queue_peek(&m->endpoint->events))
		return 0;
	do
		count = dib_take_events(m->endpoint, events, BATCH);
	while (count == BATCH);
	return count < 0 ? count : 0;
}

void dib_mailbox_look_at_words(struct dib_mailbox *m, struct dib_peer *peer)
{
	uint64_t word = read_word(peer->ring + ring_bytes(m));
	uint32_t taken = (uint32_t)word;

	if (peer->error)
		return;
	if (taken - peer->taken > peer->sent - peer->taken || word >> 33)
		peer->error = DIB_ERR_PROTOCOL;
	else if (word >> 32)
		peer->error = DIB_ERR_CLOSED;
	else
		peer->taken = taken;
}

int dib_mailbox_give_back(struct dib_mailbox *m, struct dib_peer *peer, bool closed)
{
	/* A fence, for it must not overtake messages, which another lane may carry. */
	struct dib_delivery delivery = dib_mailbox_delivery(m, peer, TAG_PUT, DIBBER_FLAG_NOTICE |
							    (closed ? DIBBER_FLAG_FENCE : 0u));
	const uint32_t words[2] = { peer->received, closed };
	int rc = dib_issue_inline(m->endpoint, &delivery, words, peer->key, ring_bytes(m), sizeof(words),
				  DIBBER_CALL_PUT);

	if (rc)
		return rc;
	peer->under_way++;
	peer->returned = peer->received;
	peer->owing = false;
	return 0;
}
