/* The atomic opcodes. The target's gateware executes them. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_ATOMIC_H
#define MCP_ATOMIC_H

#include "runtime.h"

bool atomic_command(uint32_t tag, uint32_t first_word);

/* ATOMIC_REPLY lies in a slot of the INBOX. False: it fits no request. */
bool atomic_replied(uint32_t node, uint32_t inbox_tag, uint32_t word);

/* EVENTS.atomic: an atomic of another node was executed, and hardware has not replied. */
uint32_t atomic_handler(void);

#endif
