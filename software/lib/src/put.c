/* This file is part of Dibber.
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Commands: a transfer becomes one slot and one doorbell. The payload is never looked at. */

#include <string.h>

#include "card.h"

#define KNOWN_FLAGS (DIBBER_FLAG_NOTICE | DIBBER_FLAG_INTERRUPT | DIBBER_FLAG_SOLICIT)

_Static_assert(DIBBER_SLOTS == 32, "slots under way are bits of a 32-bit word");

/* Write a command into the next slot and ring once. */
static int issue(struct dib_endpoint *endpoint, struct dibber_command *command, uint64_t tag,
		 enum dibber_call call)
{
	struct dib_card *card = endpoint->card;
	uint32_t slot = endpoint->producer & (card->fixed.slots - 1);
	int rc;

	if (endpoint->busy & 1u << slot)
		return dib_fail(DIB_ERR_AGAIN, "%u commands are under way: poll completions first", card->fixed.slots);
	/* Its low bits find the slot again, the rest tells one use of it from the next. */
	command->cookie = endpoint->producer;
	if ((rc = dib_charge(endpoint, call, 1)) ||
	    (rc = card->transport->ops->bar_write(card->transport, dib_slot(endpoint->number, slot), command,
						  sizeof(*command))) ||
	    (rc = dib_write_register(card, dib_doorbell(endpoint->number, DIBBER_DOORBELL_COMMAND_PRODUCER),
				     endpoint->producer + 1)))
		return rc;
	endpoint->producer++;
	endpoint->busy |= 1u << slot;
	endpoint->cookie[slot] = command->cookie;
	endpoint->tag[slot] = tag;
	return 0;
}

static int check_endpoint(const struct dib_endpoint *endpoint)
{
	if (!endpoint)
		return dib_fail(DIB_ERR_ARGUMENT, "no endpoint given");
	if (endpoint->card->closed)
		return dib_fail(DIB_ERR_CLOSED, "the card of this endpoint was closed");
	return 0;
}

static int check_delivery(const struct dib_delivery *d)
{
	if (!d)
		return dib_fail(DIB_ERR_ARGUMENT, "no delivery given");
	if (d->flags & ~KNOWN_FLAGS)
		return dib_fail(DIB_ERR_ARGUMENT, "flags 0x%x: see enum dibber_flag", d->flags);
	if (d->flags & DIBBER_FLAG_INTERRUPT && !(d->flags & DIBBER_FLAG_NOTICE))
		return dib_fail(DIB_ERR_ARGUMENT, "INTERRUPT comes with NOTICE only");
	return 0;
}

static int check_walk(const char *side, const struct dib_walk *walk, uint64_t *bytes)
{
	if (!walk)
		return dib_fail(DIB_ERR_ARGUMENT, "no %s given", side);
	if (walk->levels > DIBBER_LEVELS)
		return dib_fail(DIB_ERR_ARGUMENT, "%s: %u stride levels, %u are possible", side, walk->levels,
				DIBBER_LEVELS);
	if (walk->offset > DIBBER_MAX_OFFSET)
		return dib_fail(DIB_ERR_ARGUMENT, "%s: offset 0x%llx is above 0x%llx", side,
				(unsigned long long)walk->offset, (unsigned long long)DIBBER_MAX_OFFSET);
	*bytes = walk->block;
	for (uint32_t i = 0; i < walk->levels && *bytes <= DIBBER_MAX_LENGTH; i++)
		*bytes *= walk->count[i];
	if (*bytes == 0)
		return dib_fail(DIB_ERR_ARGUMENT, "%s: a block or count of 0", side);
	if (*bytes > DIBBER_MAX_LENGTH)
		return dib_fail(DIB_ERR_ARGUMENT, "%s: more than %u bytes", side, DIBBER_MAX_LENGTH);
	return 0;
}

static void fill_walk(struct dibber_walk *out, const struct dib_walk *walk)
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

static void fill_delivery(struct dibber_command *command, const struct dib_delivery *d)
{
	command->opcode = DIBBER_OPCODE_PUT;
	command->flags = d->flags;
	command->endpoint = d->endpoint;
	command->node = d->node;
	command->notice = d->notice;
}

int dib_put(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
	    uint32_t source_key, uint64_t source_offset,
	    uint32_t target_key, uint64_t target_offset, uint32_t length)
{
	struct dibber_command command = {
		.length = length,
		.source = { .key = source_key, .block = length, .offset = source_offset },
		.target = { .key = target_key, .block = length, .offset = target_offset },
	};
	int rc;

	if ((rc = check_endpoint(endpoint)) || (rc = check_delivery(delivery)))
		return rc;
	if (length == 0 || source_offset > DIBBER_MAX_OFFSET || target_offset > DIBBER_MAX_OFFSET)
		return dib_fail(DIB_ERR_ARGUMENT, "%u bytes from offset 0x%llx to 0x%llx", length,
				(unsigned long long)source_offset, (unsigned long long)target_offset);
	fill_delivery(&command, delivery);
	return issue(endpoint, &command, delivery->tag, DIBBER_CALL_PUT);
}

int dib_put_strided(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
		    const struct dib_walk *source, const struct dib_walk *target)
{
	struct dibber_command command = { 0 };
	uint64_t source_bytes, target_bytes;
	int rc;

	if ((rc = check_endpoint(endpoint)) || (rc = check_delivery(delivery)) ||
	    (rc = check_walk("source", source, &source_bytes)) ||
	    (rc = check_walk("target", target, &target_bytes)))
		return rc;
	if (source_bytes != target_bytes)
		return dib_fail(DIB_ERR_ARGUMENT, "the source has %llu bytes, the target %llu",
				(unsigned long long)source_bytes, (unsigned long long)target_bytes);
	fill_delivery(&command, delivery);
	command.levels = (uint8_t)(source->levels | target->levels << 4);
	command.length = (uint32_t)source_bytes;
	fill_walk(&command.source, source);
	fill_walk(&command.target, target);
	return issue(endpoint, &command, delivery->tag, DIBBER_CALL_PUT_STRIDED);
}

int dib_submit(struct dib_endpoint *endpoint, const struct dibber_command *command, uint64_t tag)
{
	struct dibber_command copy;
	int rc;

	rc = check_endpoint(endpoint);
	if (rc)
		return rc;
	if (!command)
		return dib_fail(DIB_ERR_ARGUMENT, "no command given");
	copy = *command;
	return issue(endpoint, &copy, tag, DIBBER_CALL_PUT);
}
