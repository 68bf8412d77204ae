/* Scouts: headers outside all flows that find out which node is at the end of a route. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_SCOUT_H
#define MCP_SCOUT_H

#include "runtime.h"

void scout_boot(void);

/* SCOUT in slot `tag` of endpoint 0. With OK its completion comes later. One at a time. */
enum dibber_status scout_ask(uint32_t tag, bool solicit);

extern uint32_t scout_waiting; /* whether one is under way */
uint32_t scout_step(void);     /* end it when its time is over */
uint32_t scout_handler(void);  /* EVENTS.scout */

#endif
