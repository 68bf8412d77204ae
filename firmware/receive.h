/* The opcode RECEIVE. Its credit is counted in requests.h. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_RECEIVE_H
#define MCP_RECEIVE_H

#include "runtime.h"

bool receive_command(uint32_t tag, uint32_t first_word);
uint32_t receive_handler(void);			      /* request_turn_work */
void receive_answered(uint32_t tag, uint32_t length); /* the message has come */
void receive_probe(void);			      /* probe the nodes that owe a message */

/* End a RECEIVE that waits for its message; false when that must wait. */
bool receive_cancel(uint32_t tag, enum dibber_status status);

#endif
