/* BARRIER, for the control program and for who submits it. Of struct dibber_command: `opcode`;
 * `flags`, SOLICIT and FENCE; `notice`, a bit for each other node that takes part; `length`, cycles
 * of the card's clock after which it ends with TIMEOUT, or 0 to wait as long as it takes; `cookie`.
 * One at a time on an endpoint.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef BARRIER_H
#define BARRIER_H

#include <stdbool.h>
#include <stdint.h>

#define BARRIER_OPCODE	0x40u	    /* 0x40 … 0x7f are nobody's: for operations of one's own */
#define BARRIER_MESSAGE 0x80u	    /* so are messages of 0x80 … 0xff */
#define BARRIER_LIMIT	0x7fffffffu /* 17 s */

extern uint32_t barrier_work; /* a bit for each endpoint that waits in one */

void barrier_boot(void);
bool barrier_command(uint32_t tag, uint32_t first_word);
uint32_t barrier_handler(void);
bool barrier_arrived(uint32_t node, uint32_t word);

/* The endpoint gets a new owner; and it is being closed: whether one was ended. */
void barrier_forget(uint32_t endpoint);
bool barrier_close_step(uint32_t endpoint);

#endif
