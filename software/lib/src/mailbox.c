/* Mailboxes: opening, connecting, closing. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <string.h>

#include "card.h"
#include "endpoint.h"
#include "error.h"
#include "halt.h"
#include "handle.h"
#include "mailbox.h"
#include "mailbox_peer.h"
#include "memory.h"
#include "region.h"

#define PEERS	  32u
#define LINGER_NS 100000000u /* time for peers to fetch long messages at a close */
#define SETTLE_NS 200000000u /* time for its commands to end; with a lost peer that takes 80 ms */
#define LOOK_NS	  1000000u

#define PEER_RIGHTS (DIBBER_RIGHT_REMOTE_WRITE | DIBBER_RIGHT_REMOTE_READ)
#define OWN_RIGHTS  (DIBBER_RIGHT_LOCAL_READ | DIBBER_RIGHT_LOCAL_WRITE)

static int check_sizes(const struct dib_mailbox_options *o)
{
	if (o->peers > PEERS)
		return dib_fail(DIB_ERR_ARGUMENT, "a mailbox of %u peers: 1 to %u are possible",
				o->peers, PEERS);
	if (o->slots < 2 || o->slots > 256 || o->slots & (o->slots - 1))
		return dib_fail(DIB_ERR_ARGUMENT, "%u slots: a power of two from 2 to 256",
				o->slots);
	if (o->slot_bytes < 128 || o->slot_bytes > 131072 || o->slot_bytes % 64)
		return dib_fail(DIB_ERR_ARGUMENT,
				"slots of %u bytes: a multiple of 64 from 128 to 131072",
				o->slot_bytes);
	if (o->max_length > LENGTH)
		return dib_fail(DIB_ERR_ARGUMENT, "messages of %u bytes: up to %u are possible",
				o->max_length, LENGTH);
	return 0;
}

static void choose_sizes(struct dib_mailbox_options *chosen,
			 const struct dib_mailbox_options *options)
{
	*chosen = options ? *options : (struct dib_mailbox_options){ 0 };
	if (!chosen->peers)
		chosen->peers = 1;
	if (!chosen->slots)
		chosen->slots = 16;
	if (!chosen->slot_bytes)
		chosen->slot_bytes = 32768 + 64;
	if (!chosen->max_length)
		chosen->max_length = 1u << 20;
}

static void give_memory_back(struct dib_mailbox *m)
{
	for (uint32_t i = 0; i < m->size.peers; i++)
		dib_unregister(m->peers[i].region);
	dib_unregister(m->own_region);
	dib_free(m->memory);
	dib_free(m->own);
}

static int get_memory(struct dib_mailbox *m, struct dib_endpoint *endpoint)
{
	size_t own_bytes;
	int rc;

	m->peer_bytes = (size_t)long_place(m, 2);
	m->peer_bytes = (m->peer_bytes + DIB_PAGE - 1) & ~(size_t)(DIB_PAGE - 1);
	m->landing = (uint64_t)ring_bytes(m) * m->size.peers;
	m->probes =
		(m->landing + m->size.max_length + PROBE_BYTES - 1) & ~(uint64_t)(PROBE_BYTES - 1);
	own_bytes = (size_t)m->probes + (size_t)m->size.peers * PROBE_BYTES;
	if ((rc = dib_alloc_own(m->peer_bytes * m->size.peers, &m->memory)) ||
	    (rc = dib_alloc_own(own_bytes, &m->own)) ||
	    (rc = dib_register(endpoint, m->own, own_bytes, OWN_RIGHTS, &m->own_region)))
		return rc;
	for (uint32_t i = 0; i < m->size.peers; i++) {
		struct dib_peer *peer = &m->peers[i];

		peer->ring = (uint8_t *)m->memory + i * m->peer_bytes;
		peer->staging = (uint8_t *)m->own + (size_t)i * ring_bytes(m);
		rc = dib_register(endpoint, peer->ring, m->peer_bytes, PEER_RIGHTS, &peer->region);
		if (rc)
			return rc;
	}
	return 0;
}

/* The endpoint or card of the mailbox is being closed. */
static void detach(struct dib_mailbox *m, enum dib_kind closed)
{
	m->endpoint->mailbox = NULL;
	dib_handle_orphan(m, closed);
	give_memory_back(m);
}

int dib_mailbox_open(struct dib_endpoint *endpoint, const struct dib_mailbox_options *options,
		     struct dib_mailbox **out)
{
	struct dib_mailbox_options chosen;
	struct dib_mailbox *m;
	int rc;

	rc = dib_endpoint_check(endpoint);
	if (rc)
		return rc;
	if (!out)
		return dib_fail(DIB_ERR_ARGUMENT, "no place for the mailbox given");
	choose_sizes(&chosen, options);
	rc = check_sizes(&chosen);
	if (rc)
		return rc;
	if (endpoint->mailbox || endpoint->busy)
		return dib_fail(
			DIB_ERR_IN_USE,
			endpoint->mailbox
				? "the endpoint has a mailbox"
				: "the endpoint has commands under way: poll their completions first");
	m = dib_handle_new(DIB_KIND_MAILBOX, sizeof(*m) + chosen.peers * sizeof(m->peers[0]));
	if (!m)
		return DIB_ERR_NO_MEMORY;
	m->size = chosen;
	m->fetching = NOBODY;
	rc = get_memory(m, endpoint);
	if (rc) {
		give_memory_back(m);
		dib_handle_end(m);
		return rc;
	}
	m->endpoint = endpoint;
	m->handle.life = DIB_LIFE_OPEN;
	endpoint->detach = detach;
	endpoint->mailbox = m;
	dib_endpoint_update(endpoint);
	*out = m;
	return 0;
}

/* Let time go on while `waits` returns true, for at most `most` nanoseconds. */
static int wait_while(struct dib_mailbox *m, bool (*waits)(struct dib_mailbox *m), uint64_t most)
{
	struct dib_clock begin, now;
	int rc = dib_mailbox_progress(m);

	if (!rc)
		rc = dib_clock_now(m->endpoint, &begin);
	while (!rc && waits(m)) {
		rc = dib_wait(m->endpoint, LOOK_NS);
		if (rc < 0 || (rc = dib_mailbox_progress(m)) || (rc = dib_mailbox_drop_events(m)) ||
		    (rc = dib_clock_now(m->endpoint, &now)))
			return rc;
		if ((now.now_ps - begin.now_ps) / 1000u > most)
			return 0;
	}
	return rc;
}

int dib_mailbox_check(const struct dib_mailbox *m)
{
	int rc = dib_handle_check(m, DIB_KIND_MAILBOX);

	if (rc)
		return rc;
	return m->endpoint->halted ? dib_halted(m->endpoint) : 0;
}

static int check_peer(const struct dib_mailbox *m, uint32_t peer, const void *address)
{
	int rc = dib_mailbox_check(m);

	if (rc)
		return rc;
	if (peer >= m->size.peers)
		return dib_fail(DIB_ERR_ARGUMENT, "peer %u: this mailbox has %u", peer,
				m->size.peers);
	if (!address)
		return dib_fail(DIB_ERR_ARGUMENT, "no address given");
	return 0;
}

static bool commands_under_way(struct dib_mailbox *m)
{
	for (uint32_t i = 0; i < m->size.peers; i++)
		if (m->peers[i].under_way)
			return true;
	return false;
}

static bool former_under_way(struct dib_mailbox *m)
{
	return m->peers[m->renewed].under_way;
}

/* Give the ring a new key. A peer that was given up may still live, and write with the former key.
 */
static int change_key(struct dib_mailbox *m, struct dib_peer *peer)
{
	struct dib_card *card = m->endpoint->card;
	int rc = dib_card_enter(card, m->endpoint->participant);

	if (rc)
		return rc;
	rc = dib_region_change_key(m->endpoint, peer->region, m->peer_bytes, PEER_RIGHTS);
	dib_card_leave(card);
	return rc;
}

/* Make room for a new peer in the place of one that was given up. */
static int begin_anew(struct dib_mailbox *m, struct dib_peer *peer)
{
	struct dib_peer next = { .ring = peer->ring, .staging = peer->staging };
	int rc;

	/* Completions of commands under way would be taken for the new peer's. */
	m->renewed = (uint32_t)(peer - m->peers);
	if ((rc = wait_while(m, former_under_way, SETTLE_NS)))
		return rc;
	if (peer->under_way)
		return dib_fail(DIB_ERR_AGAIN, "commands to the former peer have not ended");
	/* A peer that has said that it closed its mailbox writes no more. */
	if ((peer->error != DIB_ERR_CLOSED || peer->status) && (rc = change_key(m, peer)))
		return rc;
	if (m->fetching == (uint32_t)(peer - m->peers))
		m->fetching = NOBODY;
	next.region = peer->region;
	*peer = next;
	memset(peer->ring, 0, (size_t)long_place(m, 0));
	return 0;
}

int dib_mailbox_address(struct dib_mailbox *m, uint32_t peer, struct dib_mailbox_address *address)
{
	int rc = check_peer(m, peer, address);

	if (!rc && m->peers[peer].error)
		rc = begin_anew(m, &m->peers[peer]);
	if (rc)
		return rc;
	*address = (struct dib_mailbox_address){
		.key = dib_key(m->peers[peer].region),
		.node = (uint16_t)m->endpoint->card->fixed.node,
		.endpoint = (uint16_t)m->endpoint->number,
		.slots = m->size.slots,
		.slot_bytes = m->size.slot_bytes,
		.max_length = m->size.max_length,
	};
	return 0;
}

int dib_mailbox_connect(struct dib_mailbox *m, uint32_t index,
			const struct dib_mailbox_address *address)
{
	int rc = check_peer(m, index, address);
	struct dib_peer *peer;

	if (rc)
		return rc;
	if (address->slots != m->size.slots || address->slot_bytes != m->size.slot_bytes ||
	    address->max_length != m->size.max_length)
		return dib_fail(
			DIB_ERR_ARGUMENT,
			"the other mailbox has %u slots of %u bytes for messages of up to %u bytes, this one %u, %u, %u",
			address->slots, address->slot_bytes, address->max_length, m->size.slots,
			m->size.slot_bytes, m->size.max_length);
	if (address->node >= m->endpoint->card->fixed.nodes ||
	    address->endpoint >= DIBBER_ENDPOINTS)
		return dib_fail(DIB_ERR_ARGUMENT, "no node %u with an endpoint %u is possible",
				address->node, address->endpoint);
	peer = &m->peers[index];
	if ((rc = dib_mailbox_progress(m)))
		return rc;
	if (peer->connected)
		dib_mailbox_look_at_words(m, peer);
	if (peer->error && (rc = begin_anew(m, peer)))
		return rc;
	if (peer->connected)
		return dib_fail(DIB_ERR_IN_USE, "peer %u is connected already", index);
	peer->key = address->key;
	peer->node = address->node;
	peer->endpoint = address->endpoint;
	peer->connected = true;
	peer->alive = true;
	return 0;
}

/* Closing -------------------------------------------------------------------------------------- */

/* Whether a peer that can be reached has not fetched a long message. */
static bool long_waits(struct dib_mailbox *m)
{
	for (uint32_t i = 0; i < m->size.peers; i++) {
		struct dib_peer *peer = &m->peers[i];

		dib_mailbox_look_at_words(m, peer);
		for (unsigned int place = 0; place < 2 && !peer->error; place++)
			if ((int32_t)(peer->taken - peer->long_number[place]) < 0)
				return true;
	}
	return false;
}

/* The same, and ask the peers whether they are there. */
static bool long_waits_there(struct dib_mailbox *m)
{
	return long_waits(m) && !dib_mailbox_ask(m, NULL) && long_waits(m);
}

/* Tell one peer after another that this mailbox closes. Returns whether some are left. */
static bool say_closed(struct dib_mailbox *m)
{
	for (uint32_t i = 0; i < m->size.peers; i++) {
		struct dib_peer *peer = &m->peers[i];

		if (!peer->connected)
			continue;
		if (dib_mailbox_give_back(m, peer, true))
			return true;
		peer->connected = false;
	}
	return false;
}

int dib_mailbox_close(struct dib_mailbox *m)
{
	bool open;
	int rc;

	rc = dib_handle_check_close(m, DIB_KIND_MAILBOX, &open);
	if (!open)
		return rc;
	wait_while(m, long_waits_there, LINGER_NS);
	wait_while(m, say_closed, SETTLE_NS);
	wait_while(m, commands_under_way, SETTLE_NS);
	m->endpoint->mailbox = NULL;
	dib_endpoint_update(m->endpoint);
	give_memory_back(m);
	dib_handle_end(m);
	return 0;
}
