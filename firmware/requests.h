/* Requests of this card that wait for answers: contexts, credit, and what the gateware lets in. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_REQUESTS_H
#define MCP_REQUESTS_H

#include "sets.h"
#include "transfer.h"

/* Requests under way to a node. 16 nodes cannot fill an inbox of 32. From 17 nodes on the gateware
 * drops what finds no room, and its flow sends it again. */
#define REQUEST_ASKS 2

/* The upper half of a message word is its context: the command's tag, above it a generation. */
#define REQUEST_TAG(word) ((word) >> 16 & 0x3ff)

/* GET and ATOMIC: tags of requests that wait for their answers, or MCP_NO_TAG. */
extern uint16_t request_asks[DIBBER_NODES][REQUEST_ASKS];
extern struct set request_nodes; /* nodes with such a request; cleared by the tick */

/* RECEIVE: credit for READYs is counted apart, because a READY may wait for ever. */
extern uint8_t request_readies[DIBBER_NODES]; /* READYs that lie at a node */
extern struct line request_turn;	      /* RECEIVEs that wait for credit */
extern uint32_t request_turn_work;	      /* whether one of these may go on */
extern uint32_t request_receives;	      /* RECEIVEs that have not ended */

/*
 * Of requests that are made now. It changes when a request is given up whose answer may still
 * come, so that this answer fits no request. The gateware counts it, because answers to requests
 * of the last program must not reach this one.
 */
extern uint8_t request_generation;
void request_next_generation(void);

void request_boot(void);

/* The place of `tag` among the node's requests, NULL if it has none. MCP_NO_TAG: a free place. */
uint16_t *request_find(uint32_t node, uint32_t tag);

/* Whether a node has been asked for something that it has not answered. */
bool request_is_open(uint32_t node);

/* Count a request whose message was queued. `place` is a free place. */
void request_enter(uint16_t *place, uint32_t tag);

/* Set a transfer's message word to its context. Its type comes into the lowest byte later. */
void request_context(uint32_t tag);

/* Count a request that the fast path made, of a transfer that was entered. */
void request_adopt(uint32_t tag, uint32_t generation);

/* Let the answer to a request in, which has its context; and no longer. */
void request_expect(uint32_t tag, uint32_t key);
void request_forget(uint32_t tag);

/* A RECEIVE has ended: its credit is free. */
void request_ready_ended(uint32_t tag);

/* Tag of the request that a node may answer by this message word, or MCP_NO_TAG. */
uint32_t request_answered_by(uint32_t node, uint32_t word, enum dibber_message type,
			     enum transfer_kind kind);

#endif
