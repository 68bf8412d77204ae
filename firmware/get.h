/* The opcode GET: asking another node, and answering one. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_GET_H
#define MCP_GET_H

#include "runtime.h"

bool get_command(uint32_t tag, uint32_t first_word);

/* GET_FAILED lies in a slot of the INBOX, for a GET or a RECEIVE. False: it fits no request. */
bool get_failed(uint32_t node, uint32_t inbox_tag, uint32_t word);

/* What both ends check of the walk that is written to. */
enum dibber_status get_check_target(uint32_t tag, uint32_t levels, uint32_t length);

void get_asked(uint32_t tag);  /* a node's request lies in a slot of the INBOX */
bool get_answer(uint32_t tag); /* queue the answer; false when it must wait */
void get_sent(uint32_t tag);   /* the answer has ended */

#endif
