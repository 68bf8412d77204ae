/* Waking sleepers on an endpoint's descriptor when no interrupt will come any more. The caller has
 * locked the card, except where a comment says otherwise. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_WATCH_H
#define DIBBER_WATCH_H

#include <dibber/dibber.h>

/* From now on the end of the card, or of the endpoint alone, makes the endpoint's descriptor
 * readable and keeps it readable. */
int dib_watch_add(struct dib_card *card, struct dib_endpoint *endpoint);
/* The endpoint gives its descriptor up. */
void dib_watch_remove(struct dib_card *card, struct dib_endpoint *endpoint);
/* End the thread. No endpoint is left. */
void dib_watch_stop(struct dib_card *card);
/* The endpoint has ended and the card has not. Without the card's lock. */
void dib_watch_ended(struct dib_endpoint *endpoint);

#endif
