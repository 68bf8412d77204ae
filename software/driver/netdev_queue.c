// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * A queue of the network device: its data endpoint, its staging, its hold-off of interrupts, and
 * its ways to the peers. All here runs with the card locked, apart from the hold-off's questions.
 */

#include "netdev.h"

#include <linux/dma-mapping.h>

#define CQ_ENTRIES 64u
#define EQ_ENTRIES 4096u /* a lost event costs time only, but should be rare */
#define RING_BYTES (DIBBER_NET_RING + DIBBER_NET_SCRATCH)

/* Hold-off ------------------------------------------------------------------------------------- */

/* The vector must be a data endpoint's alone, or interrupts of processes would be held, too. */
bool dibber_net_can_hold(const struct dibber_net *net)
{
	return net->card->features & 1u << DIBBER_HOST_FEATURES_HOLD_OFF_SHIFT &&
	       net->card->vectors >= net->card->endpoint_count;
}

/* Not 0, which would be no hold-off. */
u64 dibber_net_hold_units(const struct dibber_net *net, u32 usecs)
{
	u64 units = div_u64((u64)usecs * net->card->clock_hz, DIBBER_HOLD_OFF_UNIT * 1000000u);

	return max(units, 1ull);
}

void dibber_net_set_hold_off(const struct dibber_net_queue *queue)
{
	const struct dibber_net *net = queue->net;
	u32 vector = queue->data.number % net->card->vectors;
	u32 time = net->hold_usecs ? dibber_net_hold_units(net, net->hold_usecs) : 0;

	if (dibber_net_can_hold(net))
		dibber_write(net->card, DIBBER_HOST_HOLD_OFF,
			     vector << DIBBER_HOST_HOLD_OFF_VECTOR_SHIFT |
				     net->hold_frames << DIBBER_HOST_HOLD_OFF_COUNT_SHIFT |
				     time << DIBBER_HOST_HOLD_OFF_TIME_SHIFT);
}

/* Open and close ------------------------------------------------------------------------------- */

/* In an interrupt. */
static void data_interrupt(struct dibber_own *own)
{
	struct dibber_net_queue *queue = container_of(own, struct dibber_net_queue, data);

	dibber_net_tally(queue, interrupts);
	napi_schedule(&queue->napi);
}

void dibber_net_queue_create(struct dibber_net *net, u32 index)
{
	struct dibber_net_queue *queue = &net->queues[index];

	queue->net = net;
	queue->index = index;
	queue->data.interrupt = data_interrupt;
	spin_lock_init(&queue->lock);
	netif_napi_add(net->dev, &queue->napi, dibber_net_poll);
}

/* Any endpoint will do: its number is in the hello. Processes ask for low ones first. */
int dibber_net_queue_open(struct dibber_net_queue *queue)
{
	struct dibber_card *card = queue->net->card;
	unsigned int number = card->endpoint_count;
	int rc = -EBUSY;

	while (rc == -EBUSY && --number) {
		if (number != DIBBER_NET_CONTROL)
			rc = dibber_own_open(card, &queue->data, number, CQ_ENTRIES, EQ_ENTRIES);
	}
	if (rc)
		return rc;
	rc = dibber_net_tx_begin(queue);
	if (!rc)
		dibber_net_set_hold_off(queue);
	return rc;
}

/* Take all back from the card, whatever of it there is. */
void dibber_net_queue_close(struct dibber_net_queue *queue)
{
	u32 node;

	dibber_own_close(&queue->data);
	for (node = 0; node < DIBBER_NODES; node++) {
		struct dibber_net_way *way = &queue->ways[node];

		if (way->state != DIBBER_NET_ABSENT)
			dibber_own_region_remove(&queue->data, way->own_key);
		if (way->ring)
			dma_free_coherent(&queue->net->card->pdev->dev, RING_BYTES, way->ring,
					  way->ring_address);
		*way = (struct dibber_net_way){ .life = way->life + 1 };
	}
	queue->peers_up = 0;
	dibber_net_tx_end(queue);
}

/* Ways ----------------------------------------------------------------------------------------- */

/* NAPI looks at rings without the lock, so it stands still meanwhile. */
static void hold(struct dibber_net_queue *queue) __acquires(&queue->lock)
{
	napi_disable(&queue->napi);
	spin_lock_bh(&queue->lock);
}

static void let_go(struct dibber_net_queue *queue) __releases(&queue->lock)
{
	spin_unlock_bh(&queue->lock);
	napi_enable(&queue->napi);
	/* An interrupt that came meanwhile was not heard. */
	local_bh_disable();
	napi_schedule(&queue->napi);
	local_bh_enable();
}

int dibber_net_way_greet(struct dibber_net_queue *queue, u32 node)
{
	struct dibber_net_way *way = &queue->ways[node];
	int rc;

	if (!way->ring)
		way->ring = dma_alloc_coherent(&queue->net->card->pdev->dev, RING_BYTES,
					       &way->ring_address, GFP_KERNEL | __GFP_NOWARN);
	if (!way->ring)
		return -ENOMEM;
	/* No record of a former life begins at a position of now. */
	memset(way->ring, 0xff, RING_BYTES);
	rc = dibber_own_region_add(&queue->data, way->ring_address, RING_BYTES,
				   DIBBER_RIGHT_REMOTE_WRITE, &way->own_key);
	if (rc)
		return rc;
	hold(queue);
	way->tail = 0;
	way->head = 0;
	way->credit_told = 0;
	way->state = DIBBER_NET_GREETING;
	let_go(queue);
	return 0;
}

void dibber_net_way_meet(struct dibber_net_queue *queue, u32 node, u32 endpoint, u32 key,
			 u32 ring_bytes)
{
	struct dibber_net_way *way = &queue->ways[node];

	hold(queue);
	way->endpoint = endpoint;
	way->key = key;
	way->ring_bytes = ring_bytes;
	way->sent = 0;
	way->credited = 0;
	way->full = false;
	way->state = DIBBER_NET_UP;
	queue->peers_up++;
	/* By the first notice it knows that its key is here. */
	dibber_net_send_tail(queue, node);
	let_go(queue);
}

void dibber_net_way_lose(struct dibber_net_queue *queue, u32 node)
{
	struct dibber_net_way *way = &queue->ways[node];

	if (way->state == DIBBER_NET_ABSENT)
		return;
	hold(queue);
	if (way->state == DIBBER_NET_UP)
		queue->peers_up--;
	way->state = DIBBER_NET_ABSENT;
	way->life++;
	dibber_net_maybe_wake(queue);
	let_go(queue);
	dibber_own_region_remove(&queue->data, way->own_key);
}
