/* The trace ring, and the register STATE, which tells the host what the program is doing. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_TRACE_H
#define MCP_TRACE_H

#include "runtime.h"

/* Add an entry with two arguments. It carries the clock and the current state. */
void trace(enum dibber_trace event, uint32_t argument0, uint32_t argument1);

/* Set the state that the host reads and that the following entries carry. */
void trace_state(enum dibber_mcp_state state);

#endif
