/* This file is part of Dibber.
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Endpoint 0, the administrator: one command at a time, each waited for. */

#include <string.h>
#include <time.h>

#include "card.h"

#define ENTRIES   64u
/* Simulated time where there is a clock. A region is removed when what uses it has ended, which takes a lost peer 80 ms. */
#define TIMEOUT_NS 200000000u
#define LOOK_NS    1000000u	/* how often it is looked whether the control program runs at all */

int dib_admin_open(struct dib_card *card)
{
	int rc;

	if (!card->admin_memory) {
		rc = dib_alloc(ENTRIES * DIBBER_QUEUE_ENTRY_BYTES, &card->admin_memory);
		if (rc)
			return rc;
		rc = dib_map(card, card->admin_memory, ENTRIES * DIBBER_QUEUE_ENTRY_BYTES, true,
			     &card->admin_map);
		if (rc) {
			dib_free(card->admin_memory);
			card->admin_memory = NULL;
			return rc;
		}
	}
	memset(card->admin_memory, 0, ENTRIES * DIBBER_QUEUE_ENTRY_BYTES);
	card->admin_queue = (struct dib_queue){
		.entries = card->admin_memory, .iova = card->admin_map->mapping.iova, .count = ENTRIES,
	};
	card->admin_producer = 0;
	for (unsigned int i = 0; i < card->fixed.endpoints; i++) {
		if ((rc = dib_write_register(card, dib_doorbell(i, DIBBER_DOORBELL_COMMAND_PRODUCER), 0)) ||
		    (rc = dib_write_register(card, dib_doorbell(i, DIBBER_DOORBELL_CQ_CONSUMER), 0)) ||
		    (rc = dib_write_register(card, dib_doorbell(i, DIBBER_DOORBELL_EQ_CONSUMER), 0)))
			return rc;
	}
	if ((rc = dib_write_register(card, DIBBER_HOST_ADMIN_CQ_LOW, (uint32_t)card->admin_queue.iova)) ||
	    (rc = dib_write_register(card, DIBBER_HOST_ADMIN_CQ_HIGH,
				     (uint32_t)(card->admin_queue.iova >> 32))) ||
	    (rc = dib_write_register(card, DIBBER_HOST_ADMIN_CQ_ENTRIES, ENTRIES)) ||
	    (rc = dib_write_register(card, DIBBER_HOST_ADMIN_VECTOR, 0)))
		return rc;
	return 0;
}

void dib_admin_close(struct dib_card *card)
{
	if (!card->admin_memory)
		return;
	dib_unmap(card, card->admin_map);
	dib_free(card->admin_memory);
	card->admin_memory = NULL;
}

static uint64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/*
 * One that has stopped, or was halted by another program, answers nothing. A read of a register names no participant
 * of the simulator's clock and is taken for that of the card: others would wait for it while time waits for them.
 */
static int check_it_runs(struct dib_card *card, unsigned int participant, const char *what)
{
	static const char *const states[] = { DIBBER_MCP_STATE_NAMES };
	uint32_t state;
	int rc;

	if (dib_has_clock(card) && participant != DIB_CARD)
		return 0;
	rc = dib_read_register(card, DIBBER_HOST_MCP_STATE, &state);
	if (!rc && (state == DIBBER_MCP_STATE_RESET || state == DIBBER_MCP_STATE_TRAP ||
		    state == DIBBER_MCP_STATE_WATCHDOG))
		rc = dib_fail(DIB_ERR_NO_FIRMWARE, "%s: the control program does not run any more (%s): load one again",
			      what, states[state]);
	return rc;
}

static int wait_for_completion(struct dib_card *card, unsigned int participant, const char *what,
			       const struct dibber_queue_entry **entry)
{
	struct dib_queue *q = &card->admin_queue;
	uint64_t begin = monotonic_ns();
	unsigned int waits = 0;
	bool over = false;
	int rc;

	while (!(*entry = dib_queue_peek(q))) {
		if (over)
			return dib_fail(DIB_ERR_TIMEOUT, "%s: no answer from the control program in %u ms", what,
					TIMEOUT_NS / 1000000u);
		if (dib_has_clock(card)) {
			rc = dib_clock_watch(card, participant, q->iova,
					     (uint64_t)q->count * DIBBER_QUEUE_ENTRY_BYTES,
					     (uint64_t)LOOK_NS * 1000u);
			over = rc == 0 && ++waits == TIMEOUT_NS / LOOK_NS;
		} else {
			rc = card->transport->ops->serve(card->transport, LOOK_NS / 1000000u);
			over = monotonic_ns() - begin > 100ull * TIMEOUT_NS;
		}
		if (!rc)
			rc = check_it_runs(card, participant, what);
		if (rc < 0)
			return rc;
	}
	return 0;
}

_Static_assert(offsetof(struct dibber_admin_command, cookie) == offsetof(struct dibber_route_command, cookie) &&
	       sizeof(struct dibber_admin_command) == sizeof(struct dibber_route_command), "any command of the administrator");

int dib_admin_run(struct dib_card *card, unsigned int participant, void *any, const char *what,
		  struct dibber_queue_entry *answer)
{
	struct dibber_admin_command *command = any;
	const struct dibber_queue_entry *entry;
	struct dib_queue *q = &card->admin_queue;
	int rc;

	if (!card->firmware)
		return dib_fail(DIB_ERR_NO_FIRMWARE, "%s: load a control program first", what);
	rc = check_it_runs(card, participant, what);
	if (rc) {
		card->firmware = false;
		return rc;
	}
	command->cookie = card->admin_producer;
	rc = card->transport->ops->bar_write(card->transport,
					     dib_slot(0, card->admin_producer & (card->fixed.slots - 1)),
					     command, sizeof(*command));
	if (!rc)
		rc = dib_write_register(card, dib_doorbell(0, DIBBER_DOORBELL_COMMAND_PRODUCER),
					card->admin_producer + 1);
	if (rc)
		return rc;
	card->admin_producer++;
	rc = wait_for_completion(card, participant, what, &entry);
	if (rc) {
		/* Whether it will still run is unknown: this control program cannot be relied on any more. */
		card->firmware = false;
		return rc;
	}
	*answer = *entry;
	if (entry->cookie != command->cookie)
		rc = dib_fail(DIB_ERR_PROTOCOL, "%s: the control program completed command %u instead of %u", what,
			      entry->cookie, command->cookie);
	q->taken++;
	if (!rc)
		rc = dib_write_register(card, dib_doorbell(0, DIBBER_DOORBELL_CQ_CONSUMER), q->taken);
	return rc;
}

int dib_admin(struct dib_card *card, unsigned int participant, struct dibber_admin_command *command,
	      const char *what)
{
	struct dibber_queue_entry entry;
	int rc = dib_admin_run(card, participant, command, what, &entry);

	if (!rc && entry.status != DIBBER_STATUS_OK)
		rc = dib_fail(DIB_ERR_COMMAND, "%s: %s (%s)", what, dib_status_name(entry.status),
			      dib_status_string(entry.status));
	return rc;
}
