/* What the provider offers, and whether that is what a program asks for. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>
#include <string.h>

#include "card.h"
#include "endpoint.h"
#include "info.h"
#include "message.h"
#include "ring.h"

#define FABRIC "dibber"
#define DOMAIN "dibber0"

#define TRANSMIT_CAPS (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ | FI_WRITE)
#define RECEIVE_CAPS                                                                            \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | \
	 FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE)
#define DOMAIN_CAPS (FI_LOCAL_COMM | FI_REMOTE_COMM)
#define ALL_CAPS    (TRANSMIT_CAPS | RECEIVE_CAPS | DOMAIN_CAPS)

/* A program that asks for one of these gets, unless it narrows them, all that belongs to it. */
#define TWO_SIDED  (FI_MSG | FI_TAGGED)
#define ONE_SIDED  (FI_RMA | FI_ATOMIC)
#define SEND_RECV  (FI_SEND | FI_RECV)
#define READ_WRITE (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

#define TRANSMIT_FLAGS                                                           \
	(FI_INJECT | FI_COMPLETION | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
	 FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)
#define RECEIVE_FLAGS (FI_COMPLETION | FI_MULTI_RECV)

/* Atomics are messages, so those of one peer are executed in their order. */
#define ORDER                                                                             \
	(FI_ORDER_SAS | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | \
	 FI_ORDER_ATOMIC_WAW)
#define TAG_FORMAT UINT64_C(0xaaaaaaaaaaaaaaaa)
#define REGIONS	   48u /* of the card's 64, for the regions of a program */

/* The caller's capabilities with those that they imply. */
static uint64_t complete(uint64_t caps)
{
	if (caps & TWO_SIDED && !(caps & SEND_RECV))
		caps |= SEND_RECV;
	if (caps & ONE_SIDED && !(caps & READ_WRITE))
		caps |= READ_WRITE;
	return caps | DOMAIN_CAPS;
}

/* Keys are the card's where the program takes them, else its own. */
static int mr_mode_of(const struct fi_info *hints)
{
	if (!hints || !hints->domain_attr)
		return FI_MR_PROV_KEY;
	return hints->domain_attr->mr_mode & FI_MR_PROV_KEY;
}

static bool is_within(uint64_t asked, uint64_t offered)
{
	return (asked & ~offered) == 0;
}

static bool name_fits(const char *asked, const char *offered)
{
	return !asked || strcmp(asked, offered) == 0;
}

static bool endpoint_fits(const struct fi_ep_attr *ep)
{
	return !ep || ((ep->type == FI_EP_UNSPEC || ep->type == FI_EP_RDM) &&
		       ep->max_msg_size <= MESSAGE_LIMIT && !ep->msg_prefix_size &&
		       !ep->max_order_raw_size && !ep->max_order_war_size &&
		       !ep->max_order_waw_size && ep->tx_ctx_cnt <= 1 && ep->rx_ctx_cnt <= 1 &&
		       !ep->auth_key_size && ep->protocol == FI_PROTO_UNSPEC);
}

static bool transmit_fits(const struct fi_tx_attr *tx)
{
	return !tx || (is_within(tx->caps, TRANSMIT_CAPS | RECEIVE_CAPS | DOMAIN_CAPS) &&
		       is_within(tx->op_flags, TRANSMIT_FLAGS) && is_within(tx->msg_order, ORDER) &&
		       tx->inject_size <= PAYLOAD_BYTES && tx->size <= OPERATIONS &&
		       tx->iov_limit <= IOV_LIMIT && tx->rma_iov_limit <= 1);
}

static bool receive_fits(const struct fi_rx_attr *rx)
{
	return !rx || (is_within(rx->caps, TRANSMIT_CAPS | RECEIVE_CAPS | DOMAIN_CAPS) &&
		       is_within(rx->op_flags, RECEIVE_FLAGS) && is_within(rx->msg_order, ORDER) &&
		       rx->iov_limit <= IOV_LIMIT);
}

static bool domain_fits(const struct fi_domain_attr *d)
{
	return !d || (name_fits(d->name, DOMAIN) && d->control_progress != FI_PROGRESS_AUTO &&
		      d->data_progress != FI_PROGRESS_AUTO && d->cq_data_size <= 8 &&
		      d->ep_cnt <= 1 && d->mr_iov_limit <= 1 && d->mr_cnt <= REGIONS &&
		      is_within(d->caps, DOMAIN_CAPS) && !d->auth_key_size);
}

/* FI_MR_BASIC and FI_MR_SCALABLE of former versions: addresses of a basic region are virtual, which
 * the card's are not. */
#define OLD_BASIC    1
#define OLD_SCALABLE 2

static bool regions_fit(const struct fi_info *hints)
{
	int mode = hints->domain_attr ? hints->domain_attr->mr_mode : 0;

	return mode != OLD_BASIC || !(hints->caps & ONE_SIDED);
}

static bool told(bool good, const char *what)
{
	if (!good)
		FI_INFO(&dfi_provider, FI_LOG_CORE, "the program asks for other %s\n", what);
	return good;
}

static bool fits(const struct fi_info *hints)
{
	return told(is_within(hints->caps, ALL_CAPS), "capabilities") &&
	       told(hints->addr_format == FI_FORMAT_UNSPEC && !hints->src_addr &&
			    (!hints->dest_addr || hints->dest_addrlen == ADDRESS_BYTES),
		    "addresses") &&
	       told(endpoint_fits(hints->ep_attr), "attributes of endpoints") &&
	       told(transmit_fits(hints->tx_attr), "attributes of sending") &&
	       told(receive_fits(hints->rx_attr), "attributes of receiving") &&
	       told(domain_fits(hints->domain_attr) &&
			    (!hints->fabric_attr || name_fits(hints->fabric_attr->name, FABRIC)),
		    "attributes of domains") &&
	       told(regions_fit(hints), "modes of regions");
}

static void fill_endpoint(struct fi_info *info, const struct fi_info *hints)
{
	info->ep_attr->type = FI_EP_RDM;
	info->ep_attr->protocol = FI_PROTO_UNSPEC;
	info->ep_attr->protocol_version = 1;
	info->ep_attr->max_msg_size = MESSAGE_LIMIT;
	info->ep_attr->mem_tag_format = hints && hints->ep_attr && hints->ep_attr->mem_tag_format
						? hints->ep_attr->mem_tag_format
						: TAG_FORMAT;
	info->ep_attr->tx_ctx_cnt = 1;
	info->ep_attr->rx_ctx_cnt = 1;
}

static void fill_contexts(struct fi_info *info, const struct fi_info *hints)
{
	info->tx_attr->caps = info->caps & TRANSMIT_CAPS;
	info->tx_attr->op_flags = hints && hints->tx_attr ? hints->tx_attr->op_flags : 0;
	info->tx_attr->msg_order = ORDER;
	info->tx_attr->comp_order = 0;
	info->tx_attr->inject_size = PAYLOAD_BYTES;
	info->tx_attr->size = OPERATIONS;
	info->tx_attr->iov_limit = IOV_LIMIT;
	info->tx_attr->rma_iov_limit = 1;
	info->rx_attr->caps = info->caps & RECEIVE_CAPS;
	info->rx_attr->op_flags = hints && hints->rx_attr ? hints->rx_attr->op_flags : 0;
	info->rx_attr->msg_order = ORDER;
	info->rx_attr->comp_order = 0;
	info->rx_attr->size = OPERATIONS;
	info->rx_attr->iov_limit = IOV_LIMIT;
}

static int fill_domain(struct fi_info *info, const struct fi_info *hints)
{
	const struct fi_domain_attr *asked = hints ? hints->domain_attr : NULL;
	struct fi_domain_attr *d = info->domain_attr;

	d->name = strdup(DOMAIN);
	/* Any thread may make any call, so a weaker promise holds too. MPICH takes no other level
	 * than the one it asks for. */
	d->threading =
		asked && asked->threading != FI_THREAD_UNSPEC ? asked->threading : FI_THREAD_SAFE;
	d->control_progress = FI_PROGRESS_MANUAL;
	d->data_progress = FI_PROGRESS_MANUAL;
	d->resource_mgmt = FI_RM_ENABLED;
	d->av_type = asked && asked->av_type != FI_AV_UNSPEC ? asked->av_type : FI_AV_TABLE;
	d->mr_mode = mr_mode_of(hints);
	d->mr_key_size = 8;
	d->cq_data_size = 8;
	d->cq_cnt = 1024;
	d->ep_cnt = 1;
	d->tx_ctx_cnt = 1;
	d->rx_ctx_cnt = 1;
	d->max_ep_tx_ctx = 1;
	d->max_ep_rx_ctx = 1;
	d->cntr_cnt = 1024;
	d->mr_iov_limit = 1;
	d->mr_cnt = REGIONS;
	d->caps = DOMAIN_CAPS;
	return d->name ? 0 : -FI_ENOMEM;
}

static int fill(struct fi_info *info, const struct fi_info *hints)
{
	info->caps = hints && hints->caps ? complete(hints->caps) : ALL_CAPS;
	info->addr_format = FI_FORMAT_UNSPEC;
	fill_endpoint(info, hints);
	fill_contexts(info, hints);
	info->fabric_attr->name = strdup(FABRIC);
	info->fabric_attr->prov_version = FI_VERSION(0, 1);
	if (hints && hints->dest_addr) {
		info->dest_addr = malloc(ADDRESS_BYTES);
		if (!info->dest_addr)
			return -FI_ENOMEM;
		memcpy(info->dest_addr, hints->dest_addr, ADDRESS_BYTES);
		info->dest_addrlen = ADDRESS_BYTES;
	}
	return info->fabric_attr->name ? fill_domain(info, hints) : -FI_ENOMEM;
}

int dfi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **out)
{
	struct fi_info *info;
	int rc;

	(void)flags;
	/* Addresses come from the endpoints themselves; there are no names of hosts or services. */
	if (FI_VERSION_LT(version, FI_VERSION(1, 5)) || node || service || !dfi_card_is_named() ||
	    (hints && !fits(hints)))
		return -FI_ENODATA;
	info = fi_allocinfo();
	if (!info)
		return -FI_ENOMEM;
	rc = fill(info, hints);
	if (rc) {
		fi_freeinfo(info);
		return rc;
	}
	*out = info;
	return 0;
}
