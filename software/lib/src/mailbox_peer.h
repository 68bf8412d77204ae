/* What a mailbox and a peer exchange beside messages. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_MAILBOX_PEER_H
#define DIBBER_MAILBOX_PEER_H

#include "mailbox.h"

/* Take completions. A peer whose command failed gets its error. */
int dib_mailbox_progress(struct dib_mailbox *mailbox);
/* Drop the events: they have woken this thread, and say nothing else. */
int dib_mailbox_drop_events(struct dib_mailbox *mailbox);
/* Read how many messages a peer has taken, and whether it has closed. */
void dib_mailbox_look_at_words(struct dib_mailbox *mailbox, struct dib_peer *peer);
/* Tell a peer how many of its messages were received. With `closed`, also tell it that this mailbox
 * will neither receive nor send any more. */
int dib_mailbox_give_back(struct dib_mailbox *mailbox, struct dib_peer *peer, bool closed);
/* Ask each silent peer whether it is there, by reading its memory. The read fails when the peer's
 * process, mailbox or card is gone. `wait_ns`, unless NULL, is set to the time until the next peer
 * is due. */
int dib_mailbox_ask(struct dib_mailbox *mailbox, uint64_t *wait_ns);
/* Return the peer's error, and keep its reason. */
int dib_mailbox_error(const struct dib_mailbox *mailbox, const struct dib_peer *peer);
/* The delivery of a command to a peer. */
struct dib_delivery dib_mailbox_delivery(const struct dib_mailbox *mailbox,
					 const struct dib_peer *peer, unsigned int tag,
					 unsigned int flags);

#endif
