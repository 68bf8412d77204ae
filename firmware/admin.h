/* The administrator's commands: endpoints opened and closed, regions entered and removed. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_ADMIN_H
#define MCP_ADMIN_H

#include "runtime.h"

void admin_boot(void);

/*
 * Give endpoint 0 the completion queue that the host's registers name. Returns whether there is
 * one. Without it the administrator's commands are dropped as those of a closed endpoint, because
 * another process than the queue's owner may have started this program.
 */
bool admin_attach(void);

/*
 * Whether the command in slot `tag` of endpoint 0 must wait before it is taken. A region's removal
 * waits until no engine uses the region any more; a scout waits for the one before it.
 */
bool admin_must_wait(uint32_t tag, uint32_t first_word);

/*
 * Execute the command in slot `tag` of endpoint 0. Returns false when its completion comes later;
 * its status is OK so far.
 */
bool admin_command(uint32_t tag, uint32_t first_word, enum dibber_status *status);

#endif
