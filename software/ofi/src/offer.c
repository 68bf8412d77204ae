/* Calls of the provider for typed messages. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>

#include "charge.h"
#include "coalesce.h"
#include "command.h"
#include "domain.h"
#include "endpoint.h"
#include "errors.h"
#include "memory.h"
#include "offer.h"
#include "progress.h"
#include "routes.h"

#define PUBLIC __attribute__((visibility("default")))

struct dibber_fi_hold {
	struct domain *domain;
	struct hold hold;
};

PUBLIC int dibber_fi_hold(void *memory, size_t length, int offered, struct dibber_fi_hold **out,
			  struct dibber_fi_place *place, uint64_t *offset)
{
	struct dibber_fi_hold *hold = calloc(1, sizeof(*hold));
	struct domain *domain;
	int rc = -FI_ENODEV;

	if (!hold)
		return -FI_ENOMEM;
	dfi_enter();
	dfi_charge(CHARGE_HOLD, 1);
	domain = hold->domain = dfi_direct_domain();
	if (domain)
		rc = domain->broken ? -domain->broken
				    : dfi_hold_memory(domain, memory, length,
						      offered ? DIBBER_RIGHT_REMOTE_READ
							      : DIBBER_RIGHT_LOCAL_WRITE,
						      &hold->hold);
	if (!rc) {
		*place = (struct dibber_fi_place){
			.node = (uint16_t)domain->card.node,
			.endpoint = (uint8_t)domain->number,
			.valid = 1,
			.key = hold->hold.key,
			.length = length,
		};
		*offset = hold->hold.offset;
		*out = hold;
	}
	dfi_leave();
	if (rc)
		free(hold);
	return rc;
}

PUBLIC void dibber_fi_release(struct dibber_fi_hold *hold, int failed)
{
	const struct pieces none = { .count = 0 };

	dfi_enter();
	/* A domain that was closed has taken its regions with it. */
	if (hold->domain == dfi_direct_domain()) {
		if (failed)
			dfi_give_up(&hold->hold);
		dfi_release(hold->domain, &hold->hold, &none, 0);
		dfi_ops_retry(hold->domain);
	}
	dfi_leave();
	free(hold);
}

static void ended(struct domain *domain, struct command *command, int status)
{
	int error = status < 0 ? -status : dfi_status_error((unsigned int)status);
	struct dibber_fi_counts *counts = command->owner;

	if (error == FI_ETIMEDOUT || error == FI_ECONNRESET)
		dfi_peer_lost(domain, command->peer, error);
	if (error && !counts->error)
		counts->error = error;
	domain->direct--;
	__atomic_sub_fetch(&counts->pending, 1, __ATOMIC_RELEASE);
}

static int get(struct domain *domain, struct peer *peer, const struct dib_side *there,
	       const struct dib_side *here, uint32_t bytes, struct dibber_fi_counts *counts)
{
	struct command *command = dfi_command_new(COMMAND_GET, peer, ended, counts);

	if (!command || dfi_command_stride(command, here, there, bytes))
		return -FI_ENOMEM;
	__atomic_add_fetch(&counts->pending, 1, __ATOMIC_RELAXED);
	domain->direct++;
	dfi_command_issue(domain, command);
	return 0;
}

static struct peer *peer_of(struct domain *domain, const struct dibber_fi_place *place)
{
	if (!place->valid || place->node >= DIBBER_NODES || place->endpoint >= DIBBER_ENDPOINTS ||
	    place->node == domain->card.node)
		return NULL;
	return &domain->peers[dfi_peer_index(place->node, place->endpoint)];
}

PUBLIC int dibber_fi_get(const struct dibber_fi_place *place, const struct dib_side *there,
			 const struct dib_side *here, uint32_t bytes,
			 struct dibber_fi_counts *counts)
{
	struct domain *domain;
	struct peer *peer;
	int rc = -FI_ENODEV;

	dfi_enter();
	dfi_charge(CHARGE_MOVE, 1);
	domain = dfi_direct_domain();
	if (domain)
		rc = -domain->broken;
	if (!rc) {
		peer = peer_of(domain, place);
		rc = peer ? -peer->error : -FI_EOPNOTSUPP;
	}
	if (!rc) {
		dfi_routes_find(domain->card.card, domain->card.node, place->node);
		dfi_coalesce_flush(domain);
		dfi_progress_alert(domain);
		rc = get(domain, peer, there, here, bytes, counts);
	}
	dfi_leave();
	return rc;
}

PUBLIC int dibber_fi_lost(const struct dibber_fi_place *place)
{
	struct domain *domain;
	struct peer *peer;
	int error = FI_ENODEV;

	dfi_enter();
	domain = dfi_direct_domain();
	if (domain) {
		peer = peer_of(domain, place);
		error = domain->broken ? domain->broken : peer ? peer->error : 0;
	}
	dfi_leave();
	return error;
}
