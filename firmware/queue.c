/* Entries for completion and event queues in host memory. The gateware knows where each queue
 * is and how full it is. It raises an entry's interrupt behind all data that the entry
 * announces. While the gateware takes no more, posts wait in a ring here. The event loop
 * starts a handler only when all that it may post has room, so the ring cannot overflow.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "queue.h"

#define WAITING 64 /* posts that can wait, a power of two */

struct post {
	uint32_t cookie, length, what, key, start;
};

uint32_t queue_waiting;

static struct post waiting[WAITING];
static uint32_t waiting_head;
static uint32_t space; /* posts that the gateware surely takes; by now it may take more */
static uint32_t depth; /* the same number when the gateware has none */

_Static_assert(2 * DIBBER_ENDPOINTS == DIBBER_QUEUES, "two queues an endpoint");

RARE void queue_boot(void)
{
	depth = REG_READ(POST_SPACE);
}

RARE bool queue_is_idle(void)
{
	return !queue_waiting && REG_READ(POST_SPACE) == depth;
}

void queue_open(uint32_t queue, uint32_t base_low, uint32_t base_high, uint32_t entries,
		uint32_t vector)
{
	REG_WRITE(QUEUE_BASE_LOW, base_low);
	REG_WRITE(QUEUE_BASE_HIGH, base_high);
	REG_WRITE(QUEUE_OPEN, FIELD_PUT(QUEUE_OPEN, QUEUE, queue) |
				      FIELD_PUT(QUEUE_OPEN, SIZE, lowest_bit(entries)) |
				      FIELD_PUT(QUEUE_OPEN, VECTOR, vector));
}

static inline bool has_space(void)
{
	if (!space)
		space = REG_READ(POST_SPACE);
	return space;
}

static inline void post(uint32_t cookie, uint32_t length, uint32_t what, uint32_t key,
			uint32_t start)
{
	REG_WRITE(POST_COOKIE, cookie);
	REG_WRITE(POST_LENGTH, length);
	REG_WRITE(POST_WHAT, what);
	REG_WRITE(POST_KEY, key);
	REG_WRITE(POST_START, start);
	space--;
}

RARE bool queue_drain(void)
{
	mcp_alive();
	while (queue_waiting && has_space()) {
		const struct post *next = &waiting[waiting_head++ % WAITING];

		queue_waiting--;
		post(next->cookie, next->length, next->what, next->key, next->start);
	}
	return queue_waiting <= WAITING - MCP_POSTS;
}

/* Keep a post here, because others wait or the gateware has no space. */
static RARE void hold(uint32_t cookie, uint32_t length, uint32_t what, uint32_t key, uint32_t start)
{
	waiting[(waiting_head + queue_waiting++) % WAITING] =
		(struct post){ cookie, length, what, key, start };
}

inline uint32_t queue_room(void)
{
	return !queue_waiting && has_space() ? space : 0;
}

inline void queue_used(uint32_t posts)
{
	space -= posts;
}

inline void queue_post(uint32_t cookie, uint32_t length, uint32_t what, uint32_t key,
		       uint32_t start)
{
	if (queue_waiting || !has_space())
		hold(cookie, length, what, key, start);
	else
		post(cookie, length, what, key, start);
}
