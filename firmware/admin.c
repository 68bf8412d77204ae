/* The administrator's commands: opening and closing endpoints, and the table of memory
 * regions. They come only through endpoint 0, whose pages the card's owner keeps to itself.
 * Once opened, endpoint 0 is an endpoint like the others as well, with the administrator's
 * completion queue.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "admin.h"

#include "command.h"
#include "queue.h"
#include "routes.h"
#include "scout.h"
#include "trace.h"

static uint32_t region_keys[DIBBER_REGIONS]; /* 0: the entry is empty */
static uint32_t removing; /* key of the region being removed, until its command ends */

static RARE bool queue_is_possible(uint32_t base_low, uint32_t base_high, uint32_t entries)
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

RARE bool admin_attach(void)
{
	uint32_t low = REG_READ(ADMIN_CQ_LOW);
	uint32_t high = REG_READ(ADMIN_CQ_HIGH);
	uint32_t entries = REG_READ(ADMIN_CQ_ENTRIES);
	uint32_t vector = REG_READ(ADMIN_VECTOR);

	if (!queue_is_possible(low, high, entries) || vector >= DIBBER_VECTORS)
		return false;
	queue_open(QUEUE_COMPLETIONS(0), low, high, entries, vector);
	endpoints[0].state = ENDPOINT_ADMIN;
	return true;
}

RARE void admin_boot(void)
{
	for (uint32_t i = 0; i < DIBBER_REGIONS; i++)
		region_enter(i, 0, 0);
	admin_attach();
}

static enum dibber_status endpoint_open(uint32_t tag, uint32_t index)
{
	uint32_t vector = ADMIN_WORD(tag, vector); /* with `page` in the upper half */
	uint32_t cq_low = ADMIN_WORD(tag, cq_base);
	uint32_t cq_high = slot_word(tag, offsetof(struct dibber_admin_command, cq_base) + 4);
	uint32_t eq_low = ADMIN_WORD(tag, eq_base);
	uint32_t eq_high = slot_word(tag, offsetof(struct dibber_admin_command, eq_base) + 4);
	uint32_t cq_entries = ADMIN_WORD(tag, cq_entries);
	uint32_t eq_entries = ADMIN_WORD(tag, eq_entries);

	if (vector >= DIBBER_VECTORS ||
	    (index && !queue_is_possible(cq_low, cq_high, cq_entries)) ||
	    !queue_is_possible(eq_low, eq_high, eq_entries))
		return DIBBER_STATUS_BAD_ARGUMENT;
	if (endpoints[index].state != (index ? ENDPOINT_CLOSED : ENDPOINT_ADMIN))
		return DIBBER_STATUS_IN_USE;

	if (index) {
		/* Commands that were rung while the endpoint was closed are not this owner's. */
		REG_WRITE(COMMAND_SKIP, index);
		queue_open(QUEUE_COMPLETIONS(index), cq_low, cq_high, cq_entries, vector);
	}
	queue_open(QUEUE_EVENTS(index), eq_low, eq_high, eq_entries, vector);
	command_allow(index);
	trace(DIBBER_TRACE_OPEN, index, REG_READ_AT(HEAD, index));
	return DIBBER_STATUS_OK;
}

static enum dibber_status endpoint_close(uint32_t tag, uint32_t index, uint32_t flags)
{
	struct endpoint *endpoint;
	uint32_t waiting;

	if (endpoints[index].state != ENDPOINT_OPENED)
		return DIBBER_STATUS_BAD_ARGUMENT;
	/* First, because HEAD stands still from then on. */
	command_stop(index);
	REG_WRITE(QUEUE_CLOSE, QUEUE_EVENTS(index));
	endpoint = &endpoints[index];
	endpoint->close_tag = tag;
	endpoint->close_cookie = ADMIN_WORD(tag, cookie);
	endpoint->close_solicit = flags; /* SOLICIT is the only one */

	/* No more can wait than there are slots. If more were rung, they overwrote older ones. */
	waiting = REG_READ_AT(PRODUCER, index) - REG_READ_AT(HEAD, index);
	endpoint->close_left = waiting < DIBBER_SLOTS ? waiting : DIBBER_SLOTS;
	/* Commands behind this one are the administrator's and have to wait. */
	if (!index)
		endpoint->close_left = 0;
	command_closing |= 1u << index;
	return DIBBER_STATUS_OK;
}

/* An address with this bit is in a paged region. Its other high bits are the region's index. */
#define PAGED_BIT   63
#define PAGED_INDEX 57

/* The gateware reads a page table by whole lines. */
#define TABLE_LINE 64

/* Whether a region of `length` bytes can lie in pages of 2^`page` bytes. With `page` 0 it lies
 * in one piece at `base`. */
static bool region_is_possible(uint64_t base, uint64_t length, uint32_t page, uint32_t first)
{
	uint64_t end, number;

	if (!length || length - 1 > DIBBER_MAX_OFFSET)
		return false;
	if (!page)
		return base + (length - 1) >= base && !((base + (length - 1)) >> PAGED_BIT);
	if (page < 12 || page > 30 || first >> page || base % TABLE_LINE)
		return false;
	end = first + (length - 1);
	/* This is `end >> page`, written so that the compiler does not call a library. */
	number = (uint64_t)((uint32_t)(end >> 32) >> page) << 32 |
		 ((uint32_t)(end >> 32) << (32 - page) | (uint32_t)end >> page);
	return base + (number * sizeof(uint64_t) | (TABLE_LINE - 1)) >= base;
}

static enum dibber_status region_add(uint32_t tag, uint32_t owner, uint32_t rights)
{
	uint32_t key = ADMIN_WORD(tag, key);
	uint32_t base_low = ADMIN_WORD(tag, base);
	uint32_t base_high = slot_word(tag, offsetof(struct dibber_admin_command, base) + 4);
	uint32_t length_low = ADMIN_WORD(tag, length);
	uint32_t length_high = slot_word(tag, offsetof(struct dibber_admin_command, length) + 4);
	uint32_t page = ADMIN_WORD(tag, vector) >> 16; /* the half word behind it */
	uint32_t first = ADMIN_WORD(tag, first);
	uint32_t index = key % DIBBER_REGIONS;

	if (!key || rights > 0xf)
		return DIBBER_STATUS_BAD_ARGUMENT;
	if (!region_is_possible((uint64_t)base_high << 32 | base_low,
				(uint64_t)length_high << 32 | length_low, page, first))
		return DIBBER_STATUS_BAD_ARGUMENT;
	REG_WRITE(REGION_KEY, key);
	/* A peer may still hold a key that was given before. The gateware counts keys, because
	 * only a loss of power resets it. */
	if (region_keys[index] || !REG_READ(REGION_FRESH))
		return DIBBER_STATUS_IN_USE;

	if (page) {
		REG_WRITE(REGION_TABLE_LOW, base_low);
		REG_WRITE(REGION_TABLE_HIGH, base_high);
		base_low = first;
		base_high = 1u << (PAGED_BIT - 32) | index << (PAGED_INDEX - 32);
	}
	REG_WRITE(REGION_BASE_LOW, base_low);
	REG_WRITE(REGION_BASE_HIGH, base_high);
	REG_WRITE(REGION_LENGTH_LOW, length_low);
	REG_WRITE(REGION_LENGTH_HIGH, length_high);
	region_enter(
		index, key,
		FIELD_PUT(REGION_ACCESS, RIGHTS, rights) | FIELD_PUT(REGION_ACCESS, OWNER, owner) |
			FIELD_PUT(REGION_ACCESS, PAGE, page) | FIELD_PUT(REGION_ACCESS, VALID, 1));
	mcp_shared.regions++;
	return DIBBER_STATUS_OK;
}

static bool region_is_known(uint32_t key)
{
	return key && region_keys[key % DIBBER_REGIONS] == key;
}

/* The region is out of the table, and the engines have finished all that had found it there. */
static enum dibber_status region_remove(uint32_t tag)
{
	uint32_t key = ADMIN_WORD(tag, key);

	removing = 0;
	if (!region_is_known(key))
		return DIBBER_STATUS_BAD_ARGUMENT;
	region_keys[key % DIBBER_REGIONS] = 0;
	return DIBBER_STATUS_OK;
}

RARE bool admin_must_wait(uint32_t tag, uint32_t first_word)
{
	uint32_t key = ADMIN_WORD(tag, key);

	if ((first_word & 0xff) == DIBBER_OPCODE_SCOUT)
		return scout_waiting;
	if ((first_word & 0xff) != DIBBER_OPCODE_REGION_REMOVE ||
	    (first_word >> 8 & 0xff & ~DIBBER_FLAG_SOLICIT) || !region_is_known(key))
		return false;
	if (removing != key) {
		removing = key;
		region_enter(key % DIBBER_REGIONS, 0, 0);
		region_keys[key % DIBBER_REGIONS] = key;
	}
	return REG_READ(REGION_BUSY);
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
	/* The first three opcodes name an endpoint. */
	if ((first_word & 0xff) <= DIBBER_OPCODE_REGION_ADD && endpoint >= REG_READ(ENDPOINTS)) {
		*status = DIBBER_STATUS_BAD_ARGUMENT;
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
	case DIBBER_OPCODE_SCOUT:
		*status = scout_ask(tag, flags);
		return *status != DIBBER_STATUS_OK;
	case DIBBER_OPCODE_ROUTE_SET:
		*status = routes_set(tag);
		return true;
	default:
		*status = DIBBER_STATUS_BAD_OPCODE;
		return true;
	}
}
