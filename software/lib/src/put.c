/* This file is part of Dibber.
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Commands: a transfer becomes one slot and one doorbell. Payload is never looked at, but for that of an
 * inline put, which travels in the slot.
 */

#include <string.h>

#include "card.h"

#define NOTICE_FLAGS (DIBBER_FLAG_NOTICE | DIBBER_FLAG_INTERRUPT)
#define COMMON_FLAGS (DIBBER_FLAG_SOLICIT | DIBBER_FLAG_FENCE)

_Static_assert(DIBBER_SLOTS == 32, "slots under way are bits of a 32-bit word");

/* A command of any kind; all begin alike. */
union slot {
	struct dibber_command command;
	struct dibber_inline_command in;
	struct dibber_atomic_command atomic;
};

_Static_assert(sizeof(union slot) == DIBBER_SLOT_BYTES, "every command fills a slot");

/* Write a command into the next slot and ring once. */
static int issue_next(struct dib_endpoint *endpoint, union slot *image, uint64_t tag, enum dibber_call call)
{
	struct dibber_command *command = &image->command;
	struct dib_card *card = endpoint->card;
	uint32_t slot = endpoint->producer & (card->fixed.slots - 1);
	struct dib_submission submission = {
		.command = command, .slot = dib_slot(endpoint->number, slot),
		.doorbell = dib_doorbell(endpoint->number, DIBBER_DOORBELL_COMMAND_PRODUCER),
		.producer = endpoint->producer + 1, .participant = endpoint->participant, .call = call,
	};
	int rc;

	if (endpoint->busy & 1u << slot)
		return dib_fail(DIB_ERR_AGAIN, "%u commands are under way: poll completions first", card->fixed.slots);
	/* Its low bits find the slot again, the rest tells one use of it from the next. */
	command->cookie = endpoint->producer;
	rc = card->transport->ops->submit(card->transport, &submission);
	if (rc)
		return rc;
	endpoint->producer++;
	endpoint->busy |= 1u << slot;
	endpoint->cookie[slot] = command->cookie;
	endpoint->tag[slot] = tag;
	endpoint->opcode[slot] = command->opcode;
	return 0;
}

/* Endpoint 0 has its slots in common with the administrator, of whom another thread may be the voice. */
static int issue(struct dib_endpoint *endpoint, union slot *image, uint64_t tag, enum dibber_call call)
{
	bool shared = endpoint->number == 0;
	int rc;

	if (shared && !dib_admin_begin(endpoint)) {
		dib_admin_end(endpoint, false);
		return dib_fail(DIB_ERR_AGAIN, "the administrator has the next slot");
	}
	rc = issue_next(endpoint, image, tag, call);
	if (shared)
		dib_admin_end(endpoint, rc == 0);
	return rc;
}

static int check_endpoint(const struct dib_endpoint *endpoint)
{
	if (!endpoint)
		return dib_fail(DIB_ERR_ARGUMENT, "no endpoint given");
	if (endpoint->card->closed)
		return dib_fail(DIB_ERR_CLOSED, "the card of this endpoint was closed");
	if (endpoint->mailbox)
		return dib_fail(DIB_ERR_IN_USE, "the endpoint's commands are its mailbox's");
	return 0;
}

static int check_delivery(const struct dib_delivery *d, unsigned int known)
{
	if (!d)
		return dib_fail(DIB_ERR_ARGUMENT, "no delivery given");
	if (d->flags & ~known)
		return dib_fail(DIB_ERR_ARGUMENT, "flags 0x%x: this operation knows 0x%x, see enum dibber_flag",
				d->flags, known);
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

/* The head that all commands have in common. */
static void fill_head(union slot *slot, enum dibber_opcode opcode, const struct dib_delivery *d, uint32_t length)
{
	slot->command.opcode = (uint8_t)opcode;
	slot->command.flags = d->flags;
	slot->command.endpoint = d->endpoint;
	slot->command.node = d->node;
	slot->command.length = length;
	slot->command.notice = d->notice;
}

static int contiguous(struct dib_endpoint *endpoint, enum dibber_opcode opcode, unsigned int known,
		      const struct dib_delivery *delivery, uint32_t source_key, uint64_t source_offset,
		      uint32_t target_key, uint64_t target_offset, uint32_t length)
{
	union slot slot = { .command = {
		.source = { .key = source_key, .block = length, .offset = source_offset },
		.target = { .key = target_key, .block = length, .offset = target_offset },
	} };
	int rc;

	if ((rc = check_endpoint(endpoint)) || (rc = check_delivery(delivery, known)))
		return rc;
	if (length == 0 || source_offset > DIBBER_MAX_OFFSET || target_offset > DIBBER_MAX_OFFSET)
		return dib_fail(DIB_ERR_ARGUMENT, "%u bytes from offset 0x%llx to 0x%llx", length,
				(unsigned long long)source_offset, (unsigned long long)target_offset);
	fill_head(&slot, opcode, delivery, length);
	return issue(endpoint, &slot, delivery->tag, DIBBER_CALL_PUT);
}

static int strided(struct dib_endpoint *endpoint, enum dibber_opcode opcode, unsigned int known,
		   const struct dib_delivery *delivery, const struct dib_walk *source,
		   const struct dib_walk *target)
{
	union slot slot = { 0 };
	uint64_t source_bytes, target_bytes;
	int rc;

	if ((rc = check_endpoint(endpoint)) || (rc = check_delivery(delivery, known)) ||
	    (rc = check_walk("source", source, &source_bytes)) ||
	    (rc = check_walk("target", target, &target_bytes)))
		return rc;
	if (source_bytes != target_bytes)
		return dib_fail(DIB_ERR_ARGUMENT, "the source has %llu bytes, the target %llu",
				(unsigned long long)source_bytes, (unsigned long long)target_bytes);
	fill_head(&slot, opcode, delivery, (uint32_t)source_bytes);
	slot.command.levels = (uint8_t)(source->levels | target->levels << 4);
	fill_walk(&slot.command.source, source);
	fill_walk(&slot.command.target, target);
	return issue(endpoint, &slot, delivery->tag, DIBBER_CALL_PUT_STRIDED);
}

int dib_put(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
	    uint32_t source_key, uint64_t source_offset,
	    uint32_t target_key, uint64_t target_offset, uint32_t length)
{
	return contiguous(endpoint, DIBBER_OPCODE_PUT, NOTICE_FLAGS | COMMON_FLAGS | DIBBER_FLAG_CHECKSUM, delivery,
			  source_key, source_offset, target_key, target_offset, length);
}

int dib_put_strided(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
		    const struct dib_walk *source, const struct dib_walk *target)
{
	return strided(endpoint, DIBBER_OPCODE_PUT, NOTICE_FLAGS | COMMON_FLAGS | DIBBER_FLAG_CHECKSUM, delivery,
		       source, target);
}

int dib_get(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
	    uint32_t source_key, uint64_t source_offset,
	    uint32_t target_key, uint64_t target_offset, uint32_t length)
{
	return contiguous(endpoint, DIBBER_OPCODE_GET, COMMON_FLAGS, delivery,
			  source_key, source_offset, target_key, target_offset, length);
}

int dib_get_strided(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
		    const struct dib_walk *source, const struct dib_walk *target)
{
	return strided(endpoint, DIBBER_OPCODE_GET, COMMON_FLAGS, delivery, source, target);
}

/* SEND and RECEIVE have one side each; the walk of the other is the other program's. */
static int one_side(struct dib_endpoint *endpoint, enum dibber_opcode opcode, const struct dib_delivery *delivery,
		    const struct dib_walk *walk)
{
	union slot slot = { 0 };
	bool send = opcode == DIBBER_OPCODE_SEND;
	uint64_t bytes;
	int rc;

	if ((rc = check_endpoint(endpoint)) || (rc = check_delivery(delivery, COMMON_FLAGS)) ||
	    (rc = check_walk(send ? "source" : "target", walk, &bytes)))
		return rc;
	if (endpoint->number == 0)
		return dib_fail(DIB_ERR_ARGUMENT, "endpoint 0 knows no sends and receives: they wait in slots that the library needs");
	fill_head(&slot, opcode, delivery, (uint32_t)bytes);
	slot.command.levels = (uint8_t)(send ? walk->levels : walk->levels << 4);
	fill_walk(send ? &slot.command.source : &slot.command.target, walk);
	return issue(endpoint, &slot, delivery->tag, walk->levels ? DIBBER_CALL_PUT_STRIDED : DIBBER_CALL_PUT);
}

int dib_send(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
	     uint32_t source_key, uint64_t source_offset, uint32_t length)
{
	const struct dib_walk source = { .key = source_key, .block = length, .offset = source_offset };

	return one_side(endpoint, DIBBER_OPCODE_SEND, delivery, &source);
}

int dib_send_strided(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
		     const struct dib_walk *source)
{
	return one_side(endpoint, DIBBER_OPCODE_SEND, delivery, source);
}

int dib_receive(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
		uint32_t target_key, uint64_t target_offset, uint32_t length)
{
	const struct dib_walk target = { .key = target_key, .block = length, .offset = target_offset };

	return one_side(endpoint, DIBBER_OPCODE_RECEIVE, delivery, &target);
}

int dib_receive_strided(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
			const struct dib_walk *target)
{
	return one_side(endpoint, DIBBER_OPCODE_RECEIVE, delivery, target);
}

int dib_put_inline(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
		   const void *data, uint32_t target_key, uint64_t target_offset, uint32_t length)
{
	union slot slot = { 0 };
	int rc;

	if ((rc = check_endpoint(endpoint)) || (rc = check_delivery(delivery, NOTICE_FLAGS | COMMON_FLAGS)))
		return rc;
	if (!data || length == 0 || length > DIBBER_INLINE_BYTES || target_offset > DIBBER_MAX_OFFSET)
		return dib_fail(DIB_ERR_ARGUMENT, "%u bytes inline to offset 0x%llx, %u are possible", length,
				(unsigned long long)target_offset, DIBBER_INLINE_BYTES);
	fill_head(&slot, DIBBER_OPCODE_PUT_INLINE, delivery, length);
	slot.in.key = target_key;
	slot.in.block = length;
	slot.in.offset = target_offset;
	memcpy(slot.in.data, data, length);
	return issue(endpoint, &slot, delivery->tag, DIBBER_CALL_PUT);
}

int dib_atomic(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
	       const struct dib_atomic *atomic)
{
	union slot slot = { 0 };
	int rc;

	if ((rc = check_endpoint(endpoint)) || (rc = check_delivery(delivery, COMMON_FLAGS)))
		return rc;
	if (!atomic)
		return dib_fail(DIB_ERR_ARGUMENT, "no atomic given");
	if (atomic->opcode < DIBBER_OPCODE_FETCH_ADD || atomic->opcode > DIBBER_OPCODE_MASKED_SWAP)
		return dib_fail(DIB_ERR_ARGUMENT, "opcode %u is no atomic", atomic->opcode);
	if ((atomic->size != 4 && atomic->size != 8) || atomic->offset > DIBBER_MAX_OFFSET)
		return dib_fail(DIB_ERR_ARGUMENT, "an atomic of %u bytes at offset 0x%llx: 4 and 8 are possible",
				atomic->size, (unsigned long long)atomic->offset);
	fill_head(&slot, atomic->opcode, delivery, atomic->size);
	slot.atomic.key = atomic->key;
	slot.atomic.offset = atomic->offset;
	slot.atomic.operand = atomic->operand;
	slot.atomic.compare = atomic->compare;
	slot.atomic.mask = atomic->mask;
	return issue(endpoint, &slot, delivery->tag, DIBBER_CALL_PUT);
}

int dib_issue_inline(struct dib_endpoint *endpoint, const struct dib_delivery *delivery, const void *data,
		     uint32_t target_key, uint64_t target_offset, uint32_t length, enum dibber_call call)
{
	union slot slot = { 0 };

	fill_head(&slot, DIBBER_OPCODE_PUT_INLINE, delivery, length);
	slot.in.key = target_key;
	slot.in.block = length;
	slot.in.offset = target_offset;
	memcpy(slot.in.data, data, length);
	return issue(endpoint, &slot, delivery->tag, call);
}

int dib_issue(struct dib_endpoint *endpoint, enum dibber_opcode opcode, const struct dib_delivery *delivery,
	      uint32_t source_key, uint64_t source_offset, uint32_t target_key, uint64_t target_offset,
	      uint32_t length, enum dibber_call call)
{
	union slot slot = { .command = {
		.source = { .key = source_key, .block = length, .offset = source_offset },
		.target = { .key = target_key, .block = length, .offset = target_offset },
	} };

	fill_head(&slot, opcode, delivery, length);
	return issue(endpoint, &slot, delivery->tag, call);
}

int dib_submit(struct dib_endpoint *endpoint, const struct dibber_command *command, uint64_t tag)
{
	union slot copy;
	int rc;

	rc = check_endpoint(endpoint);
	if (rc)
		return rc;
	if (!command)
		return dib_fail(DIB_ERR_ARGUMENT, "no command given");
	if (endpoint->number == 0 && (command->opcode >= DIBBER_OPCODE_ENDPOINT_OPEN ||
				      command->opcode == DIBBER_OPCODE_SEND || command->opcode == DIBBER_OPCODE_RECEIVE))
		return dib_fail(DIB_ERR_ARGUMENT, "opcode 0x%x on endpoint 0 is the library's alone", command->opcode);
	copy.command = *command;
	return issue(endpoint, &copy, tag, DIBBER_CALL_PUT);
}
