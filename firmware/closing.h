/* Endpoints that are being closed. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_CLOSING_H
#define MCP_CLOSING_H

#include "runtime.h"

/* One step for each endpoint of `command_closing`. Returns how many were done. */
uint32_t closing_step(void);

#endif
