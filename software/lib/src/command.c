/* The common part of all transfers: checks, command slot, doorbell. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "admin.h"
#include "card.h"
#include "command.h"
#include "endpoint.h"
#include "error.h"
#include "transport.h"

_Static_assert(DIBBER_SLOTS == 32, "slots under way are bits of a 32-bit word");
_Static_assert(sizeof(union dib_image) == DIBBER_SLOT_BYTES, "every command fills a slot");

/* Write a command into the next slot and ring once. Inline, so that the sharing of endpoint 0 costs
 * the other endpoints one comparison. */
static inline int issue(struct dib_endpoint *endpoint, union dib_image *image, uint64_t tag,
			enum dibber_call call)
{
	struct dibber_command *command = &image->command;
	struct dib_card *card = endpoint->card;
	uint32_t slot = endpoint->producer & (card->fixed.slots - 1);
	struct dib_submission submission = {
		.command = command,
		.slot = dib_slot(endpoint->number, slot),
		.doorbell = dib_doorbell(endpoint->number, DIBBER_DOORBELL_COMMAND_PRODUCER),
		.producer = endpoint->producer + 1,
		.participant = endpoint->participant,
		.call = call,
	};
	int rc;

	if (endpoint->busy & 1u << slot)
		return dib_fail(DIB_ERR_AGAIN, "%u commands are under way: poll completions first",
				card->fixed.slots);
	/* The low bits find the slot again. The other bits tell one use of the slot from the next.
	 */
	command->cookie = endpoint->producer;
	rc = card->transport->ops->submit(card->transport, &submission);
	if (rc)
		return rc;
	endpoint->producer++;
	endpoint->busy |= 1u << slot;
	endpoint->cookie[slot] = command->cookie;
	endpoint->tag[slot] = tag;
	endpoint->target[slot] = command->target.key;
	endpoint->opcode[slot] = command->opcode;
	return 0;
}

/* Endpoint 0 shares its slots with the administrator, which may run in another thread. */
static int issue_shared(struct dib_endpoint *endpoint, union dib_image *image, uint64_t tag,
			enum dibber_call call)
{
	int rc;

	if (!dib_admin_begin(endpoint)) {
		dib_admin_end(endpoint, false);
		return dib_fail(DIB_ERR_AGAIN, "the administrator has the next slot");
	}
	rc = issue(endpoint, image, tag, call);
	dib_admin_end(endpoint, rc == 0);
	return rc;
}

int dib_issue(struct dib_endpoint *endpoint, union dib_image *image, uint64_t tag,
	      enum dibber_call call)
{
	if (endpoint->number == 0)
		return issue_shared(endpoint, image, tag, call);
	return issue(endpoint, image, tag, call);
}

int dib_check_two_sided(const struct dib_endpoint *endpoint, const struct dib_delivery *delivery)
{
	if (endpoint->number == 0)
		return dib_fail(
			DIB_ERR_ARGUMENT,
			"endpoint 0 has no sends and receives: they would wait in slots that the library needs");
	if (delivery->endpoint >= DIBBER_ENDPOINTS)
		return dib_fail(DIB_ERR_ARGUMENT,
				"endpoint %u of the other node: no card has more than %u",
				delivery->endpoint, DIBBER_ENDPOINTS);
	return 0;
}

int dib_no_bytes(void)
{
	return dib_fail(DIB_ERR_ARGUMENT,
			"a transfer of 0 bytes: a transfer has at least one byte");
}

int dib_check_walk(const char *side, const struct dib_walk *walk, uint64_t *bytes)
{
	if (!walk)
		return dib_fail(DIB_ERR_ARGUMENT, "no %s given", side);
	if (walk->levels > DIBBER_LEVELS)
		return dib_fail(DIB_ERR_ARGUMENT, "%s: %u stride levels, %u are possible", side,
				walk->levels, DIBBER_LEVELS);
	if (walk->offset > DIBBER_MAX_OFFSET)
		return dib_fail(DIB_ERR_ARGUMENT, "%s: offset 0x%llx is above 0x%llx", side,
				(unsigned long long)walk->offset,
				(unsigned long long)DIBBER_MAX_OFFSET);
	*bytes = walk->block;
	/* A later count of 0 makes the transfer empty, however many bytes the first counts give. */
	for (uint32_t i = 0; i < walk->levels; i++)
		*bytes = walk->count[i] == 0	      ? 0
			 : *bytes > DIBBER_MAX_LENGTH ? *bytes
						      : *bytes * walk->count[i];
	if (*bytes == 0)
		return dib_fail(DIB_ERR_ARGUMENT,
				"%s: a block or count of 0: a transfer has at least one byte",
				side);
	if (*bytes > DIBBER_MAX_LENGTH)
		return dib_fail(DIB_ERR_ARGUMENT, "%s: more than %u bytes", side,
				DIBBER_MAX_LENGTH);
	return 0;
}

void dib_fill_walk(struct dibber_walk *out, const struct dib_walk *walk)
{
	out->key = walk->key;
	out->block = walk->block;
	out->offset = walk->offset;
	for (uint32_t i = 0; i < walk->levels; i++) {
		out->stride[2 * i] = (uint32_t)walk->stride[i];
		out->stride[2 * i + 1] = (uint32_t)((uint64_t)walk->stride[i] >> 32);
		out->count[i] = walk->count[i];
	}
}
