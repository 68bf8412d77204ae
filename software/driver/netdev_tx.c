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

int dibber_net_tx_begin(struct dibber_net_queue *queue)
{
	int rc;

	queue->staged = 0;
	queue->unstaged = 0;
	queue->waits_for = -1;
	queue->lost_events = 0;
	queue->staging = dma_alloc_coherent(&queue->net->card->pdev->dev, STAGING_BYTES,
					    &queue->staging_address, GFP_KERNEL);
	if (!queue->staging)
		return -ENOMEM;
	rc = dibber_own_region_add(&queue->data, queue->staging_address, STAGING_BYTES,
				   DIBBER_RIGHT_LOCAL_READ, &queue->staging_key);
	if (rc)
		queue->staging_key = 0;
	return rc;
}

/* The data endpoint is closed, so the card reads nothing here any more. */
void dibber_net_tx_end(struct dibber_net_queue *queue)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(queue->commands); i++) {
		dev_kfree_skb(queue->commands[i].skb);
		queue->commands[i].skb = NULL;
	}
	if (queue->staging_key)
		dibber_own_region_remove(&queue->data, queue->staging_key);
	queue->staging_key = 0;
	if (queue->staging)
		dma_free_coherent(&queue->net->card->pdev->dev, STAGING_BYTES, queue->staging,
				  queue->staging_address);
	queue->staging = NULL;
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

static bool has_staging(const struct dibber_net_queue *queue, u32 bytes)
{
	return place(queue->staged, STAGING_BYTES, bytes) + bytes - queue->unstaged <= STAGING_ROOM;
}

static bool has_room(const struct dibber_net_way *way, u32 bytes)
{
	return place(way->sent, way->ring_bytes, bytes) + bytes - way->credited <= way->ring_bytes;
}

/* Commands ------------------------------------------------------------------------------------- */

static void remember(struct dibber_net_queue *queue, u32 cookie, u32 node, struct sk_buff *skb)
{
	u32 slot = cookie & (queue->net->card->slot_count - 1);
	struct dibber_net_command *command = &queue->commands[slot];

	command->skb = skb;
	command->staged = queue->staged;
	command->node = node;
	command->life = queue->ways[node].life;
}

static void put_record(struct dibber_net_queue *queue, u32 node, u32 source, u32 target, u32 bytes,
		       u32 notice, u8 flags, struct sk_buff *skb)
{
	const struct dibber_net_way *way = &queue->ways[node];
	struct dibber_command command = {
		.opcode = DIBBER_OPCODE_PUT,
		.flags = DIBBER_FLAG_NOTICE | DIBBER_FLAG_INTERRUPT | flags,
		.endpoint = way->endpoint,
		.node = node,
		.length = bytes,
		.notice = notice,
		.target = { .key = way->key, .block = bytes, .offset = target },
		.source = { .key = queue->staging_key, .block = bytes, .offset = source },
	};

	remember(queue, dibber_own_give(&queue->data, &command), node, skb);
}

/*
 * Repeat the position behind the last record, in the lane of the records, so that the notice comes
 * behind them. The bytes go where nobody reads.
 */
bool dibber_net_send_tail(struct dibber_net_queue *queue, u32 node)
{
	const struct dibber_net_way *way = &queue->ways[node];

	if (!dibber_own_room(&queue->data))
		return false;
	put_record(queue, node, 0, way->ring_bytes, SCRATCH_BYTES, (u32)way->sent | DIBBER_NET_TAIL,
		   DIBBER_FLAG_SOLICIT, NULL);
	dibber_own_ring(&queue->data);
	return true;
}

bool dibber_net_send_credit(struct dibber_net_queue *queue, u32 node)
{
	struct dibber_net_way *way = &queue->ways[node];
	u64 head = READ_ONCE(way->head);
	struct dibber_inline_command command = {
		.key = way->key,
		.block = SCRATCH_BYTES,
		.offset = way->ring_bytes,
	};
	struct dibber_command *form = (struct dibber_command *)&command;

	if (!dibber_own_room(&queue->data))
		return false;
	form->opcode = DIBBER_OPCODE_PUT_INLINE;
	form->flags = DIBBER_FLAG_NOTICE | DIBBER_FLAG_INTERRUPT;
	form->endpoint = way->endpoint;
	form->node = node;
	form->length = SCRATCH_BYTES;
	form->notice = (u32)head | DIBBER_NET_CREDIT;
	remember(queue, dibber_own_give(&queue->data, form), node, NULL);
	dibber_own_ring(&queue->data);
	way->credit_told = head;
	return true;
}

void dibber_net_take_completions(struct dibber_net_queue *queue)
{
	struct dibber_queue_entry entry;
	unsigned int frames = 0, bytes = 0;
	u32 mask = queue->net->card->slot_count - 1;
	u32 oldest = queue->data.oldest;

	while (dibber_own_completion(&queue->data, &entry)) {
		struct dibber_net_command *command = &queue->commands[entry.cookie & mask];
		struct dibber_net_way *way = &queue->ways[command->node];

		if (entry.status != DIBBER_STATUS_OK) {
			dibber_net_tally(queue, commands_failed);
			if (command->life == way->life)
				dibber_net_fail(queue->net, command->node);
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
	if (queue->data.oldest != oldest)
		queue->unstaged = queue->commands[(queue->data.oldest - 1) & mask].staged;
	netdev_tx_completed_queue(dibber_net_txq(queue), frames, bytes);
}

/*
 * Frames under way are no longer kept for their owners. TCP does not send a segment again while the
 * device has it, not even by the other card of a bond. The card reads the copies in staging.
 */
void dibber_net_let_owners_go(struct dibber_net_queue *queue)
{
	unsigned int frames = 0, bytes = 0, i;

	spin_lock_bh(&queue->lock);
	for (i = 0; i < ARRAY_SIZE(queue->commands); i++) {
		struct sk_buff *skb = queue->commands[i].skb;

		if (!skb)
			continue;
		frames++;
		bytes += skb->len;
		dev_kfree_skb_any(skb);
		queue->commands[i].skb = NULL;
	}
	netdev_tx_completed_queue(dibber_net_txq(queue), frames, bytes);
	spin_unlock_bh(&queue->lock);
}

/* The queue -------------------------------------------------------------------------------------*/

/* Whether the next frame finds room, whoever it is for. */
static bool has_means(const struct dibber_net_queue *queue)
{
	return dibber_own_room(&queue->data) >= queue->peers_up + RESERVED_SLOTS &&
	       has_staging(queue, DIBBER_NET_MAX_RECORD);
}

static bool has_failed(const struct dibber_net_queue *queue, u32 node)
{
	return READ_ONCE(queue->net->peers[node].failed);
}

/* Whether the queue has to wait for this peer's ring. */
static bool blocks(struct dibber_net_queue *queue, u32 node)
{
	struct dibber_net_way *way = &queue->ways[node];

	if (way->state != DIBBER_NET_UP || has_failed(queue, node))
		return false;
	if (has_room(way, DIBBER_NET_MAX_RECORD)) {
		way->full = false;
		return false;
	}
	if (!way->full) {
		way->full = true;
		way->full_since = jiffies;
	}
	return time_before(jiffies, way->full_since + FULL_PATIENCE);
}

void dibber_net_maybe_wake(struct dibber_net_queue *queue)
{
	if (!netif_tx_queue_stopped(dibber_net_txq(queue)) || READ_ONCE(queue->net->closing) ||
	    !has_means(queue) || (queue->waits_for >= 0 && blocks(queue, queue->waits_for)))
		return;
	queue->waits_for = -1;
	netif_tx_wake_queue(dibber_net_txq(queue));
}

static void maybe_stop(struct dibber_net_queue *queue, int node)
{
	if (!has_means(queue)) {
		dibber_net_tally(queue, tx_stops_slots);
		netif_tx_stop_queue(dibber_net_txq(queue));
	} else if (node >= 0 && blocks(queue, node)) {
		dibber_net_tally(queue, tx_stops_ring);
		queue->waits_for = node;
		netif_tx_stop_queue(dibber_net_txq(queue));
	}
}

/* Frames --------------------------------------------------------------------------------------- */

/*
 * The node that a frame is for, or -1: all of them. The owner of an address that is not its node
 * number's is one of them, and so is who has the address of a node that is not here: the other
 * cards of a bond have that of the first one.
 */
static int target_of(const struct dibber_net_queue *queue, const struct sk_buff *skb)
{
	static const u8 prefix[] = DIBBER_NET_PREFIX;
	const u8 *to = skb->data;
	u32 node = to[4] << 8 | to[5];

	if (memcmp(to, prefix, sizeof(prefix)) || node >= DIBBER_NODES ||
	    queue->ways[node].state == DIBBER_NET_ABSENT)
		return -1;
	return node;
}

/* Copy a frame into staging and put it to a peer. With means for it. False: it was dropped. */
static bool send_to(struct dibber_net_queue *queue, u32 node, struct sk_buff *skb,
		    const struct virtio_net_hdr *offload, u8 flags, bool last)
{
	struct dibber_net_way *way = &queue->ways[node];
	u32 bytes = DIBBER_NET_RECORD(skb->len);
	u64 from = place(queue->staged, STAGING_BYTES, bytes);
	u64 to = place(way->sent, way->ring_bytes, bytes);
	struct dibber_net_header *header;
	u32 source = from & (STAGING_BYTES - 1);

	if (!has_room(way, bytes)) {
		dibber_net_tally(queue, tx_peer_full);
		return false;
	}
	if (!dibber_own_room(&queue->data) || !has_staging(queue, bytes))
		return false;
	header = queue->staging + source;
	memset(header, 0, sizeof(*header));
	header->position = cpu_to_le64(to);
	header->length = cpu_to_le32(skb->len);
	header->offload = *offload;
	if (skb_copy_bits(skb, 0, header + 1, skb->len))
		return false;
	queue->staged = from + bytes;
	way->sent = to + bytes;
	dibber_net_tally(queue, records_sent);
	put_record(queue, node, source, to & (way->ring_bytes - 1), sizeof(*header) + skb->len,
		   (u32)way->sent | DIBBER_NET_TAIL, flags, last ? skb : NULL);
	return true;
}

/* Bit n: the frame is for node n. */
static u64 receivers_of(const struct dibber_net_queue *queue, int target)
{
	u64 receivers = 0;
	u32 node;

	for (node = 0; node < DIBBER_NODES; node++) {
		const struct dibber_net_way *way = &queue->ways[node];

		if (way->state == DIBBER_NET_UP && !has_failed(queue, node) &&
		    (target < 0 || node == target))
			receivers |= BIT_ULL(node);
	}
	return receivers;
}

/* A flow stays in its queue, so its frames keep their order. */
u16 dibber_net_select_queue(struct net_device *dev, struct sk_buff *skb, struct net_device *below)
{
	const struct dibber_net *net = netdev_priv(dev);
	u32 spread = READ_ONCE(net->spread);

	return spread > 1 ? reciprocal_scale(skb_get_hash(skb), spread) : 0;
}

netdev_tx_t dibber_net_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct dibber_net *net = netdev_priv(dev);
	struct dibber_net_queue *queue = &net->queues[skb_get_queue_mapping(skb)];
	unsigned int bytes = skb->len;
	struct virtio_net_hdr offload;
	u64 receivers;
	u32 node;
	bool sent = false;
	int target;

	spin_lock(&queue->lock);
	dibber_net_take_completions(queue);
	target = -1;
	if (skb_headlen(skb) < ETH_HLEN)
		goto drop;
	target = target_of(queue, skb);
	receivers = receivers_of(queue, target);
	if (!receivers) {
		dibber_net_tally(queue, tx_no_peer);
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
			dibber_net_tally(queue, tx_replicas);
		if (send_to(queue, node, skb, &offload, DIBBER_FLAG_SOLICIT, last))
			sent = true;
		else if (last)
			goto unsent;
		if (last)
			__netdev_tx_sent_queue(dibber_net_txq(queue), bytes, netdev_xmit_more());
	}
	dibber_net_tally(queue, tx_packets);
	dibber_net_add_to(queue, tx_bytes, bytes);
	goto out;

unsent:
	/* Commands before this one may carry it already. */
	if (sent) {
		dibber_net_tally(queue, tx_packets);
		dibber_net_add_to(queue, tx_bytes, bytes);
		dev_consume_skb_any(skb);
		goto out;
	}
drop:
	dibber_net_tally(queue, tx_dropped);
	dev_kfree_skb_any(skb);
out:
	maybe_stop(queue, target);
	if (!netdev_xmit_more() || netif_tx_queue_stopped(dibber_net_txq(queue)))
		dibber_own_ring(&queue->data);
	spin_unlock(&queue->lock);
	return NETDEV_TX_OK;
}
