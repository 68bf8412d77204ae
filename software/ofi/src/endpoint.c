/* The fid_ep of a domain. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>
#include <string.h>

#include "av.h"
#include "direct.h"
#include "endpoint.h"
#include "match.h"
#include "progress.h"
#include "ring.h"

#define LINGER_NS 200000000u /* simulated time for messages and commands to end at a close */

int dfi_endpoint_ready(struct endpoint *ep, bool receives)
{
	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	if (ep->domain->broken)
		return -ep->domain->broken;
	if (ep->under_way[receives] >= OPERATIONS && !receives) {
		dfi_progress(ep->domain, false);
		return ep->under_way[receives] >= OPERATIONS ? -FI_EAGAIN : 0;
	}
	return 0;
}

struct peer *dfi_endpoint_peer(struct endpoint *ep, fi_addr_t address)
{
	return ep->av ? dfi_av_peer(ep->av, address) : NULL;
}

static struct endpoint *endpoint_of(fid_t fid)
{
	return member_of(fid, struct endpoint, fid.fid);
}

/* Options -------------------------------------------------------------------------------------- */

static ssize_t endpoint_cancel(fid_t fid, void *context)
{
	dfi_enter();
	dfi_match_cancel(endpoint_of(fid), context);
	dfi_leave();
	return 0;
}

static int endpoint_getopt(fid_t fid, int level, int name, void *value, size_t *length)
{
	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (*length < sizeof(size_t))
		return -FI_ETOOSMALL;
	memcpy(value, &endpoint_of(fid)->min_multi_recv, sizeof(size_t));
	*length = sizeof(size_t);
	return 0;
}

static int endpoint_setopt(fid_t fid, int level, int name, const void *value, size_t length)
{
	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (length != sizeof(size_t))
		return -FI_EINVAL;
	dfi_enter();
	memcpy(&endpoint_of(fid)->min_multi_recv, value, sizeof(size_t));
	dfi_leave();
	return 0;
}

static int no_transmit_context(struct fid_ep *fid, int index, struct fi_tx_attr *attr,
			       struct fid_ep **ep, void *context)
{
	(void)fid, (void)index, (void)attr, (void)ep, (void)context;
	return -FI_ENOSYS;
}

static int no_receive_context(struct fid_ep *fid, int index, struct fi_rx_attr *attr,
			      struct fid_ep **ep, void *context)
{
	(void)fid, (void)index, (void)attr, (void)ep, (void)context;
	return -FI_ENOSYS;
}

static ssize_t no_size_left(struct fid_ep *fid)
{
	(void)fid;
	return -FI_ENOSYS;
}

static struct fi_ops_ep endpoint_ops = {
	.size = sizeof(endpoint_ops),
	.cancel = endpoint_cancel,
	.getopt = endpoint_getopt,
	.setopt = endpoint_setopt,
	.tx_ctx = no_transmit_context,
	.rx_ctx = no_receive_context,
	.rx_size_left = no_size_left,
	.tx_size_left = no_size_left,
};

/* Name ----------------------------------------------------------------------------------------- */

static int endpoint_getname(fid_t fid, void *address, size_t *length)
{
	struct endpoint *ep = endpoint_of(fid);
	size_t room = *length;
	uint8_t name[ADDRESS_BYTES];

	dfi_address_pack(name, ep->domain->card.node, ep->domain->number,
			 dib_key(ep->domain->inbox_region));
	*length = sizeof(name);
	if (room < sizeof(name))
		return -FI_ETOOSMALL;
	memcpy(address, name, sizeof(name));
	return 0;
}

static int no_setname(fid_t fid, void *address, size_t length)
{
	(void)fid, (void)address, (void)length;
	return -FI_ENOSYS;
}

static int no_peer(struct fid_ep *fid, void *address, size_t *length)
{
	(void)fid, (void)address, (void)length;
	return -FI_ENOSYS;
}

static int no_connect(struct fid_ep *fid, const void *address, const void *parameter, size_t length)
{
	(void)fid, (void)address, (void)parameter, (void)length;
	return -FI_ENOSYS;
}

static int no_listen(struct fid_pep *fid)
{
	(void)fid;
	return -FI_ENOSYS;
}

static int no_accept(struct fid_ep *fid, const void *parameter, size_t length)
{
	(void)fid, (void)parameter, (void)length;
	return -FI_ENOSYS;
}

static int no_reject(struct fid_pep *fid, fid_t handle, const void *parameter, size_t length)
{
	(void)fid, (void)handle, (void)parameter, (void)length;
	return -FI_ENOSYS;
}

static int no_shutdown(struct fid_ep *fid, uint64_t flags)
{
	(void)fid, (void)flags;
	return -FI_ENOSYS;
}

static int no_join(struct fid_ep *fid, const void *address, uint64_t flags, struct fid_mc **mc,
		   void *context)
{
	(void)fid, (void)address, (void)flags, (void)mc, (void)context;
	return -FI_ENOSYS;
}

static struct fi_ops_cm name_ops = {
	.size = sizeof(name_ops),
	.setname = no_setname,
	.getname = endpoint_getname,
	.getpeer = no_peer,
	.connect = no_connect,
	.listen = no_listen,
	.accept = no_accept,
	.reject = no_reject,
	.shutdown = no_shutdown,
	.join = no_join,
};

/* Opening and closing -------------------------------------------------------------------------- */

static void bind_queue(struct endpoint *ep, struct queue *queue, uint64_t flags)
{
	if (flags & FI_TRANSMIT) {
		ep->transmit = queue;
		ep->transmit_selective = flags & FI_SELECTIVE_COMPLETION;
	}
	if (flags & FI_RECV) {
		ep->receive = queue;
		ep->receive_selective = flags & FI_SELECTIVE_COMPLETION;
	}
}

static int bind_counter(struct endpoint *ep, struct counter *counter, uint64_t flags)
{
	if (flags & (FI_REMOTE_READ | FI_REMOTE_WRITE))
		return -FI_ENOSYS;
	if (flags & FI_SEND)
		ep->counters[COUNT_SEND] = counter;
	if (flags & FI_RECV)
		ep->counters[COUNT_RECEIVE] = counter;
	if (flags & FI_READ)
		ep->counters[COUNT_READ] = counter;
	if (flags & FI_WRITE)
		ep->counters[COUNT_WRITE] = counter;
	return 0;
}

static int endpoint_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct endpoint *ep = endpoint_of(fid);

	switch (other->fclass) {
	case FI_CLASS_AV:
		ep->av = member_of(other, struct av, fid.fid);
		return ep->av->domain == ep->domain ? 0 : -FI_EINVAL;
	case FI_CLASS_CQ: {
		struct queue *queue = member_of(other, struct queue, fid.fid);

		if (queue->domain != ep->domain)
			return -FI_EINVAL;
		bind_queue(ep, queue, flags);
		return 0;
	}
	case FI_CLASS_CNTR:
		return bind_counter(ep, member_of(other, struct counter, fid.fid), flags);
	case FI_CLASS_EQ:
		return 0; /* no event ever comes */
	default:
		return -FI_EINVAL;
	}
}

static int endpoint_control(struct fid *fid, int command, void *argument)
{
	struct endpoint *ep = endpoint_of(fid);

	(void)argument;
	if (command != FI_ENABLE)
		return -FI_ENOSYS;
	if (!ep->av)
		return -FI_ENOAV;
	if (!ep->transmit && !ep->receive && !ep->counters[COUNT_SEND] &&
	    !ep->counters[COUNT_RECEIVE] && !ep->counters[COUNT_READ] && !ep->counters[COUNT_WRITE])
		return -FI_ENOCQ;
	ep->enabled = true;
	dfi_direct_begin(ep->domain);
	return 0;
}

static bool has_work(const struct domain *domain)
{
	if (domain->broken)
		return false;
	if (domain->under_way || !list_empty(&domain->waiting))
		return true;
	for (unsigned int i = 0; i < PEERS; i++)
		if (!domain->peers[i].error && !list_empty(&domain->peers[i].outgoing))
			return true;
	return false;
}

/* Let what was sent without a completion arrive. A peer that takes nothing ends the wait. */
static void linger(struct domain *domain)
{
	struct dib_clock begin, now;

	if (dib_clock_now(domain->endpoint, &begin))
		return;
	while (has_work(domain)) {
		dfi_progress(domain, true);
		if (dib_clock_now(domain->endpoint, &now) ||
		    (now.now_ps - begin.now_ps) / 1000u > LINGER_NS)
			return;
	}
}

static void free_ops(struct list *ops)
{
	while (!list_empty(ops)) {
		struct op *op = member_of(ops->next, struct op, place);

		list_remove(&op->place);
		dfi_op_end(op, 0, FI_ECANCELED);
	}
}

static int endpoint_close(struct fid *fid)
{
	struct endpoint *ep = endpoint_of(fid);
	struct domain *domain = ep->domain;

	dfi_enter();
	linger(domain);
	for (unsigned int i = 0; i < PEERS; i++)
		if (domain->peers[i].known && !domain->peers[i].self && domain->peers[i].greeted)
			dfi_ring_close(domain, &domain->peers[i]);
	linger(domain);
	/* What is left is not reported: its queues are the program's to close. */
	ep->transmit = ep->receive = NULL;
	memset(ep->counters, 0, sizeof(ep->counters));
	free_ops(&ep->posted[0]);
	free_ops(&ep->posted[1]);
	free_ops(&ep->answered_later);
	free_ops(&domain->short_of_regions);
	if (!domain->broken)
		domain->broken = FI_ESHUTDOWN;
	for (unsigned int i = 0; i < PEERS; i++) {
		if (!domain->peers[i].error)
			domain->peers[i].error = FI_ESHUTDOWN;
		dfi_ring_drop(domain, &domain->peers[i]);
	}
	dfi_domain_stop(domain);
	dfi_match_drop(ep);
	domain->ep = NULL;
	domain->users--;
	dfi_leave();
	free(ep);
	return 0;
}

static struct fi_ops fid_ops = {
	.size = sizeof(fid_ops),
	.close = endpoint_close,
	.bind = endpoint_bind,
	.control = endpoint_control,
	.ops_open = dfi_no_ops_open,
};

int dfi_endpoint_open(struct fid_domain *fid, struct fi_info *info, struct fid_ep **out,
		      void *context)
{
	struct domain *domain = domain_of(fid);
	struct endpoint *ep;

	if (!info || !info->ep_attr || info->ep_attr->type != FI_EP_RDM)
		return -FI_EINVAL;
	if (domain->ep || domain->broken)
		return -FI_EBUSY; /* ep_cnt is 1 */
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	ep->fid.fid.fclass = FI_CLASS_EP;
	ep->fid.fid.context = context;
	ep->fid.fid.ops = &fid_ops;
	ep->fid.ops = &endpoint_ops;
	ep->fid.cm = &name_ops;
	ep->fid.msg = &dfi_message_ops;
	ep->fid.tagged = &dfi_tagged_ops;
	ep->fid.rma = &dfi_transfer_ops;
	ep->fid.atomic = &dfi_atomic_ops;
	ep->domain = domain;
	ep->caps = info->caps;
	ep->transmit_flags = info->tx_attr ? info->tx_attr->op_flags : 0;
	ep->receive_flags = info->rx_attr ? info->rx_attr->op_flags : 0;
	ep->min_multi_recv = 64;
	for (int tagged = 0; tagged < 2; tagged++) {
		list_init(&ep->posted[tagged]);
		list_init(&ep->unexpected[tagged]);
	}
	list_init(&ep->claimed);
	list_init(&ep->answered_later);
	dfi_enter();
	domain->ep = ep;
	domain->users++;
	dfi_leave();
	*out = &ep->fid;
	return 0;
}
