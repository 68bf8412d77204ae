/* BARRIER: its opcode, its message and its slot, for the control program and for programs that
 * submit it. Members of struct dibber_command: `opcode`; `flags`: SOLICIT and FENCE; `notice`:
 * a bit for each other node that takes part, `reserved1` for nodes from 32 on; `length`: cycles of
 * the card's clock after which it ends with TIMEOUT, or 0 for no limit; `cookie`. An endpoint has
 * one at a time.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef BARRIER_H
#define BARRIER_H

#include <stdbool.h>
#include <stdint.h>

#define BARRIER_OPCODE	0x40u	    /* 0x40 … 0x7f are free for added operations */
#define BARRIER_MESSAGE 0x80u	    /* and so are messages 0x80 … 0xff */
#define BARRIER_LIMIT	0x7fffffffu /* cycles: 17 s */

extern uint32_t barrier_work; /* a bit for each endpoint with a barrier */

void barrier_boot(void);
bool barrier_command(uint32_t tag, uint32_t first_word);
uint32_t barrier_handler(void);
bool barrier_arrived(uint32_t node, uint32_t word);

/* Forget what came for the endpoint, because it has a new owner. And, while it is being
 * closed: end its barrier, and return whether there was one. */
void barrier_forget(uint32_t endpoint);
bool barrier_close_step(uint32_t endpoint);

#endif
