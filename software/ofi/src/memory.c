/* The program's memory as the card reaches it. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "charge.h"
#include "domain.h"
#include "errors.h"
#include "memory.h"
#include "region.h"

int dfi_pieces(struct pieces *pieces, const struct iovec *iov, void **desc, size_t count)
{
	if (count > IOV_LIMIT)
		return -FI_EINVAL;
	pieces->count = count;
	pieces->length = 0;
	for (size_t i = 0; i < count; i++) {
		/* Open MPI's persistent requests lose the place of a type that begins at
		 * MPI_BOTTOM. */
		if (!iov[i].iov_base && iov[i].iov_len)
			return -FI_EINVAL;
		pieces->iov[i] = iov[i];
		pieces->desc[i] = desc ? desc[i] : NULL;
		pieces->length += iov[i].iov_len;
	}
	return 0;
}

void dfi_gather(void *to, const struct pieces *pieces)
{
	uint8_t *at = to;

	for (size_t i = 0; i < pieces->count; i++) {
		if (pieces->iov[i].iov_len)
			memcpy(at, pieces->iov[i].iov_base, pieces->iov[i].iov_len);
		at += pieces->iov[i].iov_len;
	}
	dfi_charge_copy(pieces->length);
}

size_t dfi_scatter(const struct pieces *pieces, size_t skip, const void *from, size_t length)
{
	const uint8_t *at = from;
	size_t left = length;

	for (size_t i = 0; i < pieces->count && left; i++) {
		size_t room = pieces->iov[i].iov_len;
		size_t bytes;

		if (skip >= room) {
			skip -= room;
			continue;
		}
		bytes = room - skip < left ? room - skip : left;
		memcpy((uint8_t *)pieces->iov[i].iov_base + skip, at, bytes);
		skip = 0;
		at += bytes;
		left -= bytes;
	}
	dfi_charge_copy(length - left);
	return length - left;
}

static int register_for_now(struct domain *domain, void *memory, size_t length, unsigned int rights,
			    struct hold *hold)
{
	int rc;

	do {
		rc = dib_register(domain->endpoint, memory, length, rights, &hold->region);
	} while (rc == DIB_ERR_LIMIT && dfi_cache_evict(domain));
	if (rc == DIB_ERR_LIMIT && domain->regions)
		return -FI_EAGAIN;
	if (rc)
		return dfi_error(rc);
	domain->regions++;
	hold->key = dib_key(hold->region);
	hold->offset = 0;
	return 0;
}

int dfi_hold_memory(struct domain *domain, void *memory, size_t length, unsigned int rights,
		    struct hold *hold)
{
	hold->kept = dfi_cache_get(domain, memory, length, rights, &hold->key, &hold->offset);
	return hold->kept ? 0 : register_for_now(domain, memory, length, rights, hold);
}

int dfi_hold(struct domain *domain, const struct pieces *pieces, size_t length, unsigned int rights,
	     struct hold *hold)
{
	int rc;

	*hold = (struct hold){ 0 };
	if (pieces->count == 1) {
		void *memory = pieces->iov[0].iov_base;

		if (pieces->desc[0] &&
		    dfi_region_covers(pieces->desc[0], domain, memory, length, rights, hold))
			return 0;
		return dfi_hold_memory(domain, memory, length, rights, hold);
	}
	hold->bounce = malloc(length);
	if (!hold->bounce)
		return -FI_ENOMEM;
	if (rights & (DIBBER_RIGHT_LOCAL_READ | DIBBER_RIGHT_REMOTE_READ))
		dfi_gather(hold->bounce, pieces);
	rc = register_for_now(domain, hold->bounce, length, rights, hold);
	if (rc) {
		free(hold->bounce);
		hold->bounce = NULL;
	}
	return rc;
}

void dfi_give_up(struct hold *hold)
{
	if (hold->kept)
		dfi_cache_give_up(hold->kept);
}

void dfi_release(struct domain *domain, struct hold *hold, const struct pieces *pieces,
		 size_t arrived)
{
	if (hold->kept)
		dfi_cache_put(domain, hold->kept);
	if (hold->region) {
		dib_unregister(hold->region);
		domain->regions--;
	}
	if (hold->bounce && arrived)
		dfi_scatter(pieces, 0, hold->bounce, arrived);
	free(hold->bounce);
	*hold = (struct hold){ 0 };
}
