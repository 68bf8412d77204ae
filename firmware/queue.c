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

#define WAITING		64	/* posts that can wait, a power of two */

struct post {
	uint32_t address_low, address_high;
	uint32_t start;		/* value for POST_START */
	uint32_t words[DIBBER_QUEUE_ENTRY_BYTES / 4];
};

uint32_t queue_waiting;

static struct post waiting[WAITING];
static uint32_t waiting_head;
static uint32_t space;	/* posts that can be queued for certain; by now there may be more */

static inline bool has_space(void)
{
	if (!space)
		space = REG_READ(POST_SPACE);
	return space;
}

RARE bool queue_drain(void)
{
	while (queue_waiting && has_space()) {
		const struct post *post = &waiting[waiting_head++ % WAITING];

		queue_waiting--;
		REG_WRITE(POST_ADDRESS_LOW, post->address_low);
		REG_WRITE(POST_ADDRESS_HIGH, post->address_high);
		for (uint32_t i = 0; i < DIBBER_QUEUE_ENTRY_BYTES / 4; i++)
			REG_WRITE_AT(POST_DATA, i, post->words[i]);
		REG_WRITE(POST_START, post->start);
		space--;
	}
	return queue_waiting <= WAITING - MCP_POSTS;
}

void queue_open(struct queue *queue, uint32_t base_low, uint32_t base_high, uint32_t entries,
		uint32_t vector, uint32_t consumer_register)
{
	queue->next_low = base_low;
	queue->next_high = base_high;
	queue->left = entries;
	queue->phase = 1;
	queue->overruns = 0;
	queue->vector = FIELD_PUT(POST_START, VECTOR, vector);
	queue->base_low = base_low;
	queue->base_high = base_high;
	queue->entries = entries;
	queue->consumer_register = consumer_register;
	/* The host's count need not be 0: what it holds now is where this queue's count starts. */
	queue->promised = bus_read(consumer_register);
	queue->limit = queue->promised + entries;
}

RARE bool queue_look(struct queue *queue)
{
	uint32_t consumer = bus_read(queue->consumer_register);

	/* A host that counts backwards, or ahead of what there is, has a full queue. */
	if (queue->promised - consumer <= queue->entries)
		queue->limit = consumer + queue->entries;
	return queue->promised != queue->limit;
}

/* The next entry's place. */
static inline void advance(struct queue *queue)
{
	/* Entries do not cross a carry of the address: both are aligned. */
	queue->next_low += DIBBER_QUEUE_ENTRY_BYTES;
	queue->next_high += !queue->next_low;
	if (!--queue->left) {
		queue->left = queue->entries;
		queue->next_low = queue->base_low;
		queue->next_high = queue->base_high;
		queue->phase ^= 1;
	}
}

/* Behind others that wait, or without space in the gateware. */
static RARE void hold(struct queue *queue, uint32_t cookie, uint32_t length, uint32_t what,
		      uint32_t key, uint32_t post_start)
{
	struct post *post = &waiting[(waiting_head + queue_waiting++) % WAITING];

	post->address_low = queue->next_low;
	post->address_high = queue->next_high;
	post->start = post_start;
	post->words[0] = cookie;
	post->words[1] = length;
	post->words[2] = what;
	post->words[3] = key;
	post->words[4] = REG_READ(CYCLES_LOW);
	post->words[5] = REG_READ(CYCLES_HIGH);
	post->words[6] = queue->overruns;
	post->words[7] = queue->phase;
	advance(queue);
}

/* Written out, so that an entry that need not wait never sees memory. */
inline void queue_write(struct queue *queue, uint32_t cookie, uint32_t length, uint32_t what,
			uint32_t key, bool interrupt)
{
	uint32_t post_start = queue->vector;

	if (interrupt) {
		post_start |= FIELD_PUT(POST_START, INTERRUPT, 1);
		mcp_shared.interrupts++;
	}
	if (queue_waiting || !has_space()) {
		hold(queue, cookie, length, what, key, post_start);
		return;
	}
	REG_WRITE(POST_ADDRESS_LOW, queue->next_low);
	REG_WRITE(POST_ADDRESS_HIGH, queue->next_high);
	REG_WRITE_AT(POST_DATA, 0, cookie);
	REG_WRITE_AT(POST_DATA, 1, length);
	REG_WRITE_AT(POST_DATA, 2, what);
	REG_WRITE_AT(POST_DATA, 3, key);
	REG_WRITE_AT(POST_DATA, 4, REG_READ(CYCLES_LOW));
	REG_WRITE_AT(POST_DATA, 5, REG_READ(CYCLES_HIGH));
	REG_WRITE_AT(POST_DATA, 6, queue->overruns);
	REG_WRITE_AT(POST_DATA, 7, queue->phase);
	REG_WRITE(POST_START, post_start);
	space--;
	advance(queue);
}

void queue_event(struct queue *queue, uint32_t value, uint32_t length, uint32_t what,
		 uint32_t key, bool interrupt)
{
	if (!queue->entries || !queue_has_room(queue)) {
		queue->overruns++;
		mcp_shared.overruns++;
		trace(TRACE_LOST, what, value);
		return;
	}
	queue->promised++;
	queue_write(queue, value, length, what, key, interrupt);
}
