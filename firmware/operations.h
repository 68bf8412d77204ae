/* The table of operations: which function has which opcode, message, end and background work.
 * README.md, "How to add an opcode", names each place here.
 *
 * A function of an opcode gets the command's tag and its first word (opcode, flags, levels). It
 * returns true when the command was taken. With false the command stays in its slot, and the same
 * function is called again in a later turn.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_OPERATIONS_H
#define MCP_OPERATIONS_H

#include "barrier.h"
#include "message.h"
#include "requests.h"
#include "runtime.h"

/* Work of operations that has no EVENTS bit. main.c runs their handlers while it is not 0. */
static inline uint32_t operations_work(void)
{
	return message_work | request_turn_work | barrier_work;
}

uint32_t command_handler(void); /* EVENTS.command: the endpoints in turn */
uint32_t message_handler(void); /* message_work: requests in the INBOX that had to wait */

/* A message has come from the wire, or the last packet of an answer of `length` bytes. */
void operations_message(uint32_t arrival, uint32_t word);
void operations_answer(uint32_t arrival, uint32_t word, uint32_t length);

/* End something of an endpoint that is being closed. False: nothing could end now. */
bool operations_close_step(uint32_t endpoint);

#endif
