/* Operations of the program: their begin, their end, and their waits. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "endpoint.h"
#include "pool.h"

static struct pool ops;

struct op *dfi_op_new(struct endpoint *ep, bool receives, uint64_t flags, void *context)
{
	struct op *op = pool_get(&ops, sizeof(*op));

	if (!op)
		return NULL;
	*op = (struct op){
		.ep = ep,
		.id = ++ep->next_id,
		.flags = flags,
		.receives = receives,
		.report = true,
		.context = context,
	};
	list_init(&op->place);
	ep->under_way[receives]++;
	return op;
}

static void free_if_idle(struct op *op)
{
	if (op->ended && !op->refs)
		pool_put(&ops, op);
}

void dfi_op_put(struct op *op)
{
	op->refs--;
	free_if_idle(op);
}

void dfi_op_cancel(struct op *op)
{
	list_remove(&op->place);
	op->ep->under_way[op->receives]--;
	pool_put(&ops, op);
}

struct op *dfi_op_answered(struct domain *domain, const struct peer *peer, uint64_t id)
{
	if (!domain->ep)
		return NULL;
	list_each(item, following, &domain->ep->answered_later) {
		struct op *op = member_of(item, struct op, place);

		if (op->id == id && op->peer == peer)
			return op;
	}
	return NULL;
}

static struct counter *counter_of(const struct op *op)
{
	enum counted kind = op->receives	   ? COUNT_RECEIVE
			    : op->flags & FI_READ  ? COUNT_READ
			    : op->flags & FI_WRITE ? COUNT_WRITE
						   : COUNT_SEND;

	return op->ep->counters[kind];
}

void dfi_op_end_receive(struct op *op, const struct fi_cq_err_entry *entry, fi_addr_t source)
{
	struct queue *queue = op->receives ? op->ep->receive : op->ep->transmit;
	struct counter *counter = counter_of(op);

	if (op->ended)
		return;
	op->ended = true;
	list_remove(&op->place);
	op->ep->under_way[op->receives]--;
	if (counter) {
		counter->value += !entry->err;
		counter->errors += !!entry->err;
	}
	/* The program cannot tell which injected operation an entry without context belongs to, and
	 * Open MPI follows the empty pointer. Its next call for this peer gets the error. */
	if (queue && (op->report || (entry->err && op->context)))
		dfi_queue_report(queue, entry, source);
	free_if_idle(op);
}

void dfi_op_end(struct op *op, size_t length, int error)
{
	const struct fi_cq_err_entry entry = {
		.op_context = op->context,
		.flags = op->flags,
		.len = error ? 0 : length,
		.tag = op->tag,
		.err = error,
		.prov_errno = error,
	};
	bool held = op->hold.region || op->hold.kept || op->hold.bounce;
	struct domain *domain = op->ep->domain;

	if (op->ended)
		return;
	if (error)
		dfi_give_up(&op->hold);
	if (held)
		dfi_release(domain, &op->hold, &op->pieces,
			    op->flags & (FI_RECV | FI_READ) && !error ? length : 0);
	dfi_op_end_receive(op, &entry, FI_ADDR_NOTAVAIL);
	if (held)
		dfi_ops_retry(domain);
}

void dfi_op_wait_for_region(struct op *op)
{
	list_remove(&op->place);
	list_append(&op->ep->domain->short_of_regions, &op->place);
}

void dfi_ops_retry(struct domain *domain)
{
	struct list waiting;

	if (list_empty(&domain->short_of_regions))
		return;
	/* Those that have to wait again go to the end of the emptied list. */
	waiting = domain->short_of_regions;
	waiting.next->prev = waiting.prev->next = &waiting;
	list_init(&domain->short_of_regions);
	while (!list_empty(&waiting)) {
		struct op *op = member_of(waiting.next, struct op, place);

		list_remove(&op->place);
		op->again(op);
	}
}
