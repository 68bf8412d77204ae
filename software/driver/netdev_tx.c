// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * Sending frames: each is copied into the staging ring with its header, and put into the peer's
 * ring by one command. So a put that fails delivers nothing, and no notice.
 */

#include "netdev.h"

#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>

#define STAGING_BYTES  (512u << 10)
#define STAGING_ROOM   (STAGING_BYTES - DIBBER_NET_ALIGN) /* for frames */
#define RESERVED_SLOTS 4				  /* for credits and keepalives */
#define FULL_PATIENCE  (HZ / 2) /* how long a full peer stops the queue for all */
#define SCRATCH_BYTES  8	/* of a put that is there for its notice only */

static_assert(STAGING_ROOM >= 2 * DIBBER_NET_MAX_RECORD);
static_assert(STAGING_BYTES % DIBBER_NET_ALIGN == 0);
static_assert(DIBBER_NODES <= 64); /* a bit for each in receivers_of() */

/* Memory --------------------------------------------------------------------------------------- */

int dibber_net_tx_begin(struct dibber_net *net)
{
	int rc;

	net->staged = 0;
	net->unstaged = 0;
	net->waits_for = -1;
	net->lost_events = 0;
	net->staging = dma_alloc_coherent(&net->card->pdev->dev, STAGING_BYTES,
					  &net->staging_address, GFP_KERNEL);
	if (!net->staging)
		return -ENOMEM;
	rc = dibber_own_region_add(&net->data, net->staging_address, STAGING_BYTES,
				   DIBBER_RIGHT_LOCAL_READ, &net->staging_key);
	if (rc)
		net->staging_key = 0;
	return rc;
}

/* The data endpoint is closed, so the card reads nothing here any more. */
void dibber_net_tx_end(struct dibber_net *net)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(net->commands); i++) {
		dev_kfree_skb(net->commands[i].skb);
		net->commands[i].skb = NULL;
	}
	if (net->staging_key)
		dibber_own_region_remove(&net->data, net->staging_key);
	net->staging_key = 0;
	if (net->staging)
		dma_free_coherent(&net->card->pdev->dev, STAGING_BYTES, net->staging,
				  net->staging_address);
	net->staging = NULL;
}

/*
 * The place of a record of `bytes` in a ring of `room` bytes when `position` bytes were written so
 * far. A record does not go round the end: what is left there is skipped.
 */
static u64 place(u64 position, u32 room, u32 bytes)
{
	u32 left = room - (position & (room - 1));

	return left < bytes ? position + left : position;
}

static bool has_staging(const struct dibber_net *net, u32 bytes)
{
	return place(net->staged, STAGING_BYTES, bytes) + bytes - net->unstaged <= STAGING_ROOM;
}

static bool has_room(const struct dibber_net_peer *peer, u32 bytes)
{
	return place(peer->sent, peer->ring_bytes, bytes) + bytes - peer->credited <=
	       peer->ring_bytes;
}

/* Commands ------------------------------------------------------------------------------------- */

static void remember(struct dibber_net *net, u32 cookie, u32 node, struct sk_buff *skb)
{
	struct dibber_net_command *command = &net->commands[cookie & (net->card->slot_count - 1)];

	command->skb = skb;
	command->staged = net->staged;
	command->node = node;
	command->life = net->peers[node].life;
}

static void put_record(struct dibber_net *net, u32 node, u32 source, u32 target, u32 bytes,
		       u32 notice, u8 flags, struct sk_buff *skb)
{
	const struct dibber_net_peer *peer = &net->peers[node];
	struct dibber_command command = {
		.opcode = DIBBER_OPCODE_PUT,
		.flags = DIBBER_FLAG_NOTICE | DIBBER_FLAG_INTERRUPT | flags,
		.endpoint = peer->endpoint,
		.node = node,
		.length = bytes,
		.notice = notice,
		.target = { .key = peer->key, .block = bytes, .offset = target },
		.source = { .key = net->staging_key, .block = bytes, .offset = source },
	};

	remember(net, dibber_own_give(&net->data, &command), node, skb);
}

/*
 * Repeat the position behind the last record, in the lane of the records, so that the notice comes
 * behind them. The bytes go where nobody reads.
 */
bool dibber_net_send_tail(struct dibber_net *net, u32 node)
{
	const struct dibber_net_peer *peer = &net->peers[node];

	if (!dibber_own_room(&net->data))
		return false;
	put_record(net, node, 0, peer->ring_bytes, SCRATCH_BYTES, (u32)peer->sent | DIBBER_NET_TAIL,
		   DIBBER_FLAG_SOLICIT, NULL);
	dibber_own_ring(&net->data);
	return true;
}

bool dibber_net_send_credit(struct dibber_net *net, u32 node)
{
	struct dibber_net_peer *peer = &net->peers[node];
	u64 head = READ_ONCE(peer->head);
	struct dibber_inline_command command = {
		.key = peer->key,
		.block = SCRATCH_BYTES,
		.offset = peer->ring_bytes,
	};
	struct dibber_command *form = (struct dibber_command *)&command;

	if (!dibber_own_room(&net->data))
		return false;
	form->opcode = DIBBER_OPCODE_PUT_INLINE;
	form->flags = DIBBER_FLAG_NOTICE | DIBBER_FLAG_INTERRUPT;
	form->endpoint = peer->endpoint;
	form->node = node;
	form->length = SCRATCH_BYTES;
	form->notice = (u32)head | DIBBER_NET_CREDIT;
	remember(net, dibber_own_give(&net->data, form), node, NULL);
	dibber_own_ring(&net->data);
	peer->credit_told = head;
	return true;
}

void dibber_net_take_completions(struct dibber_net *net)
{
	struct dibber_queue_entry entry;
	unsigned int frames = 0, bytes = 0;
	u32 mask = net->card->slot_count - 1;
	u32 oldest = net->data.oldest;

	while (dibber_own_completion(&net->data, &entry)) {
		struct dibber_net_command *command = &net->commands[entry.cookie & mask];
		struct dibber_net_peer *peer = &net->peers[command->node];

		if (entry.status != DIBBER_STATUS_OK) {
			dibber_net_count(net, commands_failed);
			if (command->life == peer->life)
				dibber_net_fail(net, peer);
		}
		if (command->skb) {
			frames++;
			bytes += command->skb->len;
			if (entry.status == DIBBER_STATUS_OK)
				dev_consume_skb_any(command->skb);
			else
				dev_kfree_skb_any(command->skb);
			command->skb = NULL;
		}
	}
	/* Staging is given back in the order of the commands. */
	if (net->data.oldest != oldest)
		net->unstaged = net->commands[(net->data.oldest - 1) & mask].staged;
	netdev_completed_queue(net->dev, frames, bytes);
}

/* The queue -------------------------------------------------------------------------------------*/

/* Whether the next frame finds room, whoever it is for. */
static bool has_means(const struct dibber_net *net)
{
	return dibber_own_room(&net->data) >= net->peers_up + RESERVED_SLOTS &&
	       has_staging(net, DIBBER_NET_MAX_RECORD);
}

/* Whether the queue has to wait for this peer's ring. */
static bool blocks(struct dibber_net *net, u32 node)
{
	struct dibber_net_peer *peer = &net->peers[node];

	if (peer->state != DIBBER_NET_UP || peer->failed)
		return false;
	if (has_room(peer, DIBBER_NET_MAX_RECORD)) {
		peer->full = false;
		return false;
	}
	if (!peer->full) {
		peer->full = true;
		peer->full_since = jiffies;
	}
	return time_before(jiffies, peer->full_since + FULL_PATIENCE);
}

void dibber_net_maybe_wake(struct dibber_net *net)
{
	if (!netif_queue_stopped(net->dev) || READ_ONCE(net->closing) || !has_means(net) ||
	    (net->waits_for >= 0 && blocks(net, net->waits_for)))
		return;
	net->waits_for = -1;
	netif_wake_queue(net->dev);
}

static void maybe_stop(struct dibber_net *net, int node)
{
	if (!has_means(net)) {
		dibber_net_count(net, tx_stops_slots);
		netif_stop_queue(net->dev);
	} else if (node >= 0 && blocks(net, node)) {
		dibber_net_count(net, tx_stops_ring);
		net->waits_for = node;
		netif_stop_queue(net->dev);
	}
}

/* Frames --------------------------------------------------------------------------------------- */

/* The node that a frame is for, or -1: all of them. */
static int target_of(const struct sk_buff *skb)
{
	static const u8 prefix[] = DIBBER_NET_PREFIX;
	const u8 *to = skb->data;
	u32 node = to[4] << 8 | to[5];

	/* Whoever has another address than its node number's, as in a bond, is one of them. */
	if (memcmp(to, prefix, sizeof(prefix)) || node >= DIBBER_NODES)
		return -1;
	return node;
}

/* Copy a frame into staging and put it to a peer. With means for it. False: it was dropped. */
static bool send_to(struct dibber_net *net, u32 node, struct sk_buff *skb,
		    const struct virtio_net_hdr *offload, u8 flags, bool last)
{
	struct dibber_net_peer *peer = &net->peers[node];
	u32 bytes = DIBBER_NET_RECORD(skb->len);
	u64 from = place(net->staged, STAGING_BYTES, bytes);
	u64 to = place(peer->sent, peer->ring_bytes, bytes);
	struct dibber_net_header *header;
	u32 source = from & (STAGING_BYTES - 1);

	if (!has_room(peer, bytes)) {
		dibber_net_count(net, tx_peer_full);
		return false;
	}
	if (!dibber_own_room(&net->data) || !has_staging(net, bytes))
		return false;
	header = net->staging + source;
	memset(header, 0, sizeof(*header));
	header->position = cpu_to_le64(to);
	header->length = cpu_to_le32(skb->len);
	header->offload = *offload;
	if (skb_copy_bits(skb, 0, header + 1, skb->len))
		return false;
	net->staged = from + bytes;
	peer->sent = to + bytes;
	put_record(net, node, source, to & (peer->ring_bytes - 1), sizeof(*header) + skb->len,
		   (u32)peer->sent | DIBBER_NET_TAIL, flags, last ? skb : NULL);
	return true;
}

/* Bit n: the frame is for node n. */
static u64 receivers_of(const struct dibber_net *net, int target)
{
	u64 receivers = 0;
	u32 node;

	for (node = 0; node < DIBBER_NODES; node++) {
		const struct dibber_net_peer *peer = &net->peers[node];

		if (peer->state == DIBBER_NET_UP && !READ_ONCE(peer->failed) &&
		    (target < 0 || node == target))
			receivers |= BIT_ULL(node);
	}
	return receivers;
}

netdev_tx_t dibber_net_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct dibber_net *net = netdev_priv(dev);
	unsigned int bytes = skb->len;
	struct virtio_net_hdr offload;
	u64 receivers;
	u32 node;
	bool sent = false;
	int target;

	spin_lock(&net->lock);
	dibber_net_take_completions(net);
	target = -1;
	if (skb_headlen(skb) < ETH_HLEN)
		goto drop;
	target = target_of(skb);
	receivers = receivers_of(net, target);
	if (!receivers) {
		dibber_net_count(net, tx_no_peer);
		goto drop;
	}
	if (skb->len > DIBBER_NET_MAX_FRAME ||
	    virtio_net_hdr_from_skb(skb, &offload, true, false, 0))
		goto drop;
	skb_tx_timestamp(skb);
	/*
	 * TCP keeps few frames in a queue until they are freed (tcp_limit_output_bytes). A free
	 * that waits for a held interrupt would stop it, and the frame is copied, so its owner is
	 * let go.
	 */
	if (READ_ONCE(net->hold_usecs))
		skb_orphan(skb);
	while (receivers) {
		bool last;

		node = __ffs64(receivers);
		receivers &= receivers - 1;
		/* The frame is kept for the last put of it. */
		last = !receivers;
		if (sent)
			dibber_net_count(net, tx_replicas);
		if (send_to(net, node, skb, &offload, DIBBER_FLAG_SOLICIT, last))
			sent = true;
		else if (last)
			goto unsent;
		if (last)
			__netdev_sent_queue(dev, bytes, netdev_xmit_more());
	}
	dev->stats.tx_packets++;
	dev->stats.tx_bytes += bytes;
	goto out;

unsent:
	/* Commands before this one may carry it already. */
	if (sent) {
		dev->stats.tx_packets++;
		dev->stats.tx_bytes += bytes;
		dev_consume_skb_any(skb);
		goto out;
	}
drop:
	dev->stats.tx_dropped++;
	dev_kfree_skb_any(skb);
out:
	maybe_stop(net, target);
	if (!netdev_xmit_more() || netif_queue_stopped(dev))
		dibber_own_ring(&net->data);
	spin_unlock(&net->lock);
	return NETDEV_TX_OK;
}
