/* The opcode SEND, and READYs: the RECEIVEs of other nodes. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_SEND_H
#define MCP_SEND_H

#include "runtime.h"

extern uint32_t send_waiting; /* SENDs and READYs that have met none of the other kind */

void send_boot(void);
bool send_command(uint32_t tag, uint32_t first_word);
void send_ready(uint32_t tag); /* a RECEIVE of another node lies in a slot of the INBOX */
bool send_unready(uint32_t node, uint32_t word); /* that node has cancelled it */
bool send_start(uint32_t ready_tag);		 /* queue the SEND that it met; false: wait */
void send_ended(uint32_t tag);			 /* its job and all acknowledgements */

/* End what waits for a node of `flow_lost`, at most MCP_BATCH commands. Returns how many. */
uint32_t send_lose_step(void);

/* End one SEND or RECEIVE of an endpoint that is being closed. False: none could end now. */
bool send_close_step(uint32_t endpoint);

void send_tick(bool link);

#endif
