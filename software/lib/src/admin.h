/* Commands of the administrator. The caller of each function has locked the card, except where a
 * comment says otherwise. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_ADMIN_H
#define DIBBER_ADMIN_H

#include <stdbool.h>

#include "card.h"

/* Run an administrator command and wait for it as a participant of the clock. `what` names the
 * command in the reason. */
int dib_admin(struct dib_card *card, unsigned int participant, struct dibber_admin_command *command,
	      const char *what);
/* The same for something that belongs to one control program. `halts` is the card's count of halts
 * when that program ran. Returns DIB_ERR_HALTED when it is gone. */
int dib_admin_of(struct dib_card *card, unsigned int participant, uint32_t halts,
		 struct dibber_admin_command *command, const char *what);
/* As dib_admin(), for a command of any layout that has its cookie at the same place. `entry` is its
 * completion, whatever its status. */
int dib_admin_run(struct dib_card *card, unsigned int participant, void *command, const char *what,
		  struct dibber_queue_entry *entry);

/* A program has opened endpoint 0: share the queues with it. */
void dib_admin_share(struct dib_endpoint *endpoint);
/* Without the card's lock: take the turn of endpoint 0 for one command, and set its `producer`.
 * Returns whether a slot is free. dib_admin_end() must follow in both cases. */
bool dib_admin_begin(struct dib_endpoint *endpoint);
void dib_admin_end(struct dib_endpoint *endpoint, bool issued);
/* Without the card's lock: give the administrator and the program their completions. */
int dib_admin_sort(struct dib_card *card);

#endif
