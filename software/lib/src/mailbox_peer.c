/* What a mailbox and a peer exchange beside messages: how many messages were taken, that one
 * closed, that one failed. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "endpoint.h"
#include "error.h"
#include "mailbox.h"
#include "mailbox_peer.h"
#include "poll.h"
#include "put.h"
#include "queue.h"

#define BATCH 16

static int error_of(enum dibber_status status)
{
	switch (status) {
	case DIBBER_STATUS_TIMEOUT:
		return DIB_ERR_TIMEOUT;
	case DIBBER_STATUS_REMOTE_BAD_KEY:    /* its memory is gone, so its process ended without
						 closing the mailbox */
	case DIBBER_STATUS_REMOTE_READ_ERROR: /* the same: the read of its memory fails */
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
		return dib_fail(DIB_ERR_TIMEOUT, "peer %u (node %u) cannot be reached", index,
				peer->node);
	case DIB_ERR_CLOSED:
		return dib_fail(DIB_ERR_CLOSED, "peer %u (node %u) has closed its mailbox%s", index,
				peer->node, peer->status ? ", or has ended" : "");
	case DIB_ERR_PROTOCOL:
		return dib_fail(DIB_ERR_PROTOCOL,
				"peer %u (node %u) wrote an invalid slot or count", index,
				peer->node);
	default:
		return dib_fail(DIB_ERR_COMMAND, "peer %u (node %u): %s (%s)", index, peer->node,
				dib_status_name(peer->status), dib_status_string(peer->status));
	}
}

struct dib_delivery dib_mailbox_delivery(const struct dib_mailbox *m, const struct dib_peer *peer,
					 unsigned int tag, unsigned int flags)
{
	return (struct dib_delivery){
		.tag = (uint64_t)(peer - m->peers) << TAG_BITS | tag,
		.node = peer->node,
		.endpoint = (uint8_t)peer->endpoint,
		.flags = (uint8_t)flags,
	};
}

static void ended(struct dib_mailbox *m, const struct dib_completion *done)
{
	struct dib_peer *peer = &m->peers[done->tag >> TAG_BITS];
	unsigned int tag = done->tag & ((1u << TAG_BITS) - 1);

	peer->under_way--;
	if (tag == TAG_PROBE)
		peer->asked = false;
	if (tag == TAG_FETCH)
		peer->fetch = done->status == DIBBER_STATUS_OK ? FETCH_DONE : FETCH_NONE;
	if (done->status == DIBBER_STATUS_OK)
		return;
	if (tag == TAG_FETCH)
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
	else if (taken != peer->taken) {
		peer->taken = taken;
		peer->alive = true;
	}
}

int dib_mailbox_give_back(struct dib_mailbox *m, struct dib_peer *peer, bool closed)
{
	/* A fence, because this put must not overtake messages that another lane may carry. */
	struct dib_delivery delivery = dib_mailbox_delivery(
		m, peer, TAG_PUT, DIBBER_FLAG_NOTICE | (closed ? DIBBER_FLAG_FENCE : 0u));
	const uint32_t words[2] = { peer->received, closed };
	int rc = dib_issue_inline(m->endpoint, &delivery, words, peer->key, ring_bytes(m),
				  sizeof(words), DIBBER_CALL_PUT);

	if (rc)
		return rc;
	peer->under_way++;
	peer->returned = peer->received;
	peer->owing = false;
	return 0;
}

#define ASK_FIRST_NS 1000000u /* time without news of a peer until it is asked */
#define ASK_LAST_NS  8000000u /* that time doubles with each answer, up to this value */

static void ask(struct dib_mailbox *m, struct dib_peer *peer)
{
	struct dib_delivery delivery = dib_mailbox_delivery(m, peer, TAG_PROBE, 0);
	uint64_t place = m->probes + (uint64_t)(peer - m->peers) * PROBE_BYTES;

	/* Without a free command slot the peer is asked next time. A command that is under way to
	 * it reports the same. */
	if (dib_issue_contiguous(m->endpoint, DIBBER_OPCODE_GET, &delivery, peer->key,
				 ring_bytes(m), dib_key(m->own_region), place, PROBE_BYTES,
				 DIBBER_CALL_PUT))
		return;
	peer->under_way++;
	peer->asked = true;
	if (peer->silence_ns < ASK_LAST_NS)
		peer->silence_ns *= 2;
}

int dib_mailbox_ask(struct dib_mailbox *m, uint64_t *wait_ns)
{
	uint64_t least = ASK_LAST_NS, silent;
	struct dib_clock clock;
	int rc = dib_clock_now(m->endpoint, &clock);

	if (rc)
		return rc;
	m->looks = 0;
	for (uint32_t i = 0; i < m->size.peers; i++) {
		struct dib_peer *peer = &m->peers[i];

		if (!peer->connected || peer->error || peer->asked)
			continue;
		if (peer->alive) {
			peer->alive = false;
			peer->heard_ps = clock.now_ps;
			peer->silence_ns = ASK_FIRST_NS;
		}
		silent = (clock.now_ps - peer->heard_ps) / 1000u;
		if (silent >= peer->silence_ns) {
			ask(m, peer);
			peer->heard_ps = clock.now_ps;
			silent = 0;
		}
		if (peer->silence_ns - silent < least)
			least = peer->silence_ns - silent;
	}
	if (wait_ns)
		*wait_ns = least;
	return 0;
}
