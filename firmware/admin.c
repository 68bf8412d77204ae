/* This file is part of Dibber. */
/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The administrator's commands: who has an endpoint, and which memory may be reached. They come
 * only through endpoint 0, whose pages the owner of the card keeps to itself.
 */

#include "mcp.h"
#include "registers.h"

static uint32_t region_keys[DIBBER_REGIONS];	/* 0: the entry is empty */
uint32_t admin_closing;

static uint32_t consumer_address(uint32_t offset, uint32_t endpoint)
{
	return DIBBER_MCP_REGISTER_BASE + offset + 4 * endpoint;
}

static bool queue_is_possible(uint32_t base_low, uint32_t base_high, uint32_t entries)
{
	uint32_t last = entries * DIBBER_QUEUE_ENTRY_BYTES - 1;

	if (!entries || entries > DIBBER_QUEUE_MAX_ENTRIES || (entries & (entries - 1)))
		return false;
	if (base_low % DIBBER_QUEUE_ENTRY_BYTES)
		return false;
	return base_low + last >= base_low || base_high != 0xffffffffu;
}

static void region_enter(uint32_t index, uint32_t key, uint32_t access)
{
	REG_WRITE(REGION_KEY, key);
	REG_WRITE(REGION_ACCESS, access);
	REG_WRITE(REGION_WRITE, index);
	region_keys[index] = key;
}

RARE void admin_boot(void)
{
	struct endpoint *admin = &endpoints[0];
	uint32_t low = REG_READ(ADMIN_CQ_LOW);
	uint32_t high = REG_READ(ADMIN_CQ_HIGH);
	uint32_t entries = REG_READ(ADMIN_CQ_ENTRIES);
	uint32_t vector = REG_READ(ADMIN_VECTOR);

	for (uint32_t i = 0; i < DIBBER_REGIONS; i++)
		region_enter(i, 0, 0);
	/* Without a queue to answer in, its commands are dropped like a closed endpoint's. */
	if (!queue_is_possible(low, high, entries) || vector >= DIBBER_VECTORS)
		return;
	queue_open(&admin->completions, low, high, entries, vector,
		   consumer_address(DIBBER_MCP_CQ_CONSUMER, 0));
	admin->state = ENDPOINT_ADMIN;
}

static enum dibber_status endpoint_open(uint32_t tag, uint32_t index)
{
	struct endpoint *endpoint;
	uint32_t vector = ADMIN_WORD(tag, vector);	/* with reserved0 above it */
	uint32_t cq_low = ADMIN_WORD(tag, cq_base);
	uint32_t cq_high = slot_word(tag, offsetof(struct dibber_admin_command, cq_base) + 4);
	uint32_t eq_low = ADMIN_WORD(tag, eq_base);
	uint32_t eq_high = slot_word(tag, offsetof(struct dibber_admin_command, eq_base) + 4);
	uint32_t cq_entries = ADMIN_WORD(tag, cq_entries);
	uint32_t eq_entries = ADMIN_WORD(tag, eq_entries);

	if (index >= DIBBER_ENDPOINTS || vector >= DIBBER_VECTORS ||
	    !queue_is_possible(cq_low, cq_high, cq_entries) ||
	    !queue_is_possible(eq_low, eq_high, eq_entries))
		return DIBBER_STATUS_BAD_ARGUMENT;
	endpoint = &endpoints[index];
	if (endpoint->state != ENDPOINT_CLOSED)
		return DIBBER_STATUS_IN_USE;

	/* Commands that were rung while nobody had it are not this owner's. */
	command_move(index, REG_READ_AT(PRODUCER, index));
	queue_open(&endpoint->completions, cq_low, cq_high, cq_entries, vector,
		   consumer_address(DIBBER_MCP_CQ_CONSUMER, index));
	queue_open(&endpoint->events, eq_low, eq_high, eq_entries, vector,
		   consumer_address(DIBBER_MCP_EQ_CONSUMER, index));
	endpoint->state = ENDPOINT_OPENED;
	trace(TRACE_OPEN, index, endpoint->head);
	return DIBBER_STATUS_OK;
}

static enum dibber_status endpoint_close(uint32_t tag, uint32_t index, bool solicit)
{
	struct endpoint *endpoint;
	uint32_t waiting;

	if (!index || index >= DIBBER_ENDPOINTS || endpoints[index].state != ENDPOINT_OPENED)
		return DIBBER_STATUS_BAD_ARGUMENT;
	endpoint = &endpoints[index];
	endpoint->state = ENDPOINT_CLOSING;
	endpoint->close_cookie = ADMIN_WORD(tag, cookie);
	endpoint->close_solicit = solicit;
	endpoint->events.entries = 0;

	/* No more can wait than there are slots: who rang for more overwrote the older. */
	waiting = REG_READ_AT(PRODUCER, index) - endpoint->head;
	endpoint->close_left = waiting < DIBBER_SLOTS ? waiting : DIBBER_SLOTS;
	admin_closing |= 1u << index;
	return DIBBER_STATUS_OK;
}

/* A command that was not taken ends; its completion is lost when there is no room for it. */
static void flush(uint32_t index, uint32_t tag)
{
	struct endpoint *endpoint = &endpoints[index];
	uint32_t cookie = COMMAND_WORD(tag, cookie);

	if (!queue_has_room(&endpoint->completions)) {
		command_move(index, endpoint->head + 1);
		mcp_shared.overruns++;
		trace(TRACE_LOST, DIBBER_STATUS_FLUSHED << 24, cookie);
		return;
	}
	command_take(index);
	command_complete(index, cookie, 0, 0, DIBBER_STATUS_FLUSHED, 0, false);
}

RARE uint32_t admin_close_step(void)
{
	uint32_t done = 0;

	for (uint32_t index = 1, mask = admin_closing >> 1; mask; index++, mask >>= 1) {
		struct endpoint *endpoint = &endpoints[index];
		uint32_t tag = index * DIBBER_SLOTS + endpoint->head % DIBBER_SLOTS;

		if (!(mask & 1) || done == MCP_BATCH)
			continue;
		if (endpoint->close_left) {
			endpoint->close_left--;
			flush(index, tag);
			done++;
		} else if (send_close_step(index)) {
			done++;
		} else if (!endpoint->outstanding) {
			command_move(index, REG_READ_AT(PRODUCER, index));
			endpoint->state = ENDPOINT_CLOSED;
			admin_closing &= ~(1u << index);
			trace(TRACE_CLOSE, index, endpoint->head);
			command_complete(0, endpoint->close_cookie, 0, 0, DIBBER_STATUS_OK, 0,
					 endpoint->close_solicit);
			done++;
		}
	}
	return done;
}

static enum dibber_status region_add(uint32_t tag, uint32_t owner, uint32_t rights)
{
	uint32_t key = ADMIN_WORD(tag, key);
	uint32_t base_low = ADMIN_WORD(tag, base);
	uint32_t base_high = slot_word(tag, offsetof(struct dibber_admin_command, base) + 4);
	uint32_t length_low = ADMIN_WORD(tag, length);
	uint32_t length_high = slot_word(tag, offsetof(struct dibber_admin_command, length) + 4);
	uint64_t base = (uint64_t)base_high << 32 | base_low;
	uint64_t length = (uint64_t)length_high << 32 | length_low;
	uint32_t index = key & 0xff;

	if (!key || index >= DIBBER_REGIONS || owner >= DIBBER_ENDPOINTS || rights > 0xf)
		return DIBBER_STATUS_BAD_ARGUMENT;
	if (!length || length - 1 > DIBBER_MAX_OFFSET || base + (length - 1) < base)
		return DIBBER_STATUS_BAD_ARGUMENT;
	if (region_keys[index])
		return DIBBER_STATUS_IN_USE;

	REG_WRITE(REGION_BASE_LOW, base_low);
	REG_WRITE(REGION_BASE_HIGH, base_high);
	REG_WRITE(REGION_LENGTH_LOW, length_low);
	REG_WRITE(REGION_LENGTH_HIGH, length_high);
	region_enter(index, key, FIELD_PUT(REGION_ACCESS, RIGHTS, rights) |
				 FIELD_PUT(REGION_ACCESS, OWNER, owner) |
				 FIELD_PUT(REGION_ACCESS, VALID, 1));
	return DIBBER_STATUS_OK;
}

static enum dibber_status region_remove(uint32_t tag)
{
	uint32_t key = ADMIN_WORD(tag, key);
	uint32_t index = key & 0xff;

	if (!key || index >= DIBBER_REGIONS || region_keys[index] != key)
		return DIBBER_STATUS_BAD_ARGUMENT;
	region_enter(index, 0, 0);
	return DIBBER_STATUS_OK;
}

RARE bool admin_command(uint32_t tag, uint32_t first_word, enum dibber_status *status)
{
	uint32_t flags = first_word >> 8 & 0xff;
	uint32_t rights = first_word >> 16 & 0xff;
	uint32_t endpoint = first_word >> 24;

	if (flags & ~DIBBER_FLAG_SOLICIT) {
		*status = DIBBER_STATUS_BAD_FLAGS;
		return true;
	}
	switch (first_word & 0xff) {
	case DIBBER_OPCODE_ENDPOINT_OPEN:
		*status = endpoint_open(tag, endpoint);
		return true;
	case DIBBER_OPCODE_ENDPOINT_CLOSE:
		*status = endpoint_close(tag, endpoint, flags);
		return *status != DIBBER_STATUS_OK;
	case DIBBER_OPCODE_REGION_ADD:
		*status = region_add(tag, endpoint, rights);
		return true;
	case DIBBER_OPCODE_REGION_REMOVE:
		*status = region_remove(tag);
		return true;
	default:
		*status = DIBBER_STATUS_BAD_OPCODE;
		return true;
	}
}
