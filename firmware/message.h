/* Messages between control programs: requests, replies, probes, and what ends a request. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_MESSAGE_H
#define MCP_MESSAGE_H

#include "requests.h"

/* A bit for each slot of the INBOX whose request may go on. operations.c runs them. */
extern uint32_t message_work;

/* A free place for a request if its node may be asked for something now, else NULL. */
uint16_t *message_may_ask(uint32_t node);

/* Send a request from the slot of a transfer that was entered and has its context. The first form
 * counts it in the place that message_may_ask() gave. The second does not, for READYs. */
void message_ask(uint16_t *place, uint32_t tag, enum dibber_message type);
void message_request(uint32_t tag, enum dibber_message type);

/* A node has answered. Claim its flow, because the answer may be to a request of the fast path. */
void message_claim(uint32_t node);

/* Send a message that is no request, from the OUTBOX; false while it must wait. */
bool message_tell(uint32_t node, uint32_t word);

/* A request was acknowledged or given up; and so was a message from the OUTBOX or the INBOX. */
void message_acknowledged(uint32_t tag);
void message_sent(uint32_t tag);

/* The answer to a request has come: the request ends with this status. */
void message_answered(uint32_t tag, enum dibber_status status);

/* Turn the request at a slot of the INBOX into a reply GET_FAILED, and send it as soon as that
 * can be. The slot is free then. */
void message_failed(uint32_t tag, uint32_t length, enum dibber_status status);

/* Send the reply that an atomic of another node has left in a slot of the INBOX. */
void message_executed(uint32_t node, uint32_t slot, uint32_t word);

/* Send the reply that waits at a slot of the INBOX; false while it must wait. */
bool message_reply(uint32_t inbox_tag);

/*
 * A node began anew, so it will not answer the requests that it has acknowledged. The first
 * function marks them. The second ends at most `most` of them and returns how many.
 */
void message_lose(uint32_t node);
uint32_t message_restarted(uint32_t node, uint32_t most);

/* Put no bytes to a node where nothing is under way. If it has begun anew it says so. A probe
 * takes no room in the node's INBOX. */
void message_probe(uint32_t node);

/* Count a message that fits no request, and trace it. */
void message_stray(uint32_t arrival, uint32_t word);

/*
 * A get's answer may wait at its node behind jobs for other nodes. So the asker asks when the
 * answer is late. The node replies while its send engine works, and the get gets its full time
 * again. message_late() is the question's arrival at a slot of the INBOX; false: no node may ask
 * this. message_waits() is the reply's arrival. A reply that fits no get came behind the answer.
 */
bool message_late(uint32_t node, uint32_t inbox_tag, uint32_t word);
void message_waits(uint32_t node, uint32_t word);

/* End requests that were not answered in time. `works` is PEER_WORKS of this tick, `sends` says
 * that the send engine moved in it. */
uint32_t message_tick(const struct set *works, bool sends);

#endif
