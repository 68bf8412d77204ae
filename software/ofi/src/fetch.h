/* Bytes of matched messages on their way into the receiver's memory. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_FETCH_H
#define DFI_FETCH_H

#include "endpoint.h"
#include "match.h"

/* The bytes are here: copy them, and end the receive. */
void dfi_fetch_bytes(struct op *op, const struct arrival *arrival);

/* The bytes are at the sender: get them, tell the sender, and end the receive. */
void dfi_fetch_offer(struct op *op, const struct arrival *arrival);

/* Tell a sender that its message was fetched, or what failed. */
void dfi_fetch_answer(struct endpoint *ep, struct peer *peer, uint64_t id, int error);

/* Multi-receives: whether a message of this length is the last one for the buffer; and a receive of
 * its own for that message, or NULL without memory. A buffer that is full leaves the list. */
bool dfi_fetch_fills(const struct op *whole, uint64_t length);
struct op *dfi_fetch_part(struct op *whole, uint64_t length);

/* End a posted receive that got no message. */
void dfi_fetch_end_posted(struct op *op, int error);

#endif
