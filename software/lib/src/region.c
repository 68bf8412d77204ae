/* Regions: keys, and what the control program learns of the memory behind them. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "admin.h"
#include "card.h"
#include "endpoint.h"
#include "error.h"
#include "handle.h"
#include "memory.h"
#include "pages.h"
#include "region.h"
#include "transport.h"

#define ALL_RIGHTS                                                                       \
	(DIBBER_RIGHT_LOCAL_READ | DIBBER_RIGHT_LOCAL_WRITE | DIBBER_RIGHT_REMOTE_READ | \
	 DIBBER_RIGHT_REMOTE_WRITE)
#define WRITE_RIGHTS (DIBBER_RIGHT_LOCAL_WRITE | DIBBER_RIGHT_REMOTE_WRITE)

/* The entry of the card's table that a key names. */
static uint32_t entry_of(uint32_t key)
{
	return key % DIBBER_REGIONS;
}

int dib_keys_begin(struct dib_card *card)
{
	uint32_t first = card->transport->random;
	int rc;

	while (!first && getrandom(&first, sizeof(first), 0) < 0) {
		if (errno != EINTR)
			return dib_fail(DIB_ERR_SYSTEM, "getrandom: %s", strerror(errno));
	}
	/* The card takes this number only if it has drawn none since it got power. */
	if ((rc = dib_write_register(card, DIBBER_HOST_KEY_DRAW, first)) ||
	    (rc = dib_read_register(card, DIBBER_HOST_KEY_NEXT, &card->next_key)))
		return rc;
	return dib_read_register(card, DIBBER_HOST_KEYS_LEFT, &card->keys_left);
}

/* Find the next number whose entry is free. The card takes each number once while it has power. So
 * the key of a former region, handle, process or control program is not given again. Counting also
 * runs through the entries. So all 32 bits of a key differ at random from one power-on to the next.
 */
static int new_key(struct dib_card *card, uint32_t *key)
{
	/* Another administrator gives it with the region. */
	if (dib_is_administered(card->transport)) {
		*key = 0;
		return 0;
	}
	for (uint32_t skipped = 0; skipped <= DIBBER_REGIONS; skipped++) {
		uint32_t number = card->next_key + skipped;

		if (skipped >= card->keys_left)
			return dib_fail(
				DIB_ERR_LIMIT,
				"all keys of this card are used up: there are no more until it loses power");
		if (!number || entry_of(number) >= card->fixed.regions ||
		    card->regions[entry_of(number)])
			continue;
		card->next_key = number + 1;
		card->keys_left -= skipped + 1;
		*key = number;
		return 0;
	}
	return dib_fail(DIB_ERR_LIMIT, "all %u regions are in use", card->fixed.regions);
}

static int unmap_region(struct dib_card *card, struct dib_region *region)
{
	return region->table ? dib_page_table_free(card, region->table)
			     : dib_unmap(card, region->map);
}

/* `memory`: the region in one piece; NULL: in pages. */
static int enter_region(struct dib_endpoint *endpoint, void *memory, const struct dib_pages *pages,
			struct dibber_admin_command *command, struct dib_region *region)
{
	struct dib_card *card = endpoint->card;
	bool writable = command->rights & WRITE_RIGHTS;
	int rc;

	rc = new_key(card, &command->key);
	if (rc)
		return rc;
	if (memory)
		rc = dib_map(card, memory, command->length, writable, &region->map);
	else
		rc = dib_page_table_make(card, pages, writable, &region->table);
	if (rc)
		return rc;
	if (memory) {
		command->base = region->map->mapping.iova + region->map->mapping.first;
	} else {
		command->base = region->table->map->mapping.iova;
		command->page = (uint16_t)pages->shift;
		command->first = pages->first;
	}
	rc = dib_admin_of(card, endpoint->participant, endpoint->halts, command,
			  "registering memory");
	if (rc) {
		unmap_region(card, region);
		return rc;
	}
	region->key = command->key;
	region->card = card;
	region->participant = endpoint->participant;
	region->owner = endpoint->number;
	region->halts = endpoint->halts;
	card->regions[entry_of(region->key)] = region;
	return 0;
}

static int new_region(struct dib_endpoint *endpoint, void *memory, const struct dib_pages *pages,
		      uint64_t length, unsigned int rights, struct dib_region **out)
{
	struct dibber_admin_command command = {
		.opcode = DIBBER_OPCODE_REGION_ADD,
		.rights = (uint8_t)rights,
		.endpoint = (uint8_t)endpoint->number,
		.length = length,
	};
	struct dib_region *region;
	int rc;

	if (rights == 0 || rights & ~(unsigned int)ALL_RIGHTS)
		return dib_fail(DIB_ERR_ARGUMENT, "rights 0x%x: 1 to 0x%x, see enum dibber_right",
				rights, ALL_RIGHTS);
	region = dib_handle_new(DIB_KIND_REGION, sizeof(*region));
	if (!region)
		return DIB_ERR_NO_MEMORY;
	rc = dib_card_enter(endpoint->card, endpoint->participant);
	if (!rc) {
		rc = enter_region(endpoint, memory, pages, &command, region);
		if (!rc)
			region->handle.life = DIB_LIFE_OPEN;
		dib_card_leave(endpoint->card);
	}
	if (rc) {
		dib_handle_end(region);
		return rc;
	}
	*out = region;
	return 0;
}

int dib_register(struct dib_endpoint *endpoint, void *memory, size_t length, unsigned int rights,
		 struct dib_region **region)
{
	int rc = dib_endpoint_check(endpoint);

	if (rc)
		return rc;
	if (!memory || !region)
		return dib_fail(DIB_ERR_ARGUMENT, "no %s given",
				memory ? "place for the region" : "memory");
	if (length == 0)
		return dib_fail(DIB_ERR_ARGUMENT,
				"a region of 0 bytes: a region has at least one byte");
	if (length > DIBBER_MAX_OFFSET || (uintptr_t)memory > UINTPTR_MAX - length - DIB_PAGE)
		return dib_fail(DIB_ERR_ARGUMENT, "%zu bytes cannot be registered", length);
	return new_region(endpoint, memory, NULL, length, rights, region);
}

int dib_register_pages(struct dib_endpoint *endpoint, const struct dib_pages *pages,
		       unsigned int rights, struct dib_region **region)
{
	int rc = dib_endpoint_check(endpoint);

	if (rc)
		return rc;
	if (!pages || !region)
		return dib_fail(DIB_ERR_ARGUMENT, "no %s given",
				pages ? "place for the region" : "pages");
	rc = dib_pages_check(pages);
	return rc ? rc : new_region(endpoint, NULL, pages, pages->length, rights, region);
}

uint32_t dib_key(const struct dib_region *region)
{
	return dib_handle_check(region, DIB_KIND_REGION) ? 0 : region->key;
}

bool dib_is_foreign(const struct dib_endpoint *endpoint, uint32_t key)
{
	struct dib_card *card = endpoint->card;
	const struct dib_region *region;
	bool foreign;

	if (dib_card_enter(card, endpoint->participant))
		return false;
	region = card->regions[entry_of(key)];
	foreign = region && region->key == key && region->owner != endpoint->number;
	dib_card_leave(card);
	return foreign;
}

int dib_region_withdraw(struct dib_card *card, struct dib_region *region)
{
	struct dibber_admin_command command = {
		.opcode = DIBBER_OPCODE_REGION_REMOVE,
		.key = region->key,
	};
	int rc = dib_admin_of(card, region->participant, region->halts, &command,
			      "unregistering memory");
	int rc_unmap = unmap_region(card, region);

	card->regions[entry_of(region->key)] = NULL;
	dib_handle_orphan(region, DIB_KIND_CARD);
	/* A halt removes all regions from the table. */
	return rc && rc != DIB_ERR_HALTED ? rc : rc_unmap;
}

int dib_region_change_key(struct dib_endpoint *endpoint, struct dib_region *region, uint64_t length,
			  unsigned int rights)
{
	struct dib_card *card = endpoint->card;
	struct dibber_admin_command remove = { .opcode = DIBBER_OPCODE_REGION_REMOVE,
					       .key = region->key };
	struct dibber_admin_command add = {
		.opcode = DIBBER_OPCODE_REGION_ADD,
		.rights = (uint8_t)rights,
		.endpoint = (uint8_t)endpoint->number,
		.base = region->map->mapping.iova + region->map->mapping.first,
		.length = length,
	};
	uint32_t former = entry_of(region->key);
	int rc;

	card->regions[former] = NULL;
	rc = new_key(card, &add.key);
	if (!rc)
		rc = dib_admin_of(card, endpoint->participant, endpoint->halts, &remove,
				  "changing a region's key");
	if (!rc)
		rc = dib_admin_of(card, endpoint->participant, endpoint->halts, &add,
				  "changing a region's key");
	if (rc) {
		card->regions[former] = region;
		return rc;
	}
	card->regions[entry_of(add.key)] = region;
	region->key = add.key;
	return 0;
}

int dib_unregister(struct dib_region *region)
{
	struct dib_card *card;
	bool open;
	int rc;

	rc = dib_handle_check_close(region, DIB_KIND_REGION, &open);
	if (!open)
		return rc;
	card = region->card;
	rc = dib_card_enter(card, region->participant);
	if (rc)
		return rc;
	rc = dib_region_withdraw(card, region);
	dib_handle_end(region);
	dib_card_leave(card);
	return rc;
}
