// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * Endpoint 0, the administrator: one command at a time, each waited for. Its queue and its slots
 * are the kernel's alone: no process has them mapped.
 */

#include "dibber.h"

#include <linux/delay.h>
#include <linux/dma-mapping.h>

#define GONE 0xffffffffu /* what a read returns when no card answers; PCIe Base 3.0, 2.3.2 */
#define LOOK (HZ / 50 ? HZ / 50 : 1) /* between two looks whether the program still runs */

/*
 * Time is the card's own, so that a card in a simulator has its time as well. A region's removal
 * waits for what uses it, and a lost peer takes 80 ms: 1/5 of a second.
 */
#define TIMEOUT_PARTS 5

#define QUEUE_BYTES (DIBBER_ADMIN_ENTRIES * DIBBER_QUEUE_ENTRY_BYTES)

int dibber_admin_create(struct dibber_card *card)
{
	card->queue =
		dma_alloc_coherent(&card->pdev->dev, QUEUE_BYTES, &card->queue_address, GFP_KERNEL);
	return card->queue ? 0 : -ENOMEM;
}

void dibber_admin_destroy(struct dibber_card *card)
{
	if (card->queue)
		dma_free_coherent(&card->pdev->dev, QUEUE_BYTES, card->queue, card->queue_address);
	card->queue = NULL;
}

/* Empty the queue and tell the card where it is, before the control program starts. */
void dibber_admin_tell(struct dibber_card *card)
{
	unsigned int i;

	memset(card->queue, 0, QUEUE_BYTES);
	card->queue_taken = 0;
	card->queue_told = 0;
	card->producer = 0;
	for (i = 0; i < card->endpoint_count; i++) {
		dibber_write(card, dibber_doorbell(i, DIBBER_DOORBELL_COMMAND_PRODUCER), 0);
		dibber_write(card, dibber_doorbell(i, DIBBER_DOORBELL_CQ_CONSUMER), 0);
		dibber_write(card, dibber_doorbell(i, DIBBER_DOORBELL_EQ_CONSUMER), 0);
	}
	dibber_write(card, DIBBER_HOST_ADMIN_CQ_LOW, lower_32_bits(card->queue_address));
	dibber_write(card, DIBBER_HOST_ADMIN_CQ_HIGH, upper_32_bits(card->queue_address));
	dibber_write(card, DIBBER_HOST_ADMIN_VECTOR, 0);
	/* Last, because the program knows by it that there is a queue. */
	dibber_write(card, DIBBER_HOST_ADMIN_CQ_ENTRIES, DIBBER_ADMIN_ENTRIES);
}

/* Whether the card is there and runs the program that was loaded: 0, ENODEV or ESHUTDOWN. */
int dibber_admin_check(struct dibber_card *card)
{
	u32 program;

	if (card->gone)
		return -ENODEV;
	if (card->stopped)
		return -ESHUTDOWN;
	program = dibber_read(card, dibber_doorbell(0, DIBBER_DOORBELL_PROGRAM));
	if (program == GONE && dibber_read(card, DIBBER_HOST_MAGIC) == GONE)
		return -ENODEV;
	if (dibber_field(program, DOORBELL_PROGRAM_HALTS) != card->halts ||
	    !dibber_field(program, DOORBELL_PROGRAM_READY))
		return -ESHUTDOWN;
	return 0;
}

/* The oldest completion that was not taken, or NULL. */
static const struct dibber_queue_entry *peek(struct dibber_card *card)
{
	u32 place = card->queue_taken & (DIBBER_ADMIN_ENTRIES - 1);
	u32 phase = card->queue_taken & DIBBER_ADMIN_ENTRIES ? 0 : 1;
	const struct dibber_queue_entry *entry = &card->queue[place];

	if (READ_ONCE(entry->phase) != phase)
		return NULL;
	/* The rest of the entry is read after its phase. */
	dma_rmb();
	return entry;
}

static int wait_for_completion_of(struct dibber_card *card)
{
	u32 begin = dibber_read(card, DIBBER_HOST_CYCLES_LOW);
	int rc;

	while (!wait_event_timeout(card->endpoint[0].wait, peek(card), LOOK)) {
		rc = dibber_admin_check(card);
		if (rc)
			return rc;
		if (dibber_read(card, DIBBER_HOST_CYCLES_LOW) - begin >
			    card->clock_hz / TIMEOUT_PARTS &&
		    !peek(card))
			return -ETIMEDOUT;
	}
	return 0;
}

static int error_of_status(u8 status)
{
	switch (status) {
	case DIBBER_STATUS_OK:
		return 0;
	case DIBBER_STATUS_IN_USE:
		return -EBUSY;
	case DIBBER_STATUS_BAD_ARGUMENT:
		return -EINVAL;
	default:
		return -EIO;
	}
}

/*
 * Run a command and hand over its completion. A program that does not answer, or answers another
 * command, is not believed any more: it is halted, and with it every endpoint.
 */
int dibber_admin_ask(struct dibber_card *card, struct dibber_admin_command *command,
		     struct dibber_queue_entry *answer)
{
	const struct dibber_queue_entry *entry;
	int rc = dibber_admin_check(card);

	if (rc)
		return rc;
	command->cookie = card->producer;
	command->flags = DIBBER_FLAG_SOLICIT;
	__iowrite64_copy(card->bar + dibber_slot(0, card->producer & (card->slot_count - 1)),
			 command, sizeof(*command) / 8);
	card->producer++;
	dibber_write(card, dibber_doorbell(0, DIBBER_DOORBELL_COMMAND_PRODUCER), card->producer);
	rc = wait_for_completion_of(card);
	if (rc == -ETIMEDOUT)
		goto untrusted;
	if (rc)
		return rc;
	entry = peek(card);
	if (entry->kind != DIBBER_ENTRY_COMPLETION || entry->cookie != command->cookie) {
		rc = -EPROTO;
		goto untrusted;
	}
	*answer = *entry;
	card->queue_taken++;
	if (card->queue_taken - card->queue_told >= DIBBER_ADMIN_ENTRIES / 2) {
		card->queue_told = card->queue_taken;
		dibber_write(card, dibber_doorbell(0, DIBBER_DOORBELL_CQ_CONSUMER),
			     card->queue_taken);
	}
	return 0;

untrusted:
	pr_err("dibber%d: command 0x%x: %s; the control program is halted\n", card->number,
	       command->opcode, rc == -ETIMEDOUT ? "no answer" : "a wrong answer");
	dibber_program_stop(card);
	return rc;
}

int dibber_admin(struct dibber_card *card, struct dibber_admin_command *command)
{
	struct dibber_queue_entry answer;
	int rc = dibber_admin_ask(card, command, &answer);

	if (rc)
		return rc;
	rc = error_of_status(answer.status);
	if (rc)
		dibber_complain(card, "command 0x%x ended with status %u\n", command->opcode,
				answer.status);
	return rc;
}
