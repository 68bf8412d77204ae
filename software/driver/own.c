// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * Endpoints that the driver itself uses. No process can map their pages or queues, so slots, queues
 * and what lies behind their keys are the kernel's and the card's alone.
 */

#include "dibber.h"

#include <linux/dma-mapping.h>

static_assert(DIBBER_SLOTS <= 32, "dibber_own.ended has a bit for each slot");

static void begin_queue(struct dibber_own_queue *queue, void *entries, u32 count, u32 doorbell)
{
	*queue = (struct dibber_own_queue){
		.entries = entries,
		.count = count,
		.doorbell = doorbell,
	};
}

/*
 * Open endpoint `number` with queues of so many entries. Returns 0, EBUSY when somebody has it, or
 * what the administrator's command returned. `own->interrupt` is set by the caller before.
 */
int dibber_own_open(struct dibber_card *card, struct dibber_own *own, unsigned int number,
		    u32 cq_entries, u32 eq_entries)
{
	struct dibber_admin_command command = {
		.opcode = DIBBER_OPCODE_ENDPOINT_OPEN,
		.endpoint = number,
		.cq_entries = cq_entries,
		.eq_entries = eq_entries,
		.vector = number % card->vectors,
	};
	size_t cq_bytes = (size_t)cq_entries * DIBBER_QUEUE_ENTRY_BYTES;
	struct dibber_endpoint *endpoint = &card->endpoint[number];
	int rc;

	if (!number || number >= card->endpoint_count || cq_entries < card->slot_count)
		return -EINVAL;
	if (endpoint->file || endpoint->own)
		return -EBUSY;
	own->memory_bytes = cq_bytes + (size_t)eq_entries * DIBBER_QUEUE_ENTRY_BYTES;
	own->memory = dma_alloc_coherent(&card->pdev->dev, own->memory_bytes, &own->memory_address,
					 GFP_KERNEL);
	if (!own->memory)
		return -ENOMEM;
	own->card = card;
	begin_queue(&own->completions, own->memory, cq_entries, DIBBER_DOORBELL_CQ_CONSUMER);
	begin_queue(&own->events, own->memory + cq_bytes, eq_entries, DIBBER_DOORBELL_EQ_CONSUMER);
	dibber_write(card, dibber_doorbell(number, DIBBER_DOORBELL_CQ_CONSUMER), 0);
	dibber_write(card, dibber_doorbell(number, DIBBER_DOORBELL_EQ_CONSUMER), 0);
	command.cq_base = own->memory_address;
	command.eq_base = own->memory_address + cq_bytes;
	rc = dibber_admin(card, &command);
	if (rc == -ESHUTDOWN && !card->stopped)
		dibber_program_stop(card);
	if (rc) {
		dma_free_coherent(&card->pdev->dev, own->memory_bytes, own->memory,
				  own->memory_address);
		return rc;
	}
	/* The card goes on behind what the endpoint's last user has rung. */
	own->producer =
		dibber_read(card, dibber_doorbell(number, DIBBER_DOORBELL_COMMAND_PRODUCER));
	own->rung = own->producer;
	own->oldest = own->producer;
	own->ended = 0;
	own->number = number;
	spin_lock_irq(&endpoint->lock);
	endpoint->own = own;
	spin_unlock_irq(&endpoint->lock);
	return 0;
}

/* The card reaches neither queues nor sources of commands any more when this returns. */
void dibber_own_close(struct dibber_own *own)
{
	struct dibber_card *card = own->card;
	struct dibber_admin_command command = {
		.opcode = DIBBER_OPCODE_ENDPOINT_CLOSE,
		.endpoint = own->number,
	};
	struct dibber_endpoint *endpoint;

	if (!own->number)
		return;
	endpoint = &card->endpoint[own->number];
	spin_lock_irq(&endpoint->lock);
	endpoint->own = NULL;
	spin_unlock_irq(&endpoint->lock);
	if (dibber_admin(card, &command) && !card->stopped)
		dibber_program_stop(card);
	dma_free_coherent(&card->pdev->dev, own->memory_bytes, own->memory, own->memory_address);
	own->number = 0;
}

/* How many commands can be given. */
u32 dibber_own_room(const struct dibber_own *own)
{
	return own->card->slot_count - (own->producer - own->oldest);
}

/* Write a command into the next slot, which must be free. Returns its cookie. */
u32 dibber_own_give(struct dibber_own *own, struct dibber_command *command)
{
	struct dibber_card *card = own->card;
	u32 slot = own->producer & (card->slot_count - 1);

	command->cookie = own->producer;
	__iowrite64_copy(card->bar + dibber_slot(own->number, slot), command, sizeof(*command) / 8);
	return own->producer++;
}

/* Tell the card of the commands that were given. */
void dibber_own_ring(struct dibber_own *own)
{
	if (own->rung == own->producer)
		return;
	own->rung = own->producer;
	dibber_write(own->card, dibber_doorbell(own->number, DIBBER_DOORBELL_COMMAND_PRODUCER),
		     own->producer);
}

static bool take(struct dibber_own *own, struct dibber_own_queue *queue,
		 struct dibber_queue_entry *out)
{
	const struct dibber_queue_entry *entry = &queue->entries[queue->taken & (queue->count - 1)];
	u32 phase = queue->taken & queue->count ? 0 : 1;

	if (READ_ONCE(entry->phase) != phase)
		return false;
	/* The rest of the entry, and what it tells of, is read after its phase. */
	dma_rmb();
	*out = *entry;
	queue->taken++;
	if (queue->taken - queue->told >= queue->count / 4) {
		queue->told = queue->taken;
		dibber_write(own->card, dibber_doorbell(own->number, queue->doorbell),
			     queue->taken);
	}
	return true;
}

/* The next completion. False: there is none. */
bool dibber_own_completion(struct dibber_own *own, struct dibber_queue_entry *entry)
{
	u32 mask = own->card->slot_count - 1;

	while (take(own, &own->completions, entry)) {
		/* A completion of no command under way is the card's mistake. */
		if (entry->cookie - own->oldest >= own->producer - own->oldest ||
		    own->ended & 1u << (entry->cookie & mask))
			continue;
		own->ended |= 1u << (entry->cookie & mask);
		while (own->oldest != own->producer && own->ended & 1u << (own->oldest & mask)) {
			own->ended &= ~(1u << (own->oldest & mask));
			own->oldest++;
		}
		return true;
	}
	return false;
}

/* The next event. False: there is none. */
bool dibber_own_event(struct dibber_own *own, struct dibber_queue_entry *entry)
{
	return take(own, &own->events, entry);
}
