/* Transfers whose sides may be index lists. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "command.h"
#include "endpoint.h"
#include "error.h"

#define PUT_FLAGS (DIB_NOTICE_FLAGS | DIB_COMMON_FLAGS | DIBBER_FLAG_CHECKSUM)

static int check_side(const char *name, const struct dib_side *side, uint32_t length)
{
	uint64_t bytes;
	int rc;

	if (!side)
		return dib_fail(DIB_ERR_ARGUMENT, "no %s given", name);
	rc = dib_check_walk(name, &side->walk, &bytes);
	if (rc)
		return rc;
	if (length == 0)
		return dib_no_bytes();
	if (!side->list_key)
		return bytes == length ? 0
				       : dib_fail(DIB_ERR_ARGUMENT,
						  "the %s has %llu bytes, the transfer %u", name,
						  (unsigned long long)bytes, length);
	if (side->walk.levels > DIBBER_LIST_LEVELS)
		return dib_fail(DIB_ERR_ARGUMENT,
				"%s: %u stride levels under a list, %u are possible", name,
				side->walk.levels, DIBBER_LIST_LEVELS);
	if (side->list_offset % DIBBER_LIST_ENTRY_BYTES)
		return dib_fail(DIB_ERR_ARGUMENT,
				"%s: its list is at offset 0x%llx, no multiple of %u", name,
				(unsigned long long)side->list_offset, DIBBER_LIST_ENTRY_BYTES);
	return 0;
}

/* Returns the bits of the command's levels that describe this side. */
static unsigned int fill_side(struct dibber_walk *out, const struct dib_side *side)
{
	dib_fill_walk(out, &side->walk);
	if (!side->list_key)
		return side->walk.levels;
	/* The list takes the place of the third stride. */
	out->stride[2 * DIBBER_LIST_LEVELS] = (uint32_t)side->list_offset;
	out->stride[2 * DIBBER_LIST_LEVELS + 1] = (uint32_t)(side->list_offset >> 32);
	out->count[DIBBER_LIST_LEVELS] = side->list_key;
	return DIBBER_LIST + side->walk.levels;
}

static int two_sides(struct dib_endpoint *endpoint, enum dibber_opcode opcode, unsigned int known,
		     const struct dib_delivery *delivery, const struct dib_side *source,
		     const struct dib_side *target, uint32_t length)
{
	union dib_image image = { 0 };
	int rc;

	if ((rc = dib_check_endpoint(endpoint)) || (rc = dib_check_delivery(delivery, known)) ||
	    (rc = check_side("source", source, length)) ||
	    (rc = check_side("target", target, length)))
		return rc;
	dib_fill_head(&image, opcode, delivery, length);
	image.command.levels = (uint8_t)(fill_side(&image.command.source, source) |
					 fill_side(&image.command.target, target) << 4);
	return dib_issue(endpoint, &image, delivery->tag, DIBBER_CALL_PUT_STRIDED);
}

int dib_put_indexed(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
		    const struct dib_side *source, const struct dib_side *target, uint32_t length)
{
	return two_sides(endpoint, DIBBER_OPCODE_PUT, PUT_FLAGS, delivery, source, target, length);
}

int dib_get_indexed(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
		    const struct dib_side *source, const struct dib_side *target, uint32_t length)
{
	return two_sides(endpoint, DIBBER_OPCODE_GET, DIB_COMMON_FLAGS, delivery, source, target,
			 length);
}

int dib_send_indexed(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
		     const struct dib_side *source, uint32_t length)
{
	union dib_image image = { 0 };
	int rc;

	if ((rc = dib_check_endpoint(endpoint)) ||
	    (rc = dib_check_delivery(delivery, DIB_COMMON_FLAGS)) ||
	    (rc = check_side("source", source, length)) ||
	    (rc = dib_check_two_sided(endpoint, delivery)))
		return rc;
	dib_fill_head(&image, DIBBER_OPCODE_SEND, delivery, length);
	image.command.levels = (uint8_t)fill_side(&image.command.source, source);
	return dib_issue(endpoint, &image, delivery->tag, DIBBER_CALL_PUT_STRIDED);
}

int dib_receive_indexed(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
			const struct dib_side *target, uint32_t length)
{
	union dib_image image = { 0 };
	int rc;

	if ((rc = dib_check_endpoint(endpoint)) ||
	    (rc = dib_check_delivery(delivery, DIB_COMMON_FLAGS)) ||
	    (rc = check_side("target", target, length)) ||
	    (rc = dib_check_two_sided(endpoint, delivery)))
		return rc;
	dib_fill_head(&image, DIBBER_OPCODE_RECEIVE, delivery, length);
	image.command.levels = (uint8_t)(fill_side(&image.command.target, target) << 4);
	return dib_issue(endpoint, &image, delivery->tag, DIBBER_CALL_PUT_STRIDED);
}
