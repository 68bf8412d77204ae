/* PUT: the checks before its packets get PSNs. Keys, owners, rights and bounds are checked by
 * the gateware where it uses them.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "put.h"

#include "command.h"
#include "flows/bulk.h"

#define FLAGS                                                                                   \
	(DIBBER_FLAG_NOTICE | DIBBER_FLAG_INTERRUPT | DIBBER_FLAG_SOLICIT | DIBBER_FLAG_FENCE | \
	 DIBBER_FLAG_CHECKSUM)

/*
 * Check block times counts against the length. A product above 32 bits is no length. A zero in
 * any place makes it zero, however large the rest is. The loop runs once for each level of
 * strides. With an index list the product is what lies at one entry, and the length gives the
 * number of entries.
 */
static ALWAYS enum dibber_status check_walk(uint32_t tag, uint32_t walk, uint32_t levels,
					    uint32_t length)
{
	uint32_t address = DIBBER_MCP_SLOT_BASE + tag * DIBBER_SLOT_BYTES + walk;
	uint32_t product = bus_read(address + offsetof(struct dibber_walk, block));
	uint32_t overflow = 0;
	bool zero = !product;

	for (uint32_t i = 0; i < (levels & (DIBBER_LIST - 1)); i++) {
		uint32_t count = bus_read(address + offsetof(struct dibber_walk, count) + 4 * i);
		uint64_t wide = (uint64_t)product * count;

		zero |= !count;
		overflow |= wide >> 32;
		product = wide;
	}
	if (zero)
		return length ? DIBBER_STATUS_BAD_COUNT : DIBBER_STATUS_OK;
	return overflow || (product != length && !(levels & DIBBER_LIST)) ? DIBBER_STATUS_BAD_LENGTH
									  : DIBBER_STATUS_OK;
}

enum dibber_status put_check_walk(uint32_t tag, uint32_t walk, uint32_t levels, uint32_t length)
{
	return check_walk(tag, walk, levels, length);
}

static inline enum dibber_status check(uint32_t tag, uint32_t first_word, uint32_t node,
				       uint32_t length, uint32_t packets)
{
	uint32_t flags = first_word >> 8 & 0xff;
	uint32_t source_levels = first_word >> 16 & 0xf;
	uint32_t target_levels = first_word >> 20 & 0xf;
	uint32_t offset_low, offset_high;
	enum dibber_status status;

	if (flags & ~FLAGS)
		return DIBBER_STATUS_BAD_FLAGS;
	if ((flags & (DIBBER_FLAG_NOTICE | DIBBER_FLAG_INTERRUPT)) == DIBBER_FLAG_INTERRUPT)
		return DIBBER_STATUS_BAD_FLAGS;
	if (source_levels > MCP_LEVELS_MAX || target_levels > MCP_LEVELS_MAX)
		return DIBBER_STATUS_BAD_LEVELS;
	if (node >= DIBBER_NODES || node == command_node)
		return DIBBER_STATUS_BAD_NODE;
	status = check_walk(tag, offsetof(struct dibber_command, source), source_levels, length);
	if (status == DIBBER_STATUS_OK)
		status = check_walk(tag, offsetof(struct dibber_command, target), target_levels,
				    length);
	if (status != DIBBER_STATUS_OK)
		return status;
	/* A replay with checksum begins at the first PSN. The peer must still know it as a
	 * former one. */
	if ((flags & DIBBER_FLAG_CHECKSUM) && packets > MCP_PSNS - DIBBER_WINDOW)
		return DIBBER_STATUS_BAD_LENGTH;

	/* An offset has 48 bits on the wire. Without levels the sender adds a packet's place
	 * to the offset. A sum above 48 bits would come out at the region's start. */
	offset_high = slot_word(tag, offsetof(struct dibber_command, target.offset) + 4);
	if (!target_levels && length) {
		offset_low = COMMAND_WORD(tag, target.offset);
		offset_high += offset_low + (length - 1) < offset_low;
	}
	return offset_high >> 16 ? DIBBER_STATUS_REMOTE_BOUNDS : DIBBER_STATUS_OK;
}

APART bool put_command(uint32_t tag, uint32_t first_word)
{
	uint32_t node = COMMAND_WORD(tag, node); /* with reserved0, which makes it too large */
	uint32_t length = COMMAND_WORD(tag, length);
	uint32_t packets = packets_of(length);
	struct transfer *transfer;
	enum dibber_status status;

	status = check(tag, first_word, node, length, packets);
	if (status != DIBBER_STATUS_OK) {
		command_end(tag, first_word, length, node, status);
		return true;
	}
	if (!bulk_accepts(node, packets))
		return false;
	transfer = transfer_enter(tag, TRANSFER_PUT, 0, node);
	transfer->length = length;
	transfer->flags = first_word >> 8;
	transfer->key = 0;
	bulk_submit(tag, packets);
	transfer->cookie = COMMAND_WORD(tag, cookie);
	command_take(tag / DIBBER_SLOTS);
	mcp_shared.commands++;
	return true;
}
