/* Peers: the endpoints that a domain exchanges messages with, and their addresses.
 *
 * An address has 8 bytes: node (2 bytes), endpoint (1), a mark (1), key of its inbox (4), each
 * little-endian. It is all that a peer must know to send: the ring that a sender writes follows
 * from the sender's own node and endpoint.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_PEER_H
#define DFI_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/fabric.h>

#include "list.h"

struct domain;

#define ADDRESS_BYTES 8u
#define ADDRESS_MARK  0xd1u

struct peer {
	uint16_t node;
	uint8_t endpoint;
	bool known;	   /* its key is */
	bool self;	   /* this domain */
	bool greeted;	   /* it was told this domain's key */
	uint32_t key;	   /* of its inbox */
	fi_addr_t address; /* in the program's address vector, or FI_ADDR_UNSPEC */
	int error;	   /* positive FI_ number: it is lost */

	uint32_t sent, taken;	     /* messages to it, and how many of them it has taken */
	uint32_t received, returned; /* messages of it, and how many it was told of */
	struct list outgoing;	     /* struct outgoing: messages that wait for room */

	bool heard;	     /* since it was last asked whether it is there */
	bool asked;	     /* the question is under way */
	unsigned int unread; /* questions in a row whose word its host did not give */
	uint64_t silence_ns, limit_ns;
};

void dfi_address_pack(uint8_t bytes[ADDRESS_BYTES], unsigned int node, unsigned int endpoint,
		      uint32_t key);

/* Returns the peer that an address names, with its key entered, or NULL if the address makes no
 * sense or its place is another process's. */
struct peer *dfi_peer_of_address(struct domain *domain, const uint8_t bytes[ADDRESS_BYTES]);

/* The number of a peer in domain->peers, and as the peer counts for others. */
unsigned int dfi_peer_index(unsigned int node, unsigned int endpoint);

void dfi_peers_init(struct domain *domain);

/* Enter a key that the peer itself has sent. */
void dfi_peer_learn(struct peer *peer, uint32_t key);

/* A peer is lost: end all that waits for it with the positive FI_ number `error`. */
void dfi_peer_lost(struct domain *domain, struct peer *peer, int error);

/* Ask peers that have been silent for long whether they are there. `ns` has passed. */
void dfi_peers_silent(struct domain *domain, uint64_t ns);

#endif
