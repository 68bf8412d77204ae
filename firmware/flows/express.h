/* The EXPRESS lane: packets that are made from a slot alone, inline puts and messages. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_EXPRESS_H
#define MCP_EXPRESS_H

#include "flows/flow.h"
#include "transfer.h"

/* Whether a packet can be queued to a node now. */
bool express_accepts(uint32_t node);

/* Queue the message of a transfer that was entered, with its `word`. */
void express_message(uint32_t tag);

/* Queue the put of a probe that was entered. */
void express_probe(uint32_t tag);

/* The opcode PUT_INLINE: as the functions in operations.h. */
bool express_command(uint32_t tag, uint32_t first_word);

/* Whether EVENTS shows a valid inline put: the register's highest bit. */
static inline bool express_is_put(uint32_t events)
{
	return (int32_t)events < 0;
}

/* Send the inline put that `events` shows, and those that EVENTS shows after it. Returns how
 * many. */
uint32_t express_puts(uint32_t events);

/* Take over a put of the fast path, as bulk_adopt(); and after the last one, the flow. */
void express_adopt(uint32_t tag, uint32_t end);
void express_claim(uint32_t node);

/* A request to a node has ended: arm its flow if nothing else is under way there. */
void express_rest(uint32_t node);

/* Tag of the item that has the extended PSN, or MCP_NO_TAG; and the address of its status. */
uint32_t express_find(uint32_t number, uint32_t psn);
uint8_t *express_status(uint32_t number, uint32_t psn);

uint32_t express_step(uint32_t number); /* as bulk_step() */
void express_rewind(uint32_t number);
void express_expire(uint32_t number);
void express_restart(uint32_t number, uint32_t end); /* as bulk_restart() */

#endif
