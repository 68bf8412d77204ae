/* Calls of the provider for libraries beside an engine that know a stride. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdbool.h>
#include <stdlib.h>

#include "charge.h"
#include "coalesce.h"
#include "command.h"
#include "direct.h"
#include "domain.h"
#include "endpoint.h"
#include "errors.h"
#include "memory.h"
#include "progress.h"
#include "routes.h"

#define PUBLIC __attribute__((visibility("default")))
#define WINDOW_RIGHTS                                                                     \
	(DIBBER_RIGHT_REMOTE_WRITE | DIBBER_RIGHT_REMOTE_READ | DIBBER_RIGHT_LOCAL_READ | \
	 DIBBER_RIGHT_LOCAL_WRITE)

struct dibber_fi_region {
	struct domain *domain;
	struct dib_region *region;
	void *memory;
};

/* The domain that all of these calls use. */
static struct domain *the_domain;
static bool chosen;

struct move {
	struct domain *domain;
	struct hold hold;
	struct dib_region *list; /* registered for this transfer */
	struct dibber_fi_counts *counts;
	void (*ended)(void *owner, int error);
	void *owner;
};

void dfi_direct_begin(struct domain *domain)
{
	if (!the_domain)
		the_domain = domain;
}

void dfi_direct_end(struct domain *domain)
{
	if (the_domain != domain)
		return;
	the_domain = NULL;
	chosen = false;
}

void dfi_direct_progress(const struct domain *domain)
{
	if (the_domain && the_domain != domain && the_domain->direct)
		dfi_progress(the_domain, false);
}

static bool has_talked(const struct domain *domain)
{
	for (unsigned int i = 0; i < PEERS; i++)
		if (domain->peers[i].received && !domain->peers[i].self)
			return true;
	return false;
}

/* An engine has several domains. The provider notices that a peer is gone in the one that has
 * exchanged messages with it, and waits for the card in short steps when several are in use. So the
 * first call takes the one with messages. */
static void choose(void)
{
	if (chosen)
		return;
	for (struct domain *domain = dfi_domain_next(NULL); domain;
	     domain = dfi_domain_next(domain))
		if (domain->ep && has_talked(domain)) {
			the_domain = domain;
			break;
		}
	chosen = true;
}

struct domain *dfi_direct_domain(void)
{
	return the_domain;
}

PUBLIC int dibber_fi_open(void *memory, size_t length, struct dibber_fi_region **out,
			  struct dibber_fi_place *place)
{
	struct dibber_fi_region *region = calloc(1, sizeof(*region));
	int rc;

	if (!region)
		return -FI_ENOMEM;
	dfi_enter();
	choose();
	region->domain = the_domain;
	region->memory = memory;
	rc = the_domain ? dfi_error(dib_register(the_domain->endpoint, memory, length,
						 WINDOW_RIGHTS, &region->region))
			: -FI_ENODEV;
	if (!rc) {
		*place = (struct dibber_fi_place){
			.node = (uint16_t)the_domain->card.node,
			.endpoint = (uint8_t)the_domain->number,
			.valid = 1,
			.key = dib_key(region->region),
			.length = length,
		};
		*out = region;
	}
	dfi_leave();
	if (rc)
		free(region);
	return rc;
}

PUBLIC int dibber_fi_close(struct dibber_fi_region *region)
{
	int rc = 0;

	dfi_enter();
	/* A domain that was closed has taken its regions with it. */
	if (region->domain == the_domain && the_domain)
		rc = dfi_error(dib_unregister(region->region));
	dfi_leave();
	free(region);
	return rc;
}

static void give_back(struct move *move)
{
	const struct pieces none = { .count = 0 };

	dfi_release(move->domain, &move->hold, &none, 0);
	dib_unregister(move->list);
	move->domain->regions -= move->list != NULL;
}

static void end(struct move *move, int error)
{
	give_back(move);
	move->domain->direct--;
	move->counts->pending--;
	if (error && !move->counts->error)
		move->counts->error = error;
	if (move->ended)
		move->ended(move->owner, error);
	dfi_ops_retry(move->domain);
	free(move);
}

static void ended(struct domain *domain, struct command *command, int status)
{
	int error = status < 0 ? -status : dfi_status_error((unsigned int)status);

	if (error == FI_ETIMEDOUT || error == FI_ECONNRESET)
		dfi_peer_lost(domain, command->peer, error);
	end(command->owner, error);
}

static int enlist(struct move *move, const struct dibber_fi_side *side)
{
	int rc = dib_register(move->domain->endpoint, side->list,
			      side->entries * sizeof(*side->list), DIBBER_RIGHT_LOCAL_READ,
			      &move->list);

	if (rc == DIB_ERR_LIMIT)
		return -FI_EAGAIN;
	move->domain->regions += !rc;
	return dfi_error(rc);
}

static int begin(struct move *move, int gets, struct peer *peer, struct dib_side *there,
		 void *memory, size_t length, struct dib_side *here,
		 const struct dibber_fi_side *side, size_t bytes)
{
	struct command *command;
	int rc = dfi_hold_memory(move->domain, memory, length,
				 gets ? DIBBER_RIGHT_LOCAL_WRITE : DIBBER_RIGHT_LOCAL_READ,
				 &move->hold);

	if (!rc && side->list)
		rc = enlist(move, side);
	if (rc)
		return rc;
	here->walk.key = move->hold.key;
	here->walk.offset += move->hold.offset;
	here->list_key = side->list ? dib_key(move->list) : 0;
	command = dfi_command_new(gets ? COMMAND_GET : COMMAND_PUT, peer, ended, move);
	if (!command || dfi_command_stride(command, here, there, (uint32_t)bytes))
		return -FI_ENOMEM;
	/* The list must be there first. */
	command->flags = there->list_key ? DIBBER_FLAG_FENCE : 0;
	move->counts->pending++;
	move->domain->direct++;
	dfi_command_issue(move->domain, command);
	return 0;
}

static int check(const struct dibber_fi_place *place, size_t bytes)
{
	if (!the_domain)
		return -FI_ENODEV;
	if (the_domain->broken)
		return -the_domain->broken;
	if (!place->valid || place->node >= DIBBER_NODES || place->endpoint >= DIBBER_ENDPOINTS ||
	    place->node == the_domain->card.node)
		return -FI_EOPNOTSUPP;
	return bytes && bytes <= DIBBER_MAX_LENGTH ? 0 : -FI_EMSGSIZE;
}

PUBLIC int dibber_fi_move(int gets, const struct dibber_fi_place *place,
			  const struct dibber_fi_side *there, void *memory, size_t length,
			  const struct dibber_fi_side *here, size_t bytes,
			  struct dibber_fi_counts *counts, void (*done)(void *owner, int error),
			  void *owner)
{
	struct dib_side near = { .walk = here->walk }, far = { .walk = there->walk };
	struct move *move = calloc(1, sizeof(*move));
	struct peer *peer;
	int rc;

	if (!move)
		return -FI_ENOMEM;
	dfi_enter();
	dfi_charge(CHARGE_MOVE, 1);
	rc = check(place, bytes);
	if (!rc) {
		peer = &the_domain->peers[dfi_peer_index(place->node, place->endpoint)];
		rc = -peer->error;
	}
	if (!rc) {
		*move = (struct move){
			.domain = the_domain, .counts = counts, .ended = done, .owner = owner
		};
		far.walk.key = place->key;
		far.list_key = there->list_key;
		far.list_offset = there->list_offset;
		dfi_routes_find(the_domain->card.card, the_domain->card.node, place->node);
		dfi_coalesce_flush(the_domain);
		dfi_progress_alert(the_domain);
		rc = begin(move, gets, peer, &far, memory, length, &near, here, bytes);
		if (rc) {
			give_back(move);
		}
	}
	if (rc)
		free(move);
	dfi_leave();
	return rc;
}

PUBLIC int dibber_fi_wait(struct dibber_fi_counts *counts)
{
	int error;

	dfi_enter();
	/* A broken domain has ended its commands. */
	while (counts->pending && the_domain && !dfi_progress(the_domain, true)) {
		/* Others may come in between. */
		dfi_leave();
		dfi_enter();
	}
	error = counts->error;
	counts->error = 0;
	dfi_leave();
	return error;
}
