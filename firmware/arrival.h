/* What the wire brought: notices, messages, and the ends of answers. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_ARRIVAL_H
#define MCP_ARRIVAL_H

#include "runtime.h"

uint32_t arrival_handler(void); /* EVENTS.arrival */

#endif
