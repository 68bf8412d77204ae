/* Taking completions and events from an endpoint's queues, and waiting for them. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <time.h>

#include "card.h"
#include "clock.h"
#include "endpoint.h"
#include "error.h"
#include "halt.h"
#include "memory.h"
#include "poll.h"
#include "queue.h"
#include "region.h"
#include "transport.h"

#define STEP_PS                                                                                    \
	1000000000u /* simulated time of a wait until the library asks whether the control program \
		       runs */
#define SPIN_NS                                                                                  \
	20000u /* a wait polls for this time without sleeping: most transfers of a real card end \
		  sooner */

/* Called before an entry is taken. If the card reaches memory by message, an entry in shared memory
 * may be seen before the data that was sent ahead of it. Receive these messages first. */
static int settle(struct dib_endpoint *endpoint)
{
	struct dib_card *card = endpoint->card;

	return card->by_message ? card->transport->ops->serve(card->transport, 0) : 0;
}

/* Let time go on. The control program is not asked whether it runs. */
static int let_time_go_on(struct dib_endpoint *endpoint, enum dibber_call call, uint32_t count)
{
	struct dib_card *card = endpoint->card;
	int rc;

	if (!card->fixed.simulated_clock)
		return card->transport->ops->serve(card->transport, 0);
	rc = dib_charge(endpoint, call, count);
	return rc ? rc : dib_clock_catch_up(endpoint);
}

/* Whether `count` empty polls, or an interrupt, are a reason to ask for a halt. */
static inline bool is_alarmed(struct dib_endpoint *endpoint, uint32_t count)
{
	return dib_loses_patience(endpoint, count) ||
	       (__builtin_expect(endpoint->edges >= 0, 0) && dib_was_woken(endpoint));
}

int dib_found_nothing(struct dib_endpoint *endpoint, enum dibber_call call, uint32_t count)
{
	if (is_alarmed(endpoint, count))
		return dib_lose_patience(endpoint); /* this takes time, too */
	return let_time_go_on(endpoint, call, count);
}

#define HALTED 1 /* not an error: something may be left to be polled */

/* Not inline, unlike the checks, because an empty poll does little else. */
static __attribute__((cold, noinline)) int poll_halted(struct dib_endpoint *endpoint,
						       struct dib_completion *entries, int max)
{
	return dib_has_completion(endpoint) ? dib_take_completions(endpoint, entries, max)
					    : dib_halted(endpoint);
}

static __attribute__((cold, noinline)) int poll_alarmed(struct dib_endpoint *endpoint,
							struct dib_completion *entries, int max)
{
	int rc = dib_lose_patience(endpoint);

	return !rc && endpoint->halted ? poll_halted(endpoint, entries, max) : rc;
}

static __attribute__((cold, noinline)) int poll_refused(const struct dib_endpoint *endpoint)
{
	int rc = dib_endpoint_refuse(endpoint, "completions and events");

	return rc == DIB_ERR_HALTED ? HALTED : rc;
}

static inline __attribute__((always_inline)) int check_poll(const struct dib_endpoint *endpoint,
							    const void *entries, int max)
{
	if (!endpoint || !endpoint->ready)
		return poll_refused(endpoint);
	if (!entries)
		return dib_fail(DIB_ERR_ARGUMENT, "no place for the entries given");
	if (max < 1)
		return dib_fail(DIB_ERR_ARGUMENT, "room for %d entries: at least one is needed",
				max);
	return 0;
}

/* Tell the card how far a queue was read, each time that half of it was read. */
static int tell_consumer(struct dib_endpoint *endpoint, struct dib_queue *queue, uint32_t offset)
{
	if (!queue->iova || queue->taken - queue->told < (queue->count + 1) / 2)
		return 0;
	queue->told = queue->taken;
	return dib_write_register(endpoint->card, dib_doorbell(endpoint->number, offset),
				  queue->taken);
}

/* The card has one status for a target of a get or receive with wrong rights or a wrong owner. For
 * its source it has two statuses. The library makes two of the target's as well; the owner is
 * checked first. */
static __attribute__((cold, noinline)) uint8_t refused_target(const struct dib_endpoint *endpoint,
							      uint32_t slot)
{
	uint8_t opcode = endpoint->opcode[slot];
	bool local = opcode == DIBBER_OPCODE_GET || opcode == DIBBER_OPCODE_RECEIVE;

	return local && dib_is_foreign(endpoint, endpoint->target[slot])
		       ? DIBBER_STATUS_NOT_OWNER
		       : DIBBER_STATUS_NOT_PERMITTED;
}

/* Whether the completion of such a command carries a value in place of a length. */
static inline bool is_atomic(uint8_t opcode)
{
	return opcode >= DIBBER_OPCODE_FETCH_ADD && opcode <= DIBBER_OPCODE_MASKED_SWAP;
}

/* Give back the slot of a completed command. */
static int retire(struct dib_endpoint *endpoint, const struct dibber_queue_entry *entry,
		  struct dib_completion *completion)
{
	uint32_t slot = entry->cookie & (endpoint->card->fixed.slots - 1);

	if (entry->kind != DIBBER_ENTRY_COMPLETION || !(endpoint->busy & 1u << slot) ||
	    endpoint->cookie[slot] != entry->cookie)
		return dib_fail(
			DIB_ERR_PROTOCOL,
			"the control program completed a command that is not under way (cookie 0x%x)",
			entry->cookie);
	endpoint->busy &= ~(1u << slot);
	*completion = (struct dib_completion){
		.tag = endpoint->tag[slot],
		.cycles = entry->cycles,
		.value = entry->key,
		.length = entry->length,
		.node = entry->node,
		.status = entry->status,
	};
	if (__builtin_expect(entry->status == DIBBER_STATUS_NOT_PERMITTED, 0))
		completion->status = refused_target(endpoint, slot);
	if (is_atomic(endpoint->opcode[slot])) {
		completion->value = (uint64_t)entry->key << 32 | entry->length;
		completion->length = 0;
	}
	return 0;
}

int dib_take_completions(struct dib_endpoint *endpoint, struct dib_completion *entries, int max)
{
	const struct dibber_queue_entry *entry;
	int count = 0, rc;

	while (count < max && (entry = dib_peek_completion(endpoint)) != NULL) {
		if (count == 0 && (rc = settle(endpoint)) != 0)
			return rc;
		endpoint->completions.taken++;
		rc = retire(endpoint, entry, &entries[count]);
		if (rc)
			return rc;
		count++;
	}
	if (endpoint->halted)
		count += dib_give_up(endpoint, entries + count, max - count);
	if (count == 0)
		return 0;
	endpoint->patience = endpoint->halted ? 0 : DIB_PATIENCE;
	rc = tell_consumer(endpoint, &endpoint->completions, DIBBER_DOORBELL_CQ_CONSUMER);
	if (!rc)
		rc = dib_charge(endpoint, DIBBER_CALL_POLL_ENTRY, (uint32_t)count);
	return rc ? rc : count;
}

int dib_take_events(struct dib_endpoint *endpoint, struct dib_event *entries, int max)
{
	const struct dibber_queue_entry *entry;
	int count = 0, rc;

	while (count < max && (entry = dib_queue_peek(&endpoint->events)) != NULL) {
		if (count == 0 && (rc = settle(endpoint)) != 0)
			return rc;
		endpoint->events.taken++;
		entries[count++] = (struct dib_event){
			.cycles = entry->cycles,
			.notice = entry->cookie,
			.length = entry->length,
			.key = entry->key,
			.overruns = entry->overruns,
			.node = entry->node,
		};
	}
	if (count == 0)
		return 0;
	endpoint->patience = endpoint->halted ? 0 : DIB_PATIENCE;
	rc = tell_consumer(endpoint, &endpoint->events, DIBBER_DOORBELL_EQ_CONSUMER);
	if (!rc)
		rc = dib_charge(endpoint, DIBBER_CALL_POLL_ENTRY, (uint32_t)count);
	return rc ? rc : count;
}

int dib_poll(struct dib_endpoint *endpoint, struct dib_completion *entries, int max)
{
	int rc = check_poll(endpoint, entries, max);

	if (rc)
		return rc == HALTED ? poll_halted(endpoint, entries, max) : rc;
	if (!dib_peek_completion(endpoint))
		return is_alarmed(endpoint, 1)
			       ? poll_alarmed(endpoint, entries, max)
			       : let_time_go_on(endpoint, DIBBER_CALL_POLL_EMPTY, 1);
	return dib_take_completions(endpoint, entries, max);
}

int dib_poll_events(struct dib_endpoint *endpoint, struct dib_event *entries, int max)
{
	int rc = check_poll(endpoint, entries, max);

	if (rc < 0)
		return rc;
	while (!dib_queue_peek(&endpoint->events)) {
		rc = dib_found_nothing(endpoint, DIBBER_CALL_POLL_EMPTY, 1);
		if (rc || !endpoint->halted)
			return rc;
	}
	return dib_take_events(endpoint, entries, max);
}

/* Waiting -------------------------------------------------------------------------------------- */

static bool something_there(struct dib_endpoint *endpoint)
{
	return dib_has_completion(endpoint) || dib_queue_peek(&endpoint->events);
}

static uint64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The card writes only queue entries there, so a write means that there is an entry. At endpoint 0
 * it may be the administrator's. */
static int wait_by_clock(struct dib_endpoint *endpoint, uint64_t picoseconds)
{
	struct dib_clock begin, now;
	uint64_t left = picoseconds;
	int rc;

	if (something_there(endpoint))
		return 1;
	if (endpoint->number == 0 && (rc = dib_clock_now(endpoint, &begin)) < 0)
		return rc;
	for (;;) {
		uint64_t step = left < STEP_PS ? left : STEP_PS;

		if (endpoint->halted)
			return dib_halted(endpoint);
		rc = dib_clock_watch(endpoint->card, endpoint->participant,
				     endpoint->map->mapping.iova, endpoint->memory_length, step);
		if (rc < 0)
			return rc;
		if (something_there(endpoint))
			return 1;
		if (rc && endpoint->number)
			return 0;
		if (rc) {
			rc = dib_clock_now(endpoint, &now);
			if (rc < 0)
				return rc;
			if (now.now_ps - begin.now_ps >= picoseconds)
				return 0;
			if (picoseconds != UINT64_MAX)
				left = picoseconds - (now.now_ps - begin.now_ps);
			continue;
		}
		if (dib_loses_patience(endpoint, (uint32_t)(step / (1000u * DIB_LOOK_NS)) + 1) &&
		    (rc = dib_lose_patience(endpoint)) < 0)
			return rc;
		if (something_there(endpoint))
			return 1;
		if (endpoint->halted)
			return dib_halted(endpoint);
		if (step == left)
			return 0;
		if (left != UINT64_MAX)
			left -= step;
	}
}

int dib_wait(struct dib_endpoint *endpoint, uint64_t timeout_ns)
{
	struct dib_card *card;
	uint64_t begin, waited;
	int rc;

	rc = dib_endpoint_check(endpoint);
	if (rc)
		return rc;
	card = endpoint->card;
	if (card->fixed.simulated_clock)
		return wait_by_clock(endpoint, timeout_ns > UINT64_MAX / 1000 ? UINT64_MAX
									      : timeout_ns * 1000);
	begin = monotonic_ns();
	while (!something_there(endpoint)) {
		if (endpoint->halted)
			return dib_halted(endpoint);
		waited = monotonic_ns() - begin;
		if (waited >= timeout_ns)
			return 0;
		rc = card->transport->ops->serve(card->transport, waited < SPIN_NS ? 0 : 1);
		if (!rc &&
		    dib_loses_patience(endpoint, waited < SPIN_NS ? 1 : 1000000u / DIB_LOOK_NS))
			rc = dib_lose_patience(endpoint);
		if (rc)
			return rc;
	}
	return 1;
}
