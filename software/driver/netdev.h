/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * What the files of the network device share: docs/design/network-device.md.
 *
 * Locks, outermost first: rtnl, dibber_card.lock, the queue's transmit lock, dibber_net_queue.lock.
 * No two queues are locked at once. The receiving side of a way belongs to its queue's NAPI; it
 * changes only while that is disabled.
 */

#ifndef DIBBER_NETDEV_H
#define DIBBER_NETDEV_H

#include "dibber.h"
#include "net_protocol.h"

#include <linux/workqueue.h>

/* Statistics of each queue: `ethtool -S` shows them as queueN_NAME, and their sums as NAME. */
#define DIBBER_NET_QUEUE_COUNTERS(X)                                       \
	X(interrupts)	    /* of the data endpoint */                     \
	X(polls)	    /* of NAPI */                                  \
	X(events)	    /* taken */                                    \
	X(events_foreign)   /* of these, not from a peer */                \
	X(events_lost)	    /* as the card counts them */                  \
	X(records_received) /* frames found in rings */                    \
	X(records_sent)	    /* frames put into rings: one for each peer */ \
	X(records_wrong)    /* peers lost because their record is wrong */ \
	X(notices_wrong)    /* peers lost because a position is wrong */   \
	X(credits_sent)	    /* without keepalives */                       \
	X(credits_received) /* with keepalives */                          \
	X(tx_replicas)	    /* frames that went to one more peer */        \
	X(tx_no_peer)	    /* frames to nobody */                         \
	X(tx_peer_full)	    /* frames that a full peer did not get */      \
	X(tx_stops_slots)   /* queue stopped: slots or staging */          \
	X(tx_stops_ring)    /* queue stopped: the peer's ring */           \
	X(commands_failed)  /* completions with an error */                \
	X(rx_packets)	    /* of the usual statistics, from here on */    \
	X(rx_bytes)                                                        \
	X(rx_dropped)                                                      \
	X(rx_frame_errors)                                                 \
	X(tx_packets)                                                      \
	X(tx_bytes)                                                        \
	X(tx_dropped)

/* Statistics of the device. */
#define DIBBER_NET_COUNTERS(X)                         \
	X(hellos_wrong) /* hellos that were refused */ \
	X(keepalives)	/* sent */                     \
	X(scouts)	/* sent */                     \
	X(greetings)	/* begun */                    \
	X(connections)	/* peers that were won */      \
	X(losses)	/* peers that were lost */

enum dibber_net_queue_counter {
#define X(name) DIBBER_NET_QUEUE_##name,
	DIBBER_NET_QUEUE_COUNTERS(X)
#undef X
		DIBBER_NET_QUEUE_COUNTER_COUNT
};

enum dibber_net_counter {
#define X(name) DIBBER_NET_##name,
	DIBBER_NET_COUNTERS(X)
#undef X
		DIBBER_NET_COUNTER_COUNT
};

enum dibber_net_state {
	DIBBER_NET_ABSENT,   /* no region for it */
	DIBBER_NET_GREETING, /* it may put into its rings; its own hello is not here yet */
	DIBBER_NET_UP,	     /* its hello is here */
};

/**
 * struct dibber_net_peer - the network device of another node
 * @state: the work's alone
 * @failed: a command to it failed, or it wrote what cannot be: the work lets it go
 * @heard: it has put a notice under a key that it was sent, so it has our hello
 * @heard_at: jiffies of that
 * @told: our hello was received; the work's alone, as all that follows
 * @greeted: it was greeted since the interface came up
 * @since: jiffies of the state's beginning
 * @queues: that both ends have
 * @sending: our hello is under way
 * @receiving: we wait for its hello
 * @send_cookie: of the command with our hello
 * @receive_cookie: of the command that waits for its hello
 */
struct dibber_net_peer {
	enum dibber_net_state state;
	bool failed;
	bool heard;
	unsigned long heard_at;
	bool told;
	bool greeted;
	unsigned long since;
	u32 queues;

	bool sending;
	bool receiving;
	u32 send_cookie;
	u32 receive_cookie;
};

/**
 * struct dibber_net_way - from a queue to the same queue of a peer, and back
 * @state: of the peer, as the queue knows it; a queue that the peer does not have stays GREETING
 * @life: counts connections, so that a late completion is not taken for one of now
 * @endpoint: the peer's data endpoint
 * @key: of the ring that it has for us
 * @ring_bytes: of that ring
 * @sent: position behind the last record that was put there
 * @credited: position up to which it has taken records
 * @full: it has had no room since @full_since
 * @full_since: jiffies
 * @own_key: of our ring for it
 * @ring: our ring for it, and the scratch bytes behind it; kept while the interface is up
 * @ring_address: its bus address
 * @tail: position behind the last record that it has told of
 * @head: position up to which records were taken
 * @credit_told: @head as it last heard
 *
 * All of it is guarded by dibber_net_queue.lock, but @head, @ring and @own_key change only in NAPI
 * or while NAPI is disabled.
 */
struct dibber_net_way {
	enum dibber_net_state state;
	u32 life;

	u32 endpoint;
	u32 key;
	u32 ring_bytes;
	u64 sent;
	u64 credited;
	bool full;
	unsigned long full_since;

	u32 own_key;
	void *ring;
	dma_addr_t ring_address;
	u64 tail;
	u64 head;
	u64 credit_told;
};

/**
 * struct dibber_net_command - a command of a data endpoint that is under way
 * @skb: freed with it, or NULL
 * @staged: dibber_net_queue.unstaged behind it
 * @node: its target
 * @life: of the way there
 */
struct dibber_net_command {
	struct sk_buff *skb;
	u64 staged;
	u32 node;
	u32 life;
};

/**
 * struct dibber_net_queue - a queue of a network device, in both directions
 * @net: the device
 * @index: its number
 * @napi: takes completions, events and records
 * @data: endpoint of the puts
 * @counters: each has one writer at a time
 * @lost_events: overruns of the event queue that were counted
 * @lock: guards commands of @data, and what follows
 * @ways: by node number
 * @staging: frames that the card reads
 * @staging_address: its bus address
 * @staging_key: of its region
 * @staged: bytes that were staged since open
 * @unstaged: of these, no longer used
 * @commands: by slot
 * @peers_up: ways in state UP
 * @waits_for: the queue is stopped for this node's ring, or -1
 */
struct dibber_net_queue {
	struct dibber_net *net;
	u32 index;
	struct napi_struct napi;
	struct dibber_own data;
	u64 counters[DIBBER_NET_QUEUE_COUNTER_COUNT];
	u32 lost_events;

	spinlock_t lock; /* guards what follows */
	struct dibber_net_way ways[DIBBER_NODES];
	void *staging;
	dma_addr_t staging_address;
	u32 staging_key;
	u64 staged;
	u64 unstaged;
	struct dibber_net_command commands[DIBBER_SLOTS];
	unsigned int peers_up;
	int waits_for;
};

/**
 * struct dibber_net - a network device
 * @card: the card
 * @dev: the device
 * @work: link, scouts, hellos, keepalives
 * @closing: no work is queued any more
 * @keepalive: jiffies of the next keepalives
 * @control: endpoint of the hellos; the work's alone
 * @hellos: a hello to send and one to receive for each node; the work's alone
 * @hellos_address: its bus address
 * @hellos_key: of its region
 * @counters: each has one writer at a time
 * @peers: by node number
 * @spread: queues that every peer has, which frames are spread over; at least 1
 * @hold_usecs: hold-off of interrupts, microseconds; 0: none. Under rtnl
 * @hold_frames: the same, interrupts; 0: no limit
 * @queue_count: queues in use, from 0 on; changes under rtnl while the interface is down
 * @queues: all that there could be
 */
struct dibber_net {
	struct dibber_card *card;
	struct net_device *dev;
	struct delayed_work work;
	bool closing;
	unsigned long keepalive;
	struct dibber_own control;
	struct dibber_net_hello *hellos;
	dma_addr_t hellos_address;
	u32 hellos_key;
	u64 counters[DIBBER_NET_COUNTER_COUNT];
	struct dibber_net_peer peers[DIBBER_NODES];
	u32 spread;
	u32 hold_usecs;
	u32 hold_frames;
	u32 queue_count;
	struct dibber_net_queue queues[DIBBER_NET_QUEUES];
};

#define dibber_net_count(net, name)	     ((net)->counters[DIBBER_NET_##name]++)
#define dibber_net_add_to(queue, name, more) ((queue)->counters[DIBBER_NET_QUEUE_##name] += (more))
#define dibber_net_tally(queue, name)	     dibber_net_add_to(queue, name, 1)

static inline struct netdev_queue *dibber_net_txq(const struct dibber_net_queue *queue)
{
	return netdev_get_tx_queue(queue->net->dev, queue->index);
}

/* netdev.c: with rtnl */
int dibber_net_open(struct net_device *dev);
int dibber_net_stop(struct net_device *dev);

/* netdev_ethtool.c */
extern const struct ethtool_ops dibber_net_ethtool;
u64 dibber_net_sum(const struct dibber_net *net, enum dibber_net_queue_counter counter);

/* netdev_queue.c: with rtnl */
bool dibber_net_can_hold(const struct dibber_net *net);
/* Units of the card's time in so many microseconds. */
u64 dibber_net_hold_units(const struct dibber_net *net, u32 usecs);
/* The endpoint's opening has ended any hold-off of its vector. With the data endpoint open. */
void dibber_net_set_hold_off(const struct dibber_net_queue *queue);

/* netdev_peers.c */
void dibber_net_work(struct work_struct *work);
void dibber_net_peers_end(struct dibber_net *net);
/* Have the work run soon. From any context. */
void dibber_net_kick(struct dibber_net *net);
/* The peer did what cannot be, or a command to it failed. From any context. */
void dibber_net_fail(struct dibber_net *net, u32 node);

void dibber_net_queue_create(struct dibber_net *net, u32 index);
/* netdev_queue.c: with the card locked */
int dibber_net_queue_open(struct dibber_net_queue *queue);
/* With NAPI disabled. */
void dibber_net_queue_close(struct dibber_net_queue *queue);
/* Make a ring for the node; its key stands in the way. */
int dibber_net_way_greet(struct dibber_net_queue *queue, u32 node);
/* From now on frames go there. */
void dibber_net_way_meet(struct dibber_net_queue *queue, u32 node, u32 endpoint, u32 key,
			 u32 ring_bytes);
/* The peer may put nothing more, and nothing is put to it. */
void dibber_net_way_lose(struct dibber_net_queue *queue, u32 node);

/* netdev_tx.c */
int dibber_net_tx_begin(struct dibber_net_queue *queue);
void dibber_net_tx_end(struct dibber_net_queue *queue);
u16 dibber_net_select_queue(struct net_device *dev, struct sk_buff *skb, struct net_device *below);
netdev_tx_t dibber_net_xmit(struct sk_buff *skb, struct net_device *dev);
void dibber_net_let_owners_go(struct dibber_net_queue *queue);
/* With dibber_net_queue.lock. */
void dibber_net_take_completions(struct dibber_net_queue *queue);
void dibber_net_maybe_wake(struct dibber_net_queue *queue);
/* Tell how much was taken; false: no slot is free. With dibber_net_queue.lock. */
bool dibber_net_send_credit(struct dibber_net_queue *queue, u32 node);
bool dibber_net_send_tail(struct dibber_net_queue *queue, u32 node);

/* netdev_rx.c */
int dibber_net_poll(struct napi_struct *napi, int budget);

#endif
