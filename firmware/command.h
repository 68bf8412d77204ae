/* Endpoints, and how a command of one is taken and completed. operations.c knows the opcodes. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_COMMAND_H
#define MCP_COMMAND_H

#include "queue.h"
#include "transfer.h"

enum endpoint_state {
	ENDPOINT_CLOSED, /* its commands are dropped */
	ENDPOINT_OPENED,
	ENDPOINT_CLOSING, /* takes no command; waits for its transfers */
	ENDPOINT_ADMIN,	  /* endpoint 0 with a completion queue: only administrator's commands */
};

struct endpoint {
	uint32_t outstanding; /* commands taken and not completed, without those of FAST_BUSY */
	uint8_t state;
	uint8_t close_left;	/* CLOSING: commands that still have to complete as FLUSHED */
	uint8_t close_tag;	/* CLOSING: tag of the ENDPOINT_CLOSE that waits */
	uint8_t close_solicit;	/* CLOSING: its flag SOLICIT */
	uint32_t close_cookie;	/* CLOSING: its cookie */
} __attribute__((aligned(16))); /* the address of an endpoint is a shift */

extern struct endpoint endpoints[DIBBER_ENDPOINTS];
extern uint32_t command_allowed; /* a bit for each endpoint that is open */
extern uint32_t command_closing; /* a bit for each endpoint that is being closed */
extern uint32_t command_node;	 /* this card's node number, as read at boot */

/* The endpoint whose turn was last, and its bit of COMMAND_PENDING; 0 when it is not open. */
extern uint32_t command_served, command_served_bit;

void command_boot(void);

/* Open an endpoint: its commands are taken, by the fast path first. Or stop taking any. */
void command_allow(uint32_t endpoint);
void command_stop(uint32_t endpoint);

/* Tag of an endpoint's next command. It is this program's if COMMAND_PENDING shows it. */
static inline uint32_t command_tag(uint32_t endpoint)
{
	return endpoint * DIBBER_SLOTS + REG_READ_AT(HEAD, endpoint) % DIBBER_SLOTS;
}

/* Take the endpoint's next command. It must complete once from now on. */
static inline void command_take(uint32_t endpoint)
{
	REG_WRITE(COMMAND_TAKE, endpoint);
	endpoints[endpoint].outstanding++;
}

/* Values of POST_WHAT and POST_START for a command's completion. */
static inline uint32_t command_what(uint32_t node, uint32_t status)
{
	return FIELD_PUT(POST_WHAT, NODE, node) | FIELD_PUT(POST_WHAT, STATUS, status) |
	       FIELD_PUT(POST_WHAT, KIND, DIBBER_ENTRY_COMPLETION);
}

static inline uint32_t command_post(uint32_t tag, bool solicit, bool free)
{
	return FIELD_PUT(POST_START, QUEUE, QUEUE_COMPLETIONS(tag / DIBBER_SLOTS)) |
	       FIELD_PUT(POST_START, SLOT, tag % DIBBER_SLOTS) |
	       FIELD_PUT(POST_START, INTERRUPT, solicit) | FIELD_PUT(POST_START, FREE, free);
}

/* Post the completion of a command that was taken. This frees its slot, unless the engine has a
 * job of it. */
void command_complete(uint32_t tag, uint32_t cookie, uint32_t length, uint32_t node,
		      uint32_t status, uint32_t key, bool solicit);

/* Take a command and complete it at once. */
void command_end(uint32_t tag, uint32_t first_word, uint32_t length, uint32_t node,
		 enum dibber_status status);

/* Complete the command of a transfer with the transfer's status, and free its entry. */
void command_end_transfer(uint32_t tag);

#endif
