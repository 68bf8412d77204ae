/* Peers that began anew: what goes again, and what ends with PEER_RESTARTED. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_RESTART_H
#define MCP_RESTART_H

#include "runtime.h"

uint32_t restart_step(void); /* one flow of `flow_restart` */

#endif
