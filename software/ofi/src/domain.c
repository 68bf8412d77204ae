/* A domain: an endpoint of the card with its command slots, and the memory that peers write. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>

#include "atomic.h"
#include "av.h"
#include "cache.h"
#include "coalesce.h"
#include "command.h"
#include "counter.h"
#include "direct.h"
#include "domain.h"
#include "endpoint.h"
#include "errors.h"
#include "progress.h"
#include "queue.h"
#include "region.h"
#include "ring.h"
#include "transfer.h"

#define PEER_RIGHTS (DIBBER_RIGHT_REMOTE_WRITE | DIBBER_RIGHT_REMOTE_READ)
#define OWN_RIGHTS  (DIBBER_RIGHT_LOCAL_READ | DIBBER_RIGHT_LOCAL_WRITE)

#define STAGING_BYTES ((size_t)BUFFERS * BUFFER_BYTES + 8u * PEERS)

static struct list domains = { &domains, &domains };

struct domain *dfi_domain_next(const struct domain *domain)
{
	const struct list *next = domain ? domain->place.next : domains.next;

	return next == &domains ? NULL : member_of(next, struct domain, place);
}

static int get_memory(struct domain *domain)
{
	size_t inbox_bytes = (size_t)dfi_ring_memory();
	void *memory;
	int rc;

	if ((rc = dib_alloc(inbox_bytes, &memory)))
		return rc;
	domain->inbox = memory;
	if ((rc = dib_alloc(STAGING_BYTES, &memory)))
		return rc;
	domain->staging = memory;
	rc = dib_register(domain->endpoint, domain->inbox, inbox_bytes, PEER_RIGHTS,
			  &domain->inbox_region);
	if (rc)
		return rc;
	return dib_register(domain->endpoint, domain->staging, STAGING_BYTES, OWN_RIGHTS,
			    &domain->staging_region);
}

static void give_memory_back(struct domain *domain)
{
	dib_unregister(domain->staging_region);
	dib_unregister(domain->inbox_region);
	dib_free(domain->staging);
	dib_free(domain->inbox);
}

/* The first endpoint of the card that nobody has. Endpoint 0 is the last choice, because the
 * library's own commands go through it. */
static int open_endpoint(struct domain *domain)
{
	const struct dib_endpoint_options options = { .cq_entries = 64, .eq_entries = 1024 };
	const struct dib_endpoint_options of_zero = { .cq_entries = 64, .eq_entries = 256 };
	int rc = DIB_ERR_IN_USE;

	for (unsigned int i = 1; i <= domain->card.endpoints && rc == DIB_ERR_IN_USE; i++) {
		domain->number = i % domain->card.endpoints;
		rc = dib_endpoint_open(domain->card.card, domain->number,
				       domain->number ? &options : &of_zero, &domain->endpoint);
	}
	return rc;
}

static int begin(struct domain *domain)
{
	int rc = dfi_card_get(&domain->card);

	if (rc)
		return rc;
	rc = open_endpoint(domain);
	if (!rc) {
		dfi_card_add(domain->endpoint);
		rc = get_memory(domain);
	}
	if (!rc && dfi_coalesce_begin(domain))
		rc = DIB_ERR_NO_MEMORY;
	if (!rc) {
		dfi_peers_init(domain);
		list_append(&domains, &domain->place);
		return 0;
	}
	FI_WARN(&dfi_provider, FI_LOG_DOMAIN, "%s\n", dib_last_reason());
	give_memory_back(domain);
	dfi_card_remove(domain->endpoint);
	dib_endpoint_close(domain->endpoint);
	dfi_card_put();
	return dfi_error(rc);
}

void dfi_domain_stop(struct domain *domain)
{
	/* The handle stays until the domain is closed: the clock is held through it. Regions of the
	 * program stay too. So the peers' keys are withdrawn, and no command is sent any more. */
	dfi_direct_end(domain);
	dfi_coalesce_flush(domain);
	while (domain->under_way && dfi_commands_poll(domain) >= 0 &&
	       dib_wait(domain->endpoint, 100000000u) > 0)
		;
	dfi_commands_drop(domain);
}

static int domain_close(struct fid *fid)
{
	struct domain *domain = member_of(fid, struct domain, fid.fid);

	dfi_enter();
	if (domain->users) {
		dfi_leave();
		return -FI_EBUSY;
	}
	dfi_progress_end(domain);
	list_remove(&domain->place);
	dfi_cache_end(domain);
	dfi_coalesce_end(domain);
	give_memory_back(domain);
	dfi_card_remove(domain->endpoint);
	dib_endpoint_close(domain->endpoint);
	dfi_transfer_forget(domain);
	dfi_card_put();
	dfi_leave();
	free(domain);
	return 0;
}

static int domain_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	(void)fid, (void)flags;
	/* An event queue of registrations, which need none: they are done when they return. */
	return other->fclass == FI_CLASS_EQ ? 0 : -FI_EINVAL;
}

static struct fi_ops fid_ops = {
	.size = sizeof(fid_ops),
	.close = domain_close,
	.bind = domain_bind,
	.control = dfi_no_control,
	.ops_open = dfi_no_ops_open,
};

static int no_scalable(struct fid_domain *fid, struct fi_info *info, struct fid_ep **ep,
		       void *context)
{
	(void)fid, (void)info, (void)ep, (void)context;
	return -FI_ENOSYS;
}

static int no_poll(struct fid_domain *fid, struct fi_poll_attr *attr, struct fid_poll **set)
{
	(void)fid, (void)attr, (void)set;
	return -FI_ENOSYS;
}

static int no_stx(struct fid_domain *fid, struct fi_tx_attr *attr, struct fid_stx **stx,
		  void *context)
{
	(void)fid, (void)attr, (void)stx, (void)context;
	return -FI_ENOSYS;
}

static int no_srx(struct fid_domain *fid, struct fi_rx_attr *attr, struct fid_ep **ep,
		  void *context)
{
	(void)fid, (void)attr, (void)ep, (void)context;
	return -FI_ENOSYS;
}

static struct fi_ops_domain domain_ops = {
	.size = sizeof(domain_ops),
	.av_open = dfi_av_open,
	.cq_open = dfi_queue_open,
	.endpoint = dfi_endpoint_open,
	.scalable_ep = no_scalable,
	.cntr_open = dfi_counter_open,
	.poll_open = no_poll,
	.stx_ctx = no_stx,
	.srx_ctx = no_srx,
	.query_atomic = dfi_atomic_query,
};

int dfi_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **out,
		    void *context)
{
	struct domain *domain;
	int rc;

	(void)fabric;
	if (!info || !info->domain_attr)
		return -FI_EINVAL;
	domain = calloc(1, sizeof(*domain));
	if (!domain)
		return -FI_ENOMEM;
	domain->fid.fid.fclass = FI_CLASS_DOMAIN;
	domain->fid.fid.context = context;
	domain->fid.fid.ops = &fid_ops;
	domain->fid.ops = &domain_ops;
	domain->fid.mr = &dfi_region_ops;
	domain->user_keys = !(info->domain_attr->mr_mode & FI_MR_PROV_KEY);
	dfi_progress_alert(domain);
	list_init(&domain->place);
	list_init(&domain->kept);
	list_init(&domain->on_card);
	list_init(&domain->waiting);
	list_init(&domain->short_of_regions);
	list_init(&domain->regions_of_program);
	list_init(&domain->known_keys);
	dfi_enter();
	rc = begin(domain);
	dfi_leave();
	if (rc) {
		free(domain);
		return rc;
	}
	*out = &domain->fid;
	return 0;
}
