// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * Receiving frames, by NAPI. A notice only says how far a peer has put records into its ring. What
 * the ring holds is copied before it is looked at, because the peer can change it at any time.
 */

#include "netdev.h"

#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>

#define EVENTS_AT_ONCE 256 /* anybody with a key of this node can send events */
#define SHORT_FRAME    512 /* bytes of the longest frame that gets no pages */
#define FRAME_HEAD     128 /* bytes of a longer frame that lie before its pages: its headers */
#define PAGES_ORDER    3

/* Events --------------------------------------------------------------------------------------- */

/* The position that a notice tells, which is `known` or at most 2^32 - 1 bytes behind it. */
static u64 position_of(u64 known, u32 notice)
{
	return known + ((notice & ~DIBBER_NET_NOTICE_KIND) - (u32)known);
}

static void wrong_notice(struct dibber_net *net, struct dibber_net_peer *peer, u32 notice)
{
	dibber_net_count(net, notices_wrong);
	dibber_complain(net->card, "node %td: its network device sent notice 0x%x\n",
			peer - net->peers, notice);
	dibber_net_fail(net, peer);
}

/* With the lock. Only a notice of the peer's own ring has its key: the card says which it was. */
static void take_event(struct dibber_net *net, const struct dibber_queue_entry *event)
{
	struct dibber_net_peer *peer;
	u32 notice = event->cookie;
	u64 position;

	dibber_net_count(net, events);
	if (event->overruns != net->lost_events) {
		net->counters[DIBBER_NET_events_lost] += event->overruns - net->lost_events;
		net->lost_events = event->overruns;
	}
	if (event->kind != DIBBER_ENTRY_NOTICE || event->node >= DIBBER_NODES)
		goto foreign;
	peer = &net->peers[event->node];
	if (peer->state == DIBBER_NET_ABSENT || event->key != peer->own_key)
		goto foreign;
	if (peer->failed)
		return;
	if (!peer->heard) {
		peer->heard = true;
		dibber_net_kick(net);
	}
	switch (notice & DIBBER_NET_NOTICE_KIND) {
	case DIBBER_NET_TAIL:
		position = position_of(peer->tail, notice);
		if (position - peer->head > DIBBER_NET_RING)
			return wrong_notice(net, peer, notice);
		peer->tail = position;
		return;
	case DIBBER_NET_CREDIT:
		dibber_net_count(net, credits_received);
		position = position_of(peer->credited, notice);
		if (position > peer->sent)
			return wrong_notice(net, peer, notice);
		peer->credited = position;
		return;
	default:
		return wrong_notice(net, peer, notice);
	}
foreign:
	dibber_net_count(net, events_foreign);
}

/* Frames --------------------------------------------------------------------------------------- */

/* A frame of so many bytes, which still have to be copied. */
static struct sk_buff *make_frame(struct dibber_net *net, u32 length)
{
	struct sk_buff *skb;
	int error;

	if (length <= SHORT_FRAME) {
		skb = napi_alloc_skb(&net->napi, length);
		if (skb)
			skb_put(skb, length);
		return skb;
	}
	skb = alloc_skb_with_frags(NET_SKB_PAD + NET_IP_ALIGN + FRAME_HEAD, length - FRAME_HEAD,
				   PAGES_ORDER, &error, GFP_ATOMIC | __GFP_NOWARN);
	if (!skb)
		return NULL;
	skb_reserve(skb, NET_SKB_PAD + NET_IP_ALIGN);
	skb_put(skb, FRAME_HEAD);
	skb->data_len = length - FRAME_HEAD;
	skb->len += skb->data_len;
	skb->dev = net->dev;
	return skb;
}

static void deliver(struct dibber_net *net, const struct dibber_net_header *header,
		    const void *bytes)
{
	struct virtio_net_hdr offload = header->offload;
	u32 length = le32_to_cpu(header->length);
	struct sk_buff *skb = make_frame(net, length);
	struct net_device *dev = net->dev;

	if (!skb) {
		dev->stats.rx_dropped++;
		return;
	}
	skb_store_bits(skb, 0, bytes, length);
	skb_reset_mac_header(skb);
	/* The link's CRC covers the frame; what is left to compute is computed by who needs it. */
	offload.flags &= VIRTIO_NET_HDR_F_NEEDS_CSUM;
	if (virtio_net_hdr_to_skb(skb, &offload, true)) {
		dev->stats.rx_frame_errors++;
		dev->stats.rx_errors++;
		kfree_skb(skb);
		return;
	}
	dev->stats.rx_packets++;
	dev->stats.rx_bytes += length;
	skb->protocol = eth_type_trans(skb, dev);
	napi_gro_receive(&net->napi, skb);
}

static void wrong_record(struct dibber_net *net, struct dibber_net_peer *peer,
			 const struct dibber_net_header *header)
{
	dibber_net_count(net, records_wrong);
	dibber_complain(net->card,
			"node %td: its network device put a record 0x%llx of %u bytes at 0x%llx\n",
			peer - net->peers, le64_to_cpu(header->position),
			le32_to_cpu(header->length), peer->head);
	dibber_net_fail(net, peer);
}

/* Take at most `budget` frames out of the peer's ring; returns how many there were. */
static int receive(struct dibber_net *net, struct dibber_net_peer *peer, int budget)
{
	const u32 room = DIBBER_NET_RING;
	int count = 0;

	while (count < budget && peer->head != peer->tail && !READ_ONCE(peer->failed)) {
		u32 at = peer->head & (room - 1);
		u64 there = peer->tail - peer->head;
		struct dibber_net_header header;
		u32 length, bytes;

		memcpy(&header, peer->ring + at, sizeof(header));
		/* From here on the header is the copy, whatever the peer writes there. */
		barrier();
		length = le32_to_cpu(header.length);
		bytes = DIBBER_NET_RECORD(length);
		if (le64_to_cpu(header.position) != peer->head) {
			/* Records do not go round the end: the next one is at the beginning. */
			if (room - at >= DIBBER_NET_MAX_RECORD || room - at > there) {
				wrong_record(net, peer, &header);
				break;
			}
			WRITE_ONCE(peer->head, peer->head + room - at);
			continue;
		}
		if (length < ETH_HLEN || length > DIBBER_NET_MAX_FRAME || bytes > there ||
		    bytes > room - at) {
			wrong_record(net, peer, &header);
			break;
		}
		dibber_net_count(net, records_received);
		deliver(net, &header, peer->ring + at + sizeof(header));
		WRITE_ONCE(peer->head, peer->head + bytes);
		count++;
	}
	return count;
}

/* A peer hears of a quarter of its ring at a time. False: no slot was free. */
static bool give_credits(struct dibber_net *net)
{
	u32 node;

	for (node = 0; node < DIBBER_NODES; node++) {
		struct dibber_net_peer *peer = &net->peers[node];

		if (peer->state != DIBBER_NET_UP || peer->failed ||
		    peer->head - peer->credit_told < DIBBER_NET_RING / 4)
			continue;
		if (!dibber_net_send_credit(net, node))
			return false;
		dibber_net_count(net, credits_sent);
	}
	return true;
}

int dibber_net_poll(struct napi_struct *napi, int budget)
{
	struct dibber_net *net = container_of(napi, struct dibber_net, napi);
	struct dibber_queue_entry event;
	int count = 0, events = 0;
	bool again;
	u32 node;

	dibber_net_count(net, polls);
	spin_lock(&net->lock);
	dibber_net_take_completions(net);
	while (events < EVENTS_AT_ONCE && dibber_own_event(&net->data, &event)) {
		take_event(net, &event);
		events++;
	}
	dibber_net_maybe_wake(net);
	spin_unlock(&net->lock);

	for (node = 0; node < DIBBER_NODES && count < budget; node++) {
		if (net->peers[node].state != DIBBER_NET_ABSENT)
			count += receive(net, &net->peers[node], budget - count);
	}

	spin_lock(&net->lock);
	/* Without a slot the credit goes when a completion comes, which need not interrupt. */
	again = !give_credits(net) || events == EVENTS_AT_ONCE;
	spin_unlock(&net->lock);
	if (again || count == budget)
		return budget;
	napi_complete_done(napi, count);
	return count;
}
