/* Memory that the program has registered. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>

#include "domain.h"
#include "errors.h"
#include "region.h"

/* Keys of regions without bytes, which the card does not have. The card's keys have 32 bits. */
#define EMPTY_KEY (UINT64_C(1) << 32)

static unsigned int rights_of(uint64_t access)
{
	unsigned int rights = 0;

	if (!access || access & (FI_SEND | FI_WRITE))
		rights |= DIBBER_RIGHT_LOCAL_READ;
	if (!access || access & (FI_RECV | FI_READ))
		rights |= DIBBER_RIGHT_LOCAL_WRITE;
	if (access & FI_REMOTE_READ)
		rights |= DIBBER_RIGHT_REMOTE_READ;
	if (access & FI_REMOTE_WRITE)
		rights |= DIBBER_RIGHT_REMOTE_WRITE;
	return rights;
}

bool dfi_region_covers(void *desc, const struct domain *domain, const void *memory, size_t length,
		       unsigned int rights, struct hold *hold)
{
	const struct region *region = desc;
	size_t offset = (size_t)((const uint8_t *)memory - region->memory);

	if (region->domain != domain || !region->region ||
	    (rights_of(region->access) & rights) != rights ||
	    (const uint8_t *)memory < region->memory || offset > region->length ||
	    length > region->length - offset)
		return false;
	hold->key = dib_key(region->region);
	hold->offset = offset;
	return true;
}

struct region *dfi_region_of_key(const struct domain *domain, uint64_t key)
{
	list_each(item, following, &domain->regions_of_program) {
		struct region *region = member_of(item, struct region, place);

		if (region->fid.key == key)
			return region;
	}
	return NULL;
}

void *dfi_region_memory(const struct domain *domain, uint64_t key, uint64_t offset, uint64_t length,
			uint64_t access)
{
	const struct region *region = dfi_region_of_key(domain, key);

	if (!region || (region->access & access) != access || offset > region->length ||
	    length > region->length - offset)
		return NULL;
	return region->memory + offset;
}

static int region_close(struct fid *fid)
{
	struct region *region = member_of(fid, struct region, fid.fid);
	int rc;

	dfi_enter();
	rc = dib_unregister(region->region);
	list_remove(&region->place);
	region->domain->users--;
	dfi_leave();
	free(region);
	return dfi_error(rc);
}

static struct fi_ops fid_ops = {
	.size = sizeof(fid_ops),
	.close = region_close,
	.bind = dfi_no_bind,
	.control = dfi_no_control,
	.ops_open = dfi_no_ops_open,
};

static int enter_region(struct domain *domain, struct region *region, uint64_t requested_key)
{
	int rc = 0;

	if (domain->user_keys && dfi_region_of_key(domain, requested_key))
		return -FI_ENOKEY;
	if (region->length)
		rc = dib_register(domain->endpoint, region->memory, region->length,
				  rights_of(region->access), &region->region);
	if (rc) {
		FI_WARN(&dfi_provider, FI_LOG_MR, "%zu bytes: %s\n", region->length,
			dib_last_reason());
		return dfi_error(rc);
	}
	if (domain->user_keys)
		region->fid.key = requested_key;
	else if (region->region)
		region->fid.key = dib_key(region->region);
	else
		region->fid.key = EMPTY_KEY | domain->next_empty_key++;
	list_append(&domain->regions_of_program, &region->place);
	domain->users++;
	return 0;
}

static int region_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
			  struct fid_mr **mr)
{
	struct domain *domain;
	struct region *region;
	int rc;

	if (fid->fclass != FI_CLASS_DOMAIN || flags || !attr || attr->iov_count != 1 ||
	    attr->offset || attr->iface != FI_HMEM_SYSTEM)
		return -FI_EINVAL;
	domain = member_of(fid, struct domain, fid.fid);
	region = calloc(1, sizeof(*region));
	if (!region)
		return -FI_ENOMEM;
	region->fid.fid.fclass = FI_CLASS_MR;
	region->fid.fid.context = attr->context;
	region->fid.fid.ops = &fid_ops;
	region->fid.mem_desc = region;
	region->domain = domain;
	region->memory = attr->mr_iov->iov_base;
	region->length = attr->mr_iov->iov_len;
	region->access = attr->access;
	dfi_enter();
	rc = enter_region(domain, region, attr->requested_key);
	dfi_leave();
	if (rc) {
		free(region);
		return rc;
	}
	*mr = &region->fid;
	return 0;
}

static int region_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
		       uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,
		       void *context)
{
	const struct fi_mr_attr attr = {
		.mr_iov = iov,
		.iov_count = count,
		.access = access,
		.offset = offset,
		.requested_key = requested_key,
		.context = context,
	};

	return region_regattr(fid, &attr, flags, mr);
}

static int region_reg(struct fid *fid, const void *memory, size_t length, uint64_t access,
		      uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,
		      void *context)
{
	const struct iovec iov = { .iov_base = (void *)(uintptr_t)memory, .iov_len = length };

	return region_regv(fid, &iov, 1, access, offset, requested_key, flags, mr, context);
}

struct fi_ops_mr dfi_region_ops = {
	.size = sizeof(dfi_region_ops),
	.reg = region_reg,
	.regv = region_regv,
	.regattr = region_regattr,
};
