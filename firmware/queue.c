/* This file is part of Dibber. */
/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Completion and event queues in host memory. The gateware writes an entry and raises its
 * interrupt behind all data that it announces (POST_*). When its own queue is full, posts wait in
 * a ring here; the event loop starts no handler unless all that it may post fits, so that the
 * ring cannot overflow.
 */

#include "mcp.h"
#include "registers.h"

#define WAITING		32	/* posts that can wait, a power of two */

struct post {
	uint32_t address_low, address_high;
	uint32_t start;		/* value for POST_START */
	uint32_t words[DIBBER_QUEUE_ENTRY_BYTES / 4];
};

static struct post waiting[WAITING];
static uint32_t waiting_head, waiting_tail;
static uint32_t space;	/* posts that can be queued for certain; by now there may be more */

static bool has_space(void)
{
	if (!space)
		space = REG_READ(POST_SPACE);
	return space;
}

/* Written out, so that an entry that need not wait never sees memory. */
static inline void post_start(const struct post *post)
{
	REG_WRITE(POST_ADDRESS_LOW, post->address_low);
	REG_WRITE(POST_ADDRESS_HIGH, post->address_high);
	REG_WRITE_AT(POST_DATA, 0, post->words[0]);
	REG_WRITE_AT(POST_DATA, 1, post->words[1]);
	REG_WRITE_AT(POST_DATA, 2, post->words[2]);
	REG_WRITE_AT(POST_DATA, 3, post->words[3]);
	REG_WRITE_AT(POST_DATA, 4, post->words[4]);
	REG_WRITE_AT(POST_DATA, 5, post->words[5]);
	REG_WRITE_AT(POST_DATA, 6, post->words[6]);
	REG_WRITE_AT(POST_DATA, 7, post->words[7]);
	REG_WRITE(POST_START, post->start);
	space--;
}

static RARE bool flush(void)
{
	while (waiting_head != waiting_tail && has_space())
		post_start(&waiting[waiting_head++ % WAITING]);
	return waiting_tail - waiting_head <= WAITING - MCP_POSTS;
}

bool queue_flush(void)
{
	return waiting_head == waiting_tail || flush();
}

void queue_open(struct queue *queue, uint32_t base_low, uint32_t base_high, uint32_t entries,
		uint32_t vector, uint32_t consumer_register)
{
	/* The host's count need not be 0: what it holds now is where this queue's count starts. */
	uint32_t consumer = bus_read(consumer_register);

	queue->base_low = base_low;
	queue->base_high = base_high;
	queue->entries = entries;
	queue->index = 0;
	queue->produced = consumer;
	queue->consumer = consumer;
	queue->overruns = 0;
	queue->consumer_register = consumer_register;
	queue->phase = 1;
	queue->vector = vector;
}

bool queue_has_room(struct queue *queue, uint32_t count)
{
	if (queue->produced - queue->consumer + count <= queue->entries)
		return true;
	/* Full as far as was known: look again. A host that counts backwards has a full queue. */
	queue->consumer = bus_read(queue->consumer_register);
	return queue->produced - queue->consumer <= queue->entries &&
	       queue->produced - queue->consumer + count <= queue->entries;
}

void queue_write(struct queue *queue, const uint32_t words[4], bool interrupt)
{
	struct post post;
	uint32_t offset = queue->index * DIBBER_QUEUE_ENTRY_BYTES;

	if (!queue->entries || !queue_has_room(queue, 1)) {
		queue->overruns++;
		mcp_shared.overruns++;
		trace(TRACE_LOST, words[2], words[0]);
		return;
	}
	post.address_low = queue->base_low + offset;
	post.address_high = queue->base_high + (post.address_low < offset);
	post.words[0] = words[0];
	post.words[1] = words[1];
	post.words[2] = words[2];
	post.words[3] = words[3];
	post.words[4] = REG_READ(CYCLES_LOW);
	post.words[5] = REG_READ(CYCLES_HIGH);
	post.words[6] = queue->overruns;
	post.words[7] = queue->phase;
	post.start = FIELD_PUT(POST_START, VECTOR, queue->vector) |
		      FIELD_PUT(POST_START, INTERRUPT, interrupt);
	mcp_shared.interrupts += interrupt;

	queue->produced++;
	queue->index++;
	if (queue->index == queue->entries) {
		queue->index = 0;
		queue->phase ^= 1;
	}
	if (waiting_head == waiting_tail && has_space())
		post_start(&post);
	else
		waiting[waiting_tail++ % WAITING] = post;
}
