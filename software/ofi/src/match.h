/* Matching of messages with receives.
 *
 * A receive takes the oldest message that it matches, a message the oldest receive. Messages that
 * meet no receive wait in the heap, with their bytes if they are short; long ones wait at the
 * sender, and an offer waits here.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_MATCH_H
#define DFI_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "endpoint.h"

/* A message of the program as it arrives. */
struct arrival {
	struct peer *peer;
	bool tagged, has_data;
	uint64_t tag, data;
	uint64_t length;
	const void *bytes;
	/* With an `id` the bytes wait at the sender, in the region `key` at `offset`; even a
	 * message without bytes is answered then. */
	uint64_t offset, id;
	uint32_t key;
	struct op *sender; /* of this process, if it waits for the match; else NULL */
};

/* Returns false if there is no memory to keep it. */
bool dfi_match_arrival(struct endpoint *ep, const struct arrival *arrival);

/* Post a receive. */
void dfi_match_receive(struct op *op);

/* The receives of fi_trecvmsg() and fi_recvmsg() that look at messages: FI_PEEK, FI_CLAIM and
 * FI_DISCARD. */
void dfi_match_look(struct op *op, bool tagged, uint64_t flags);

/* End the oldest receive with this context. */
void dfi_match_cancel(struct endpoint *ep, void *context);

/* A peer is lost: end receives that wait for it, and those that wait for any if no peer is left. */
void dfi_match_lost(struct endpoint *ep, struct peer *peer, int error, bool all);

/* Forget the messages that met no receive. */
void dfi_match_drop(struct endpoint *ep);

#endif
