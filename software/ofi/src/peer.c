/* Peers: the endpoints that a domain exchanges messages with, and their addresses. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <string.h>

#include "command.h"
#include "domain.h"
#include "endpoint.h"
#include "errors.h"
#include "match.h"
#include "progress.h"
#include "ring.h"

#define ASK_FIRST_NS 1000000u /* silence until a peer is asked whether it is there */
#define UNREAD	     3u	      /* questions in a row that the peer's card could not answer */
#define ASK_LAST_NS  8000000u /* that time doubles with each answer, up to this value */

void dfi_address_pack(uint8_t bytes[ADDRESS_BYTES], unsigned int node, unsigned int endpoint,
		      uint32_t key)
{
	bytes[0] = (uint8_t)node;
	bytes[1] = (uint8_t)(node >> 8);
	bytes[2] = (uint8_t)endpoint;
	bytes[3] = ADDRESS_MARK;
	for (int i = 0; i < 4; i++)
		bytes[4 + i] = (uint8_t)(key >> 8 * i);
}

unsigned int dfi_peer_index(unsigned int node, unsigned int endpoint)
{
	return node * DIBBER_ENDPOINTS + endpoint;
}

void dfi_peer_learn(struct peer *peer, uint32_t key)
{
	peer->known = true;
	peer->key = key;
	peer->heard = true;
}

struct peer *dfi_peer_of_address(struct domain *domain, const uint8_t bytes[ADDRESS_BYTES])
{
	unsigned int node = bytes[0] | (unsigned int)bytes[1] << 8, endpoint = bytes[2];
	struct peer *peer;
	uint32_t key = 0;

	for (int i = 0; i < 4; i++)
		key |= (uint32_t)bytes[4 + i] << 8 * i;
	if (bytes[3] != ADDRESS_MARK || node >= DIBBER_NODES || endpoint >= DIBBER_ENDPOINTS ||
	    !key)
		return NULL;
	peer = &domain->peers[dfi_peer_index(node, endpoint)];
	if (peer->known && peer->key != key)
		return NULL;
	/* A card has no path to its own memory, so another endpoint of it cannot be reached. */
	if (node == domain->card.node && !peer->self)
		return NULL;
	dfi_peer_learn(peer, key);
	return peer;
}

void dfi_peers_init(struct domain *domain)
{
	for (unsigned int i = 0; i < PEERS; i++) {
		struct peer *peer = &domain->peers[i];

		*peer = (struct peer){
			.node = (uint16_t)(i / DIBBER_ENDPOINTS),
			.endpoint = (uint8_t)(i % DIBBER_ENDPOINTS),
			.address = FI_ADDR_NOTAVAIL,
			.limit_ns = ASK_FIRST_NS,
		};
		list_init(&peer->outgoing);
		peer->self = peer->node == domain->card.node && peer->endpoint == domain->number;
		if (peer->self)
			dfi_peer_learn(peer, dib_key(domain->inbox_region));
	}
}

/* Loss ----------------------------------------------------------------------------------------- */

static bool all_are_lost(const struct domain *domain)
{
	bool any = false;

	for (unsigned int i = 0; i < PEERS; i++) {
		const struct peer *peer = &domain->peers[i];

		if (!peer->known || peer->self)
			continue;
		any = true;
		if (!peer->error)
			return false;
	}
	return any;
}

void dfi_peer_lost(struct domain *domain, struct peer *peer, int error)
{
	if (peer->error)
		return;
	peer->error = error;
	FI_INFO(&dfi_provider, FI_LOG_EP_DATA, "node %u endpoint %u is lost: %s\n", peer->node,
		peer->endpoint, fi_strerror(error));
	dfi_progress_alert(domain);
	dfi_ring_drop(domain, peer);
	if (!domain->ep)
		return;
	/* The list changes while operations end. */
	for (struct list *item = domain->ep->answered_later.next;
	     item != &domain->ep->answered_later;) {
		struct op *op = member_of(item, struct op, place);

		item = item->next;
		if (op->peer != peer)
			continue;
		dfi_op_end(op, 0, error);
		item = domain->ep->answered_later.next;
	}
	dfi_match_lost(domain->ep, peer, error, all_are_lost(domain));
}

/* Silence -------------------------------------------------------------------------------------- */

static void answered(struct domain *domain, struct command *command, int status)
{
	int error = status < 0 ? -status : dfi_status_error((unsigned int)status);

	command->peer->asked = false;
	if (error)
		FI_INFO(&dfi_provider, FI_LOG_EP_DATA,
			"the question to node %u endpoint %u ended with status %d\n",
			command->peer->node, command->peer->endpoint, status);
	/* Its card is there, but could not read the host's memory. Under a flood of short puts this
	 * happens to a host that is well. */
	command->peer->unread =
		status == DIBBER_STATUS_REMOTE_READ_ERROR ? command->peer->unread + 1 : 0;
	if (command->peer->unread && command->peer->unread < UNREAD)
		return;
	/* Its inbox is gone, so its process has ended. */
	if (error == FI_ENOKEY || error == FI_EIO)
		error = FI_ECONNRESET;
	if (error)
		dfi_peer_lost(domain, command->peer, error);
}

static void ask(struct domain *domain, struct peer *peer)
{
	struct command *command = dfi_command_new(COMMAND_GET, peer, answered, NULL);

	/* Without memory the peer is asked next time. */
	if (!command)
		return;
	command->length = 8;
	command->local_key = dib_key(domain->staging_region);
	command->local_offset =
		(uint64_t)BUFFERS * BUFFER_BYTES + 8u * (uint64_t)(peer - domain->peers);
	command->remote_key = peer->key;
	command->remote_offset = dfi_ring_credit(dfi_peer_index(domain->card.node, domain->number));
	peer->asked = true;
	dfi_command_issue(domain, command);
}

void dfi_peers_silent(struct domain *domain, uint64_t ns)
{
	domain->quiet_ns += ns;
	if (domain->quiet_ns < ASK_FIRST_NS)
		return;
	for (unsigned int i = 0; i < PEERS; i++) {
		struct peer *peer = &domain->peers[i];

		if (!peer->known || peer->self || peer->error || peer->asked)
			continue;
		peer->silence_ns += domain->quiet_ns;
		if (peer->heard) {
			peer->heard = false;
			peer->silence_ns = 0;
			peer->limit_ns = ASK_FIRST_NS;
		} else if (peer->silence_ns >= peer->limit_ns) {
			peer->silence_ns = 0;
			if (peer->limit_ns < ASK_LAST_NS)
				peer->limit_ns *= 2;
			ask(domain, peer);
		}
	}
	domain->quiet_ns = 0;
}
