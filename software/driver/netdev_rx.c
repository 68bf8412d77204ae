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

static void wrong_notice(struct dibber_net_queue *queue, u32 node, u32 notice)
{
	dibber_net_tally(queue, notices_wrong);
	dibber_complain(queue->net->card, "node %u: its network device sent notice 0x%x\n", node,
			notice);
	dibber_net_fail(queue->net, node);
}

/* With the lock. Only a notice of the peer's own ring has its key: the card says which it was. */
static void take_event(struct dibber_net_queue *queue, const struct dibber_queue_entry *event)
{
	struct dibber_net_peer *peer;
	struct dibber_net_way *way;
	u32 notice = event->cookie;
	u64 position;

	dibber_net_tally(queue, events);
	if (event->overruns != queue->lost_events) {
		dibber_net_add_to(queue, events_lost, event->overruns - queue->lost_events);
		queue->lost_events = event->overruns;
	}
	if (event->kind != DIBBER_ENTRY_NOTICE || event->node >= DIBBER_NODES)
		goto foreign;
	way = &queue->ways[event->node];
	if (way->state == DIBBER_NET_ABSENT || event->key != way->own_key)
		goto foreign;
	peer = &queue->net->peers[event->node];
	if (READ_ONCE(peer->failed))
		return;
	if (!READ_ONCE(peer->heard)) {
		WRITE_ONCE(peer->heard_at, jiffies);
		/* The time comes first; look_after() reads it behind this. */
		smp_store_release(&peer->heard, true);
		dibber_net_kick(queue->net);
	}
	switch (notice & DIBBER_NET_NOTICE_KIND) {
	case DIBBER_NET_TAIL:
		position = position_of(way->tail, notice);
		if (position - way->head > DIBBER_NET_RING)
			return wrong_notice(queue, event->node, notice);
		way->tail = position;
		return;
	case DIBBER_NET_CREDIT:
		dibber_net_tally(queue, credits_received);
		position = position_of(way->credited, notice);
		if (position > way->sent)
			return wrong_notice(queue, event->node, notice);
		way->credited = position;
		return;
	default:
		return wrong_notice(queue, event->node, notice);
	}
foreign:
	dibber_net_tally(queue, events_foreign);
}

/* Frames --------------------------------------------------------------------------------------- */

/* A frame of so many bytes, which still have to be copied. */
static struct sk_buff *make_frame(struct dibber_net_queue *queue, u32 length)
{
	struct sk_buff *skb;
	int error;

	if (length <= SHORT_FRAME) {
		skb = napi_alloc_skb(&queue->napi, length);
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
	skb->dev = queue->net->dev;
	return skb;
}

static void deliver(struct dibber_net_queue *queue, const struct dibber_net_header *header,
		    const void *bytes)
{
	struct virtio_net_hdr offload = header->offload;
	u32 length = le32_to_cpu(header->length);
	struct sk_buff *skb = make_frame(queue, length);
	struct net_device *dev = queue->net->dev;

	if (!skb) {
		dibber_net_tally(queue, rx_dropped);
		return;
	}
	skb_store_bits(skb, 0, bytes, length);
	skb_reset_mac_header(skb);
	/* The link's CRC covers the frame; what is left to compute is computed by who needs it. */
	offload.flags &= VIRTIO_NET_HDR_F_NEEDS_CSUM;
	if (virtio_net_hdr_to_skb(skb, &offload, true)) {
		dibber_net_tally(queue, rx_frame_errors);
		kfree_skb(skb);
		return;
	}
	dibber_net_tally(queue, rx_packets);
	dibber_net_add_to(queue, rx_bytes, length);
	skb_record_rx_queue(skb, queue->index);
	skb->protocol = eth_type_trans(skb, dev);
	napi_gro_receive(&queue->napi, skb);
}

static void wrong_record(struct dibber_net_queue *queue, u32 node,
			 const struct dibber_net_header *header)
{
	dibber_net_tally(queue, records_wrong);
	dibber_complain(queue->net->card,
			"node %u: its network device put a record 0x%llx of %u bytes at 0x%llx\n",
			node, le64_to_cpu(header->position), le32_to_cpu(header->length),
			queue->ways[node].head);
	dibber_net_fail(queue->net, node);
}

/* Take at most `budget` frames out of the peer's ring; returns how many there were. */
static int receive(struct dibber_net_queue *queue, u32 node, int budget)
{
	struct dibber_net_way *way = &queue->ways[node];
	const struct dibber_net_peer *peer = &queue->net->peers[node];
	const u32 room = DIBBER_NET_RING;
	int count = 0;

	while (count < budget && way->head != way->tail && !READ_ONCE(peer->failed)) {
		u32 at = way->head & (room - 1);
		u64 there = way->tail - way->head;
		struct dibber_net_header header;
		u32 length, bytes;

		memcpy(&header, way->ring + at, sizeof(header));
		/* From here on the header is the copy, whatever the peer writes there. */
		barrier();
		length = le32_to_cpu(header.length);
		bytes = DIBBER_NET_RECORD(length);
		if (le64_to_cpu(header.position) != way->head) {
			/* Records do not go round the end: the next one is at the beginning. */
			if (room - at >= DIBBER_NET_MAX_RECORD || room - at > there) {
				wrong_record(queue, node, &header);
				break;
			}
			WRITE_ONCE(way->head, way->head + room - at);
			continue;
		}
		if (length < ETH_HLEN || length > DIBBER_NET_MAX_FRAME || bytes > there ||
		    bytes > room - at) {
			wrong_record(queue, node, &header);
			break;
		}
		dibber_net_tally(queue, records_received);
		deliver(queue, &header, way->ring + at + sizeof(header));
		WRITE_ONCE(way->head, way->head + bytes);
		count++;
	}
	return count;
}

/* A peer hears of a quarter of its ring at a time. False: no slot was free. */
static bool give_credits(struct dibber_net_queue *queue)
{
	u32 node;

	for (node = 0; node < DIBBER_NODES; node++) {
		struct dibber_net_way *way = &queue->ways[node];

		if (way->state != DIBBER_NET_UP || READ_ONCE(queue->net->peers[node].failed) ||
		    way->head - way->credit_told < DIBBER_NET_RING / 4)
			continue;
		if (!dibber_net_send_credit(queue, node))
			return false;
		dibber_net_tally(queue, credits_sent);
	}
	return true;
}

int dibber_net_poll(struct napi_struct *napi, int budget)
{
	struct dibber_net_queue *queue = container_of(napi, struct dibber_net_queue, napi);
	struct dibber_queue_entry event;
	int count = 0, events = 0;
	bool again;
	u32 node;

	dibber_net_tally(queue, polls);
	spin_lock(&queue->lock);
	dibber_net_take_completions(queue);
	while (events < EVENTS_AT_ONCE && dibber_own_event(&queue->data, &event)) {
		take_event(queue, &event);
		events++;
	}
	dibber_net_maybe_wake(queue);
	spin_unlock(&queue->lock);

	for (node = 0; node < DIBBER_NODES && count < budget; node++) {
		if (queue->ways[node].state != DIBBER_NET_ABSENT)
			count += receive(queue, node, budget - count);
	}

	spin_lock(&queue->lock);
	/* Without a slot the credit goes when a completion comes, which need not interrupt. */
	again = !give_credits(queue) || events == EVENTS_AT_ONCE;
	spin_unlock(&queue->lock);
	if (again || count == budget)
		return budget;
	napi_complete_done(napi, count);
	return count;
}
