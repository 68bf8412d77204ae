/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * What the files of the network device share: docs/design/network-device.md.
 *
 * Locks, outermost first: rtnl, dibber_card.lock, the queue's transmit lock, dibber_net.lock. The
 * receiving side of a peer belongs to NAPI; it changes only while NAPI is disabled.
 */

#ifndef DIBBER_NETDEV_H
#define DIBBER_NETDEV_H

#include "dibber.h"
#include "net_protocol.h"

#include <linux/workqueue.h>

/* Statistics of `ethtool -S`, beside the usual ones. */
#define DIBBER_NET_COUNTERS(X)                                             \
	X(interrupts)	    /* of the data endpoint */                     \
	X(polls)	    /* of NAPI */                                  \
	X(events)	    /* taken */                                    \
	X(events_foreign)   /* of these, not from a peer */                \
	X(events_lost)	    /* as the card counts them */                  \
	X(records_received) /* frames found in rings */                    \
	X(records_wrong)    /* peers lost because their record is wrong */ \
	X(notices_wrong)    /* peers lost because a position is wrong */   \
	X(hellos_wrong)	    /* hellos that were refused */                 \
	X(credits_sent)	    /* without keepalives */                       \
	X(credits_received) /* with keepalives */                          \
	X(keepalives)	    /* sent */                                     \
	X(tx_replicas)	    /* frames that went to one more peer */        \
	X(tx_no_peer)	    /* frames to nobody */                         \
	X(tx_peer_full)	    /* frames that a full peer did not get */      \
	X(tx_stops_slots)   /* queue stopped: slots or staging */          \
	X(tx_stops_ring)    /* queue stopped: the peer's ring */           \
	X(commands_failed)  /* completions with an error */                \
	X(scouts)	    /* sent */                                     \
	X(greetings)	    /* begun */                                    \
	X(connections)	    /* peers that were won */                      \
	X(losses)	    /* peers that were lost */

enum dibber_net_counter {
#define X(name) DIBBER_NET_##name,
	DIBBER_NET_COUNTERS(X)
#undef X
		DIBBER_NET_COUNTER_COUNT
};

enum dibber_net_state {
	DIBBER_NET_ABSENT,   /* no region for it */
	DIBBER_NET_GREETING, /* it may put into its ring; its own hello is not here yet */
	DIBBER_NET_UP,	     /* its hello is here */
};

/**
 * struct dibber_net_peer - the network device of another node
 * @state: changes with NAPI disabled, and with dibber_net.lock held
 * @life: counts connections, so that a late completion is not taken for one of now
 * @failed: a command to it failed, or it wrote what cannot be: the work lets it go
 * @heard: it has put a notice under the key that it was sent, so it has our hello
 * @told: our hello was received
 * @since: jiffies of the state's beginning
 * @endpoint: its data endpoint
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
 * @sending: our hello is under way
 * @receiving: we wait for its hello
 * @send_cookie: of the command with our hello
 * @receive_cookie: of the command that waits for its hello
 */
struct dibber_net_peer {
	enum dibber_net_state state;
	u32 life;
	bool failed;
	bool heard;
	bool told;
	unsigned long since;

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

	bool sending;
	bool receiving;
	u32 send_cookie;
	u32 receive_cookie;
};

/**
 * struct dibber_net_command - a command of the data endpoint that is under way
 * @skb: freed with it, or NULL
 * @staged: dibber_net.unstaged behind it
 * @node: its target
 * @life: of the peer
 */
struct dibber_net_command {
	struct sk_buff *skb;
	u64 staged;
	u32 node;
	u32 life;
};

/**
 * struct dibber_net - a network device
 * @card: the card
 * @dev: the device
 * @napi: takes completions, events and records
 * @work: link, scouts, hellos, keepalives
 * @closing: no work is queued any more
 * @keepalive: jiffies of the next keepalives
 * @data: endpoint of the puts
 * @control: endpoint of the hellos; the work's alone
 * @hellos: a hello to send and one to receive for each node; the work's alone
 * @hellos_address: its bus address
 * @hellos_key: of its region
 * @counters: each has one writer at a time
 * @peers: by node number
 * @lock: guards commands of @data, what follows, and the sending side of peers
 * @staging: frames that the card reads
 * @staging_address: its bus address
 * @staging_key: of its region
 * @staged: bytes that were staged since open
 * @unstaged: of these, no longer used
 * @commands: by slot
 * @peers_up: peers in state UP
 * @waits_for: the queue is stopped for this node's ring, or -1
 * @lost_events: overruns of the event queue that were counted
 * @hold_usecs: hold-off of interrupts, microseconds; 0: none. Under rtnl
 * @hold_frames: the same, interrupts; 0: no limit
 */
struct dibber_net {
	struct dibber_card *card;
	struct net_device *dev;
	struct napi_struct napi;
	struct delayed_work work;
	bool closing;
	unsigned long keepalive;
	struct dibber_own data;
	struct dibber_own control;
	struct dibber_net_hello *hellos;
	dma_addr_t hellos_address;
	u32 hellos_key;
	u64 counters[DIBBER_NET_COUNTER_COUNT];
	struct dibber_net_peer peers[DIBBER_NODES];
	u32 lost_events;
	u32 hold_usecs;
	u32 hold_frames;

	spinlock_t lock; /* guards what follows */
	void *staging;
	dma_addr_t staging_address;
	u32 staging_key;
	u64 staged;
	u64 unstaged;
	struct dibber_net_command commands[DIBBER_SLOTS];
	unsigned int peers_up;
	int waits_for;
};

#define dibber_net_count(net, name) ((net)->counters[DIBBER_NET_##name]++)

/* netdev_peers.c */
void dibber_net_work(struct work_struct *work);
void dibber_net_peers_end(struct dibber_net *net);
/* Have the work run soon. From any context. */
void dibber_net_kick(struct dibber_net *net);
/* The peer did what cannot be, or a command to it failed. From any context. */
void dibber_net_fail(struct dibber_net *net, struct dibber_net_peer *peer);

/* netdev_tx.c */
int dibber_net_tx_begin(struct dibber_net *net);
void dibber_net_tx_end(struct dibber_net *net);
netdev_tx_t dibber_net_xmit(struct sk_buff *skb, struct net_device *dev);
/* With dibber_net.lock. */
void dibber_net_take_completions(struct dibber_net *net);
void dibber_net_maybe_wake(struct dibber_net *net);
/* Tell how much was taken; false: no slot is free. With dibber_net.lock. */
bool dibber_net_send_credit(struct dibber_net *net, u32 node);
bool dibber_net_send_tail(struct dibber_net *net, u32 node);

/* netdev_rx.c */
int dibber_net_poll(struct napi_struct *napi, int budget);

#endif
