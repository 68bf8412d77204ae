/* Lost packets: replay after a NAK, after a time without progress, or after the link was down. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_REPLAY_H
#define MCP_REPLAY_H

#include "runtime.h"

uint32_t replay_handler(void);	     /* EVENTS.nak, EVENTS.link, EVENTS.given; or EVENTS.replay */
uint32_t replay_timer_handler(void); /* EVENTS.timer */

#endif
