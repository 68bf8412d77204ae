/* Matching of messages with receives. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>
#include <string.h>

#include "charge.h"
#include "fetch.h"
#include "match.h"

struct unexpected {
	struct list place;
	struct arrival arrival;
	void *context; /* of the peek that claimed it */
	uint8_t bytes[];
};

static bool matches(const struct op *op, const struct arrival *arrival)
{
	return (!op->peer || op->peer == arrival->peer) &&
	       ((op->tag ^ arrival->tag) & ~op->ignore) == 0;
}

/* Give a message to a receive. Returns false without memory. */
static bool give(struct op *op, const struct arrival *arrival)
{
	struct op *target = op;

	if (op->multi) {
		target = dfi_fetch_part(op, arrival->length);
		if (!target)
			return false;
	}
	if (arrival->id)
		dfi_fetch_offer(target, arrival);
	else
		dfi_fetch_bytes(target, arrival);
	if (arrival->sender)
		dfi_op_end(arrival->sender, (size_t)arrival->length, 0);
	return true;
}

static struct op *posted_for(struct endpoint *ep, const struct arrival *arrival)
{
	list_each(item, following, &ep->posted[arrival->tagged]) {
		struct op *op = member_of(item, struct op, place);

		if (matches(op, arrival))
			return op;
	}
	return NULL;
}

bool dfi_match_arrival(struct endpoint *ep, const struct arrival *arrival)
{
	struct op *op = posted_for(ep, arrival);
	size_t kept = arrival->bytes ? (size_t)arrival->length : 0;
	struct unexpected *unexpected;

	if (op) {
		if (!op->multi)
			list_remove(&op->place);
		return give(op, arrival);
	}
	unexpected = malloc(sizeof(*unexpected) + kept);
	if (!unexpected)
		return false;
	unexpected->arrival = *arrival;
	unexpected->context = NULL;
	if (arrival->bytes) {
		if (kept)
			memcpy(unexpected->bytes, arrival->bytes, kept);
		dfi_charge_copy(kept);
		unexpected->arrival.bytes = unexpected->bytes;
	}
	list_append(&ep->unexpected[arrival->tagged], &unexpected->place);
	return true;
}

static struct unexpected *find(struct op *op, bool tagged)
{
	list_each(item, following, &op->ep->unexpected[tagged]) {
		struct unexpected *unexpected = member_of(item, struct unexpected, place);

		if (matches(op, &unexpected->arrival))
			return unexpected;
	}
	return NULL;
}

static void consume(struct op *op, struct unexpected *unexpected)
{
	list_remove(&unexpected->place);
	if (!give(op, &unexpected->arrival))
		dfi_peer_lost(op->ep->domain, unexpected->arrival.peer, FI_ENOMEM);
	free(unexpected);
}

void dfi_match_receive(struct op *op)
{
	bool tagged = op->flags & FI_TAGGED;
	struct unexpected *unexpected;

	if (!op->multi) {
		unexpected = find(op, tagged);
		if (unexpected)
			return consume(op, unexpected);
		if (op->peer && op->peer->error)
			return dfi_op_end(op, 0, op->peer->error);
	}
	list_append(&op->ep->posted[tagged], &op->place);
	/* A full one leaves the list, and may be gone. */
	while (op->multi && op->place.next != &op->place &&
	       (unexpected = find(op, tagged)) != NULL) {
		bool last = dfi_fetch_fills(op, unexpected->arrival.length);

		consume(op, unexpected);
		if (last)
			return;
	}
}

/* Looking -------------------------------------------------------------------------------------- */

static void report_look(struct op *op, const struct arrival *arrival)
{
	const struct fi_cq_err_entry entry = {
		.op_context = op->context,
		.flags = op->flags | (arrival->has_data ? FI_REMOTE_CQ_DATA : 0),
		.len = (size_t)arrival->length,
		.data = arrival->data,
		.tag = arrival->tag,
	};

	dfi_op_end_receive(op, &entry, arrival->peer->address);
}

static struct unexpected *claimed_by(struct op *op)
{
	list_each(item, following, &op->ep->claimed) {
		struct unexpected *unexpected = member_of(item, struct unexpected, place);

		if (unexpected->context == op->context)
			return unexpected;
	}
	return NULL;
}

static void discard(struct op *op, struct unexpected *unexpected)
{
	const struct arrival arrival = unexpected->arrival;

	list_remove(&unexpected->place);
	free(unexpected);
	if (arrival.id)
		dfi_fetch_answer(op->ep, arrival.peer, arrival.id, 0);
	if (arrival.sender)
		dfi_op_end(arrival.sender, (size_t)arrival.length, 0);
	report_look(op, &arrival);
}

void dfi_match_look(struct op *op, bool tagged, uint64_t flags)
{
	struct unexpected *unexpected = flags & FI_PEEK ? find(op, tagged) : claimed_by(op);

	if (!unexpected)
		return dfi_op_end(op, 0, FI_ENOMSG);
	if (flags & FI_DISCARD)
		return discard(op, unexpected);
	if (!(flags & FI_PEEK))
		return consume(op, unexpected);
	if (flags & FI_CLAIM) {
		list_remove(&unexpected->place);
		unexpected->context = op->context;
		list_append(&op->ep->claimed, &unexpected->place);
	}
	report_look(op, &unexpected->arrival);
}

/* Ends ----------------------------------------------------------------------------------------- */

void dfi_match_cancel(struct endpoint *ep, void *context)
{
	for (int tagged = 0; tagged < 2; tagged++)
		list_each(item, following, &ep->posted[tagged]) {
			struct op *op = member_of(item, struct op, place);

			if (op->context == context)
				return dfi_fetch_end_posted(op, FI_ECANCELED);
		}
}

void dfi_match_lost(struct endpoint *ep, struct peer *peer, int error, bool all)
{
	for (int tagged = 0; tagged < 2; tagged++)
		list_each(item, following, &ep->posted[tagged]) {
			struct op *op = member_of(item, struct op, place);

			if (op->peer == peer || (all && !op->peer))
				dfi_fetch_end_posted(op, error);
		}
}

static void drop(struct list *list)
{
	while (!list_empty(list)) {
		struct unexpected *unexpected = member_of(list->next, struct unexpected, place);

		list_remove(&unexpected->place);
		if (unexpected->arrival.sender)
			dfi_op_end(unexpected->arrival.sender, 0, FI_ECANCELED);
		free(unexpected);
	}
}

void dfi_match_drop(struct endpoint *ep)
{
	drop(&ep->unexpected[0]);
	drop(&ep->unexpected[1]);
	drop(&ep->claimed);
}
