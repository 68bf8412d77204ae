/* The administrator's completion queue. The caller has locked the card. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_ADMIN_QUEUE_H
#define DIBBER_ADMIN_QUEUE_H

#include "card.h"

/* How often a wait asks whether the control program runs at all. */
#define DIB_ADMIN_LOOK_NS 1000000u

/* Clear the administrator's queue and tell the card where it is. Called before the control program
 * runs. */
int dib_admin_open(struct dib_card *card);
void dib_admin_close(struct dib_card *card);
/* Wait for an entry of the queue, up to DIB_ADMIN_LOOK_NS. Returns 0 when that time has passed. */
int dib_admin_wait(struct dib_card *card, unsigned int participant);
/* Look for a halt. Give the queue to a control program that was loaded beside this handle.
 * Afterwards the card's `halts` and `firmware` are true. */
int dib_admin_follow(struct dib_card *card, unsigned int participant);

#endif
