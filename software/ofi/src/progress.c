/* Progress: ends of commands, messages of peers, and peers that are silent. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "charge.h"
#include "coalesce.h"
#include "direct.h"
#include "domain.h"
#include "endpoint.h"
#include "errors.h"
#include "offer.h"
#include "progress.h"
#include "ring.h"

#define BATCH	    16
#define SHORTEST_NS 1000u
#define LONGEST_NS  64000u
/* A wait for one domain delays the others of the process. So if several have exchanged messages,
 * waits are short, and a domain that has not lets the others have the time. */
#define OF_MANY_NS 200u
#define IDLE_NS	   50u
#define SKIPPED	   8u /* one look of so many at such a domain */

/* Domains of this process that have exchanged messages. */
static unsigned int busy_domains;

static int poll_only;

__attribute__((visibility("default"))) void dibber_fi_poll_only(int on)
{
	__atomic_store_n(&poll_only, on, __ATOMIC_RELAXED);
}

static bool is_busy(const struct domain *domain)
{
	for (unsigned int i = 0; i < PEERS / 64; i++)
		if (domain->active[i])
			return true;
	return domain->under_way > 0;
}

static void count_if_busy(struct domain *domain)
{
	if (domain->busy || !is_busy(domain))
		return;
	domain->busy = true;
	busy_domains++;
}

void dfi_progress_end(struct domain *domain)
{
	busy_domains -= domain->busy;
	domain->busy = false;
}

static uint64_t longest_wait(const struct domain *domain)
{
	if (domain->busy)
		return busy_domains > 1 ? OF_MANY_NS : LONGEST_NS;
	if (!busy_domains)
		return LONGEST_NS;
	/* A look that is charged takes time by itself. */
	return dfi_charges() ? 0 : IDLE_NS;
}

void dfi_progress_alert(struct domain *domain)
{
	domain->patience_ns = SHORTEST_NS;
}

static void activate(struct domain *domain, const struct dib_event *event)
{
	if (event->notice < PEERS)
		domain->active[event->notice / 64] |= UINT64_C(1) << event->notice % 64;
	if (event->overruns == domain->overruns)
		return;
	/* Events were lost, so any peer may have sent. */
	domain->overruns = event->overruns;
	for (unsigned int i = 0; i < PEERS / 64; i++)
		domain->active[i] = UINT64_MAX;
}

static int take_events(struct domain *domain)
{
	struct dib_event events[BATCH];
	int count;

	do {
		count = dib_poll_events(domain->endpoint, events, BATCH);
		for (int i = 0; i < count; i++)
			activate(domain, &events[i]);
	} while (count == BATCH);
	return count;
}

static void look_at_rings(struct domain *domain)
{
	for (unsigned int i = 0; i < PEERS / 64; i++)
		for (uint64_t left = domain->active[i]; left; left &= left - 1)
			dfi_ring_look(domain,
				      &domain->peers[i * 64 + (unsigned int)__builtin_ctzll(left)]);
}

/* The card's endpoint does not work any more: all that is under way ends. */
static int break_off(struct domain *domain, int error)
{
	if (!domain->broken)
		domain->broken = error;
	FI_WARN(&dfi_provider, FI_LOG_EP_DATA, "the endpoint has ended: %s\n", dib_last_reason());
	dfi_coalesce_flush(domain);
	dfi_commands_drop(domain);
	for (unsigned int i = 0; i < PEERS; i++)
		if (domain->peers[i].known && !domain->peers[i].error)
			dfi_peer_lost(domain, &domain->peers[i], domain->broken);
	return -domain->broken;
}

/* Rings are read after a call of the library that found something or let time go on. So bytes that
 * a simulated card sends by message, ahead of a message in a ring, are there before it is seen. */
static int progress(struct domain *domain, uint64_t wait_ns)
{
	int ends = 0, rc;

	dfi_charge_pay(domain->endpoint);
	rc = dib_wait(domain->endpoint, wait_ns);
	/* Programs look all the time. So the look that the wait stands for ends first, and another
	 * one finds what came. */
	dfi_charge(CHARGE_LOOK, 1);
	if (rc == 0) {
		if (domain->patience_ns < LONGEST_NS)
			domain->patience_ns *= 2;
		dfi_peers_silent(domain, wait_ns);
		return 0;
	}
	if (rc > 0)
		rc = ends = dfi_commands_poll(domain);
	if (rc >= 0 && !ends)
		rc = take_events(domain);
	if (rc < 0)
		return break_off(domain, -dfi_error(rc));
	dfi_progress_alert(domain);
	look_at_rings(domain);
	return 0;
}

/* A domain without messages is looked at now and then, where another one has messages. */
static bool is_left_out(struct domain *domain)
{
	if (domain->busy || !busy_domains || !dfi_charges())
		return false;
	if (++domain->skipped < SKIPPED)
		return true;
	domain->skipped = 0;
	return false;
}

int dfi_progress(struct domain *domain, bool may_wait)
{
	uint64_t wait_ns;
	int rc;

	if (domain->broken)
		return -domain->broken;
	if (domain->in_progress)
		return 0;
	count_if_busy(domain);
	if (is_left_out(domain)) {
		dfi_charge(CHARGE_GLANCE, 1);
		return 0;
	}
	wait_ns = longest_wait(domain);
	if (domain->patience_ns < wait_ns)
		wait_ns = domain->patience_ns;
	if (__atomic_load_n(&poll_only, __ATOMIC_RELAXED))
		may_wait = false;
	dfi_direct_progress(domain);
	domain->in_progress = true;
	if (dfi_coalesce_progress(domain))
		may_wait = false;
	dfi_commands_push(domain);
	rc = progress(domain, may_wait ? wait_ns : 0);
	if (!rc && domain->broken)
		rc = break_off(domain, domain->broken);
	domain->in_progress = false;
	return rc;
}
