/* The calls that transfer. They do not read the payload, except for that of an inline put, which
 * travels in the slot. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <string.h>

#include "command.h"
#include "endpoint.h"
#include "error.h"
#include "put.h"

static inline int contiguous(struct dib_endpoint *endpoint, enum dibber_opcode opcode,
			     unsigned int known, const struct dib_delivery *delivery,
			     uint32_t source_key, uint64_t source_offset, uint32_t target_key,
			     uint64_t target_offset, uint32_t length)
{
	union dib_image slot = { .command = {
					 .source = { .key = source_key,
						     .block = length,
						     .offset = source_offset },
					 .target = { .key = target_key,
						     .block = length,
						     .offset = target_offset },
				 } };
	int rc;

	if ((rc = dib_check_endpoint(endpoint)) || (rc = dib_check_delivery(delivery, known)))
		return rc;
	if (length == 0)
		return dib_no_bytes();
	if (source_offset > DIBBER_MAX_OFFSET || target_offset > DIBBER_MAX_OFFSET)
		return dib_fail(DIB_ERR_ARGUMENT, "%u bytes from offset 0x%llx to 0x%llx", length,
				(unsigned long long)source_offset,
				(unsigned long long)target_offset);
	dib_fill_head(&slot, opcode, delivery, length);
	return dib_issue(endpoint, &slot, delivery->tag, DIBBER_CALL_PUT);
}

static int strided(struct dib_endpoint *endpoint, enum dibber_opcode opcode, unsigned int known,
		   const struct dib_delivery *delivery, const struct dib_walk *source,
		   const struct dib_walk *target)
{
	union dib_image slot = { 0 };
	uint64_t source_bytes, target_bytes;
	int rc;

	if ((rc = dib_check_endpoint(endpoint)) || (rc = dib_check_delivery(delivery, known)) ||
	    (rc = dib_check_walk("source", source, &source_bytes)) ||
	    (rc = dib_check_walk("target", target, &target_bytes)))
		return rc;
	if (source_bytes != target_bytes)
		return dib_fail(DIB_ERR_ARGUMENT, "the source has %llu bytes, the target %llu",
				(unsigned long long)source_bytes, (unsigned long long)target_bytes);
	dib_fill_head(&slot, opcode, delivery, (uint32_t)source_bytes);
	slot.command.levels = (uint8_t)(source->levels | target->levels << 4);
	dib_fill_walk(&slot.command.source, source);
	dib_fill_walk(&slot.command.target, target);
	return dib_issue(endpoint, &slot, delivery->tag, DIBBER_CALL_PUT_STRIDED);
}

int dib_put(struct dib_endpoint *endpoint, const struct dib_delivery *delivery, uint32_t source_key,
	    uint64_t source_offset, uint32_t target_key, uint64_t target_offset, uint32_t length)
{
	return contiguous(endpoint, DIBBER_OPCODE_PUT,
			  DIB_NOTICE_FLAGS | DIB_COMMON_FLAGS | DIBBER_FLAG_CHECKSUM, delivery,
			  source_key, source_offset, target_key, target_offset, length);
}

int dib_put_strided(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
		    const struct dib_walk *source, const struct dib_walk *target)
{
	return strided(endpoint, DIBBER_OPCODE_PUT,
		       DIB_NOTICE_FLAGS | DIB_COMMON_FLAGS | DIBBER_FLAG_CHECKSUM, delivery, source,
		       target);
}

int dib_get(struct dib_endpoint *endpoint, const struct dib_delivery *delivery, uint32_t source_key,
	    uint64_t source_offset, uint32_t target_key, uint64_t target_offset, uint32_t length)
{
	return contiguous(endpoint, DIBBER_OPCODE_GET, DIB_COMMON_FLAGS, delivery, source_key,
			  source_offset, target_key, target_offset, length);
}

int dib_get_strided(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
		    const struct dib_walk *source, const struct dib_walk *target)
{
	return strided(endpoint, DIBBER_OPCODE_GET, DIB_COMMON_FLAGS, delivery, source, target);
}

/* SEND and RECEIVE have one side each. The other program gives the other walk. */
static int one_side(struct dib_endpoint *endpoint, enum dibber_opcode opcode,
		    const struct dib_delivery *delivery, const struct dib_walk *walk)
{
	union dib_image slot = { 0 };
	bool send = opcode == DIBBER_OPCODE_SEND;
	uint64_t bytes;
	int rc;

	if ((rc = dib_check_endpoint(endpoint)) ||
	    (rc = dib_check_delivery(delivery, DIB_COMMON_FLAGS)) ||
	    (rc = dib_check_walk(send ? "source" : "target", walk, &bytes)))
		return rc;
	rc = dib_check_two_sided(endpoint, delivery);
	if (rc)
		return rc;
	dib_fill_head(&slot, opcode, delivery, (uint32_t)bytes);
	slot.command.levels = (uint8_t)(send ? walk->levels : walk->levels << 4);
	dib_fill_walk(send ? &slot.command.source : &slot.command.target, walk);
	return dib_issue(endpoint, &slot, delivery->tag,
			 walk->levels ? DIBBER_CALL_PUT_STRIDED : DIBBER_CALL_PUT);
}

int dib_send(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
	     uint32_t source_key, uint64_t source_offset, uint32_t length)
{
	const struct dib_walk source = { .key = source_key,
					 .block = length,
					 .offset = source_offset };

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
	const struct dib_walk target = { .key = target_key,
					 .block = length,
					 .offset = target_offset };

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
	union dib_image slot = { 0 };
	int rc;

	if ((rc = dib_check_endpoint(endpoint)) ||
	    (rc = dib_check_delivery(delivery, DIB_NOTICE_FLAGS | DIB_COMMON_FLAGS)))
		return rc;
	if (length == 0)
		return dib_no_bytes();
	if (!data)
		return dib_fail(DIB_ERR_ARGUMENT, "no data given");
	if (length > DIBBER_INLINE_BYTES || target_offset > DIBBER_MAX_OFFSET)
		return dib_fail(DIB_ERR_ARGUMENT,
				"%u bytes inline to offset 0x%llx, %u are possible", length,
				(unsigned long long)target_offset, DIBBER_INLINE_BYTES);
	dib_fill_head(&slot, DIBBER_OPCODE_PUT_INLINE, delivery, length);
	slot.in.key = target_key;
	slot.in.block = length;
	slot.in.offset = target_offset;
	memcpy(slot.in.data, data, length);
	return dib_issue(endpoint, &slot, delivery->tag, DIBBER_CALL_PUT);
}

/* Whether `bytes` bytes hold a number, with or without its sign. */
static bool fits(uint64_t value, uint32_t bytes)
{
	return bytes == 8 || value <= UINT32_MAX || value >= (uint64_t)INT32_MIN;
}

int dib_atomic(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
	       const struct dib_atomic *atomic)
{
	union dib_image slot = { 0 };
	int rc;

	if ((rc = dib_check_endpoint(endpoint)) ||
	    (rc = dib_check_delivery(delivery, DIB_COMMON_FLAGS)))
		return rc;
	if (!atomic)
		return dib_fail(DIB_ERR_ARGUMENT, "no atomic given");
	if (atomic->opcode < DIBBER_OPCODE_FETCH_ADD || atomic->opcode > DIBBER_OPCODE_MASKED_SWAP)
		return dib_fail(DIB_ERR_ARGUMENT, "opcode %u is no atomic", atomic->opcode);
	if ((atomic->size != 4 && atomic->size != 8) || atomic->offset > DIBBER_MAX_OFFSET)
		return dib_fail(DIB_ERR_ARGUMENT,
				"an atomic of %u bytes at offset 0x%llx: 4 and 8 are possible",
				atomic->size, (unsigned long long)atomic->offset);
	if (!fits(atomic->operand, atomic->size) ||
	    (atomic->opcode == DIBBER_OPCODE_COMPARE_SWAP &&
	     !fits(atomic->compare, atomic->size)) ||
	    (atomic->opcode == DIBBER_OPCODE_MASKED_SWAP && !fits(atomic->mask, atomic->size)))
		return dib_fail(DIB_ERR_ARGUMENT,
				"an operand of an atomic of 4 bytes has more than 32 bits");
	dib_fill_head(&slot, atomic->opcode, delivery, atomic->size);
	slot.atomic.key = atomic->key;
	slot.atomic.offset = atomic->offset;
	slot.atomic.operand = atomic->operand;
	slot.atomic.compare = atomic->compare;
	slot.atomic.mask = atomic->mask;
	return dib_issue(endpoint, &slot, delivery->tag, DIBBER_CALL_PUT);
}

int dib_issue_inline(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
		     const void *data, uint32_t target_key, uint64_t target_offset, uint32_t length,
		     enum dibber_call call)
{
	union dib_image slot = { 0 };

	dib_fill_head(&slot, DIBBER_OPCODE_PUT_INLINE, delivery, length);
	slot.in.key = target_key;
	slot.in.block = length;
	slot.in.offset = target_offset;
	memcpy(slot.in.data, data, length);
	return dib_issue(endpoint, &slot, delivery->tag, call);
}

int dib_issue_contiguous(struct dib_endpoint *endpoint, enum dibber_opcode opcode,
			 const struct dib_delivery *delivery, uint32_t source_key,
			 uint64_t source_offset, uint32_t target_key, uint64_t target_offset,
			 uint32_t length, enum dibber_call call)
{
	union dib_image slot = { .command = {
					 .source = { .key = source_key,
						     .block = length,
						     .offset = source_offset },
					 .target = { .key = target_key,
						     .block = length,
						     .offset = target_offset },
				 } };

	dib_fill_head(&slot, opcode, delivery, length);
	return dib_issue(endpoint, &slot, delivery->tag, call);
}

int dib_submit(struct dib_endpoint *endpoint, const struct dibber_command *command, uint64_t tag)
{
	union dib_image copy;
	int rc;

	rc = dib_check_endpoint(endpoint);
	if (rc)
		return rc;
	if (!command)
		return dib_fail(DIB_ERR_ARGUMENT, "no command given");
	if (endpoint->number == 0 &&
	    (command->opcode >= DIBBER_OPCODE_ENDPOINT_OPEN ||
	     command->opcode == DIBBER_OPCODE_SEND || command->opcode == DIBBER_OPCODE_RECEIVE))
		return dib_fail(DIB_ERR_ARGUMENT,
				"only the library may use opcode 0x%x on endpoint 0",
				command->opcode);
	copy.command = *command;
	return dib_issue(endpoint, &copy, tag, DIBBER_CALL_PUT);
}
