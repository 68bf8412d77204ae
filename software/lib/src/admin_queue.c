/* The administrator's completion queue, and how the control program learns where it is
 * (docs/design/control-program.md). A program that this handle loads learns it before it starts. A
 * program that was loaded beside this handle learns it when the library notices it. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <string.h>

#include "admin_queue.h"
#include "card.h"
#include "clock.h"
#include "halt.h"
#include "memory.h"
#include "queue.h"
#include "transport.h"

#define MOST_WAITS  1000u
#define QUEUE_BYTES ((DIB_ADMIN_ENTRIES + DIB_ADMIN_EVENTS) * DIBBER_QUEUE_ENTRY_BYTES)

static int get_memory(struct dib_card *card)
{
	int rc;

	if (card->admin_memory)
		return 0;
	rc = dib_alloc_own(QUEUE_BYTES, &card->admin_memory);
	if (rc)
		return rc;
	rc = dib_map_queues(card, card->admin_memory, QUEUE_BYTES, &card->admin_map);
	if (rc) {
		dib_free(card->admin_memory);
		card->admin_memory = NULL;
	}
	return rc;
}

/* Empty the queue and tell the card where it is. The length is written last, because the control
 * program takes it as the sign that there is a queue. */
static int tell_queue(struct dib_card *card)
{
	uint64_t iova = card->admin_map->mapping.iova;
	int rc;

	pthread_mutex_lock(&card->admin_lock);
	/* The events behind it stay: an endpoint 0 that was open may not have taken them all. */
	memset(card->admin_memory, 0, DIB_ADMIN_ENTRIES * DIBBER_QUEUE_ENTRY_BYTES);
	card->admin_queue = (struct dib_queue){ .entries = card->admin_memory,
						.iova = iova,
						.count = DIB_ADMIN_ENTRIES };
	card->admin_shared = 0;
	pthread_mutex_unlock(&card->admin_lock);
	if ((rc = dib_write_register(card, DIBBER_HOST_ADMIN_CQ_LOW, (uint32_t)iova)) ||
	    (rc = dib_write_register(card, DIBBER_HOST_ADMIN_CQ_HIGH, (uint32_t)(iova >> 32))) ||
	    (rc = dib_write_register(card, DIBBER_HOST_ADMIN_VECTOR, 0)))
		return rc;
	return dib_write_register(card, DIBBER_HOST_ADMIN_CQ_ENTRIES, DIB_ADMIN_ENTRIES);
}

int dib_admin_open(struct dib_card *card)
{
	int rc = get_memory(card);

	if (rc)
		return rc;
	card->admin_producer = 0;
	for (unsigned int i = 0; i < card->fixed.endpoints; i++) {
		if ((rc = dib_write_register(
			     card, dib_doorbell(i, DIBBER_DOORBELL_COMMAND_PRODUCER), 0)) ||
		    (rc = dib_write_register(card, dib_doorbell(i, DIBBER_DOORBELL_CQ_CONSUMER),
					     0)) ||
		    (rc = dib_write_register(card, dib_doorbell(i, DIBBER_DOORBELL_EQ_CONSUMER),
					     0)))
			return rc;
	}
	return tell_queue(card);
}

void dib_admin_close(struct dib_card *card)
{
	if (!card->admin_memory)
		return;
	dib_unmap(card, card->admin_map);
	dib_free(card->admin_memory);
	card->admin_memory = NULL;
}

int dib_admin_wait(struct dib_card *card, unsigned int participant)
{
	const struct dib_queue *q = &card->admin_queue;

	if (dib_has_clock(card))
		return dib_clock_watch(card, participant, q->iova,
				       (uint64_t)q->count * DIBBER_QUEUE_ENTRY_BYTES,
				       (uint64_t)DIB_ADMIN_LOOK_NS * 1000u);
	return card->transport->ops->serve(card->transport, DIB_ADMIN_LOOK_NS / 1000000u);
}

/* Following ------------------------------------------------------------------------------------ */

/* A program that another process loaded was told of no queue. It cannot answer, and drops each
 * command at endpoint 0. So show it first where the slots are, then give it the queue. */
static int attach(struct dib_card *card, unsigned int participant)
{
	uint32_t head = card->admin_producer;
	unsigned int waits = 0;
	int rc = get_memory(card);

	if (!rc)
		rc = dib_write_register(card, dib_doorbell(0, DIBBER_DOORBELL_COMMAND_PRODUCER),
					card->admin_producer);
	if (!rc)
		rc = dib_write_register(card, dib_doorbell(0, DIBBER_DOORBELL_CQ_CONSUMER), 0);
	/* One wait is more than the program needs. A simulator without a clock is the exception: it
	 * may not even have run. */
	do {
		if (rc >= 0)
			rc = dib_admin_wait(card, participant);
		if (rc >= 0 && !dib_has_clock(card))
			rc = dib_read_register(card, dib_doorbell(0, DIBBER_DOORBELL_COMMAND_HEAD),
					       &head);
	} while (rc >= 0 && head != card->admin_producer && ++waits < MOST_WAITS);
	return rc < 0 ? rc : tell_queue(card);
}

int dib_admin_follow(struct dib_card *card, unsigned int participant)
{
	uint32_t halts;
	bool ready;
	int rc = dib_program(card, participant, &halts, &ready);

	if (rc)
		return rc;
	if (halts != card->halts) {
		card->halts = halts;
		card->firmware = false;
		card->behind = true;
	}
	/* The driver has followed. */
	if (dib_is_administered(card->transport)) {
		card->firmware = ready;
		return 0;
	}
	if (!card->behind || !ready)
		return 0;
	rc = attach(card, participant);
	if (!rc) {
		card->behind = false;
		card->firmware = true;
	}
	return rc;
}
