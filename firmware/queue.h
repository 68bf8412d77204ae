/* Completion and event queues in host memory: opening one, posting entries, waiting for room. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_QUEUE_H
#define MCP_QUEUE_H

#include "runtime.h"

/* Numbers of an endpoint's two queues. */
#define QUEUE_COMPLETIONS(endpoint) (endpoint)
#define QUEUE_EVENTS(endpoint)	    (DIBBER_ENDPOINTS + (endpoint))

void queue_boot(void);

/* Tell the gateware where a queue is. `entries` is a power of two. */
void queue_open(uint32_t queue, uint32_t base_low, uint32_t base_high, uint32_t entries,
		uint32_t vector);

/*
 * Queue an entry and, if `start` asks for it, its interrupt. `what` and `start` are values of the
 * registers POST_WHAT and POST_START.
 */
void queue_post(uint32_t cookie, uint32_t length, uint32_t what, uint32_t key, uint32_t start);

/* Number of posts that wait here because the gateware took no more. */
extern uint32_t queue_waiting;

/* Hand waiting posts to the gateware. False while there may be no room for MCP_POSTS more. */
bool queue_drain(void);

/* Number of posts that the gateware surely takes now; 0 if others wait. */
uint32_t queue_room(void);

/* Count posts that were made without queue_post(). */
void queue_used(uint32_t posts);

/* Whether a handler may start: all that it can post has room. */
static ALWAYS bool queue_flush(void)
{
	return !queue_waiting || queue_drain();
}

/* Whether all posts have left for host memory. */
bool queue_is_idle(void);

#endif
