// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * The peers of the network device: who is there, and the exchange of keys. All of it is one work,
 * which runs once a second, when a hello ends, and when a peer has failed.
 */

#include "netdev.h"

#define PERIOD	     HZ		/* of keepalives, and of looks at the link */
#define HASTE	     (HZ / 10)	/* while a peer is not connected */
#define SCOUT_CYCLES (1u << 16) /* that an answer may take */
#define UNHEARD	     (10 * HZ)	/* after which a peer that does not answer is greeted again */
#define UNGREETED    (2 * HZ)	/* the same of one that has our hello, and whose own is not here */

void dibber_net_kick(struct dibber_net *net)
{
	if (!READ_ONCE(net->closing))
		mod_delayed_work(system_wq, &net->work, 0);
}

void dibber_net_fail(struct dibber_net *net, u32 node)
{
	WRITE_ONCE(net->peers[node].failed, true);
	dibber_net_kick(net);
}

static bool is_connected(const struct dibber_net_peer *peer)
{
	return peer->state == DIBBER_NET_UP && !READ_ONCE(peer->failed) &&
	       (READ_ONCE(peer->heard) || peer->told);
}

/* States --------------------------------------------------------------------------------------- */

/* Frames are spread over the queues that every peer has. */
static void spread(struct dibber_net *net)
{
	u32 least = net->queue_count, node;

	for (node = 0; node < DIBBER_NODES; node++) {
		if (net->peers[node].state == DIBBER_NET_UP)
			least = min(least, net->peers[node].queues);
	}
	WRITE_ONCE(net->spread, least);
}

static void lose(struct dibber_net *net, u32 node)
{
	struct dibber_net_peer *peer = &net->peers[node];
	u32 i;

	for (i = 0; i < net->queue_count; i++)
		dibber_net_way_lose(&net->queues[i], node);
	if (peer->state == DIBBER_NET_UP)
		dibber_net_count(net, losses);
	peer->state = DIBBER_NET_ABSENT;
	spread(net);
	netdev_dbg(net->dev, "node %u is lost\n", node);
}

/* With all endpoints closed. */
void dibber_net_peers_end(struct dibber_net *net)
{
	memset(net->peers, 0, sizeof(net->peers));
	spread(net);
}

/* Hellos --------------------------------------------------------------------------------------- */

static struct dibber_net_hello *hello_to(struct dibber_net *net, u32 node)
{
	return &net->hellos[2 * node];
}

static struct dibber_net_hello *hello_from(struct dibber_net *net, u32 node)
{
	return &net->hellos[2 * node + 1];
}

static u32 exchange(struct dibber_net *net, u32 node, u8 opcode, struct dibber_net_hello *hello)
{
	struct dibber_walk walk = {
		.key = net->hellos_key,
		.block = sizeof(*hello),
		.offset = (void *)hello - (void *)net->hellos,
	};
	struct dibber_command command = {
		.opcode = opcode,
		.flags = DIBBER_FLAG_SOLICIT,
		.endpoint = DIBBER_NET_CONTROL,
		.node = node,
		.length = sizeof(*hello),
	};

	if (opcode == DIBBER_OPCODE_SEND)
		command.source = walk;
	else
		command.target = walk;
	return dibber_own_give(&net->control, &command);
}

/*
 * End all hellos under way. A hello that waits at the card for a peer of before would be taken by
 * that of now, and a command that waits keeps its slot, behind which no more are taken.
 */
static int forget_hellos(struct dibber_net *net)
{
	u32 entries = net->control.completions.count, node;

	dibber_own_close(&net->control);
	for (node = 0; node < DIBBER_NODES; node++) {
		net->peers[node].sending = false;
		net->peers[node].receiving = false;
	}
	return dibber_own_open(net->card, &net->control, DIBBER_NET_CONTROL, entries, 1);
}

/* Give the commands that the greeting of this peer still needs. */
static void ask(struct dibber_net *net, u32 node)
{
	struct dibber_net_peer *peer = &net->peers[node];
	bool receives = peer->state == DIBBER_NET_GREETING && !peer->receiving;
	bool sends = !peer->told && !READ_ONCE(peer->heard) && !peer->sending;

	if (!net->control.number || (!receives && !sends))
		return;
	/* A hello that waits for long stops the slots behind it. */
	if (dibber_own_room(&net->control) < 2) {
		forget_hellos(net);
		return;
	}
	if (receives) {
		peer->receive_cookie =
			exchange(net, node, DIBBER_OPCODE_RECEIVE, hello_from(net, node));
		peer->receiving = true;
	}
	if (sends) {
		peer->send_cookie = exchange(net, node, DIBBER_OPCODE_SEND, hello_to(net, node));
		peer->sending = true;
	}
	dibber_own_ring(&net->control);
}

static bool is_hello(const struct dibber_net_hello *hello)
{
	u32 ring = le32_to_cpu(hello->ring_bytes), queues = le32_to_cpu(hello->queues), i;

	if (hello->magic != cpu_to_le32(DIBBER_NET_MAGIC) ||
	    hello->version != cpu_to_le32(DIBBER_NET_VERSION) || !is_power_of_2(ring) ||
	    ring < DIBBER_NET_RING_LEAST || ring > DIBBER_NET_RING_MOST || !queues ||
	    queues > DIBBER_NET_QUEUES)
		return false;
	for (i = 0; i < queues; i++) {
		u32 endpoint = le32_to_cpu(hello->queue[i].endpoint);

		if (!endpoint || endpoint >= DIBBER_ENDPOINTS || !hello->queue[i].key)
			return false;
	}
	return true;
}

/* The peer's hello is here. */
static void meet(struct dibber_net *net, u32 node, u32 length)
{
	/* A copy, because the card could still write there. */
	struct dibber_net_hello hello = *hello_from(net, node);
	struct dibber_net_peer *peer = &net->peers[node];
	u32 i;

	if (length != sizeof(hello) || !is_hello(&hello)) {
		dibber_net_count(net, hellos_wrong);
		dibber_complain(net->card,
				"node %u: a hello of %u bytes, magic 0x%x, version %u, %u queues\n",
				node, length, le32_to_cpu(hello.magic), le32_to_cpu(hello.version),
				le32_to_cpu(hello.queues));
		dibber_net_fail(net, node);
		return;
	}
	peer->queues = min(net->queue_count, le32_to_cpu(hello.queues));
	peer->state = DIBBER_NET_UP;
	for (i = 0; i < peer->queues; i++)
		dibber_net_way_meet(&net->queues[i], node, le32_to_cpu(hello.queue[i].endpoint),
				    le32_to_cpu(hello.queue[i].key), le32_to_cpu(hello.ring_bytes));
	spread(net);
	dibber_net_count(net, connections);
}

static void take_hellos(struct dibber_net *net)
{
	struct dibber_queue_entry entry;
	u32 node;

	while (net->control.number && dibber_own_completion(&net->control, &entry)) {
		for (node = 0; node < DIBBER_NODES; node++) {
			struct dibber_net_peer *peer = &net->peers[node];

			if (peer->sending && peer->send_cookie == entry.cookie) {
				peer->sending = false;
				peer->told = entry.status == DIBBER_STATUS_OK;
			} else if (peer->receiving && peer->receive_cookie == entry.cookie) {
				peer->receiving = false;
				if (peer->state == DIBBER_NET_GREETING &&
				    entry.status == DIBBER_STATUS_OK)
					meet(net, node, entry.length);
			}
		}
	}
}

/* Make rings for the node, and the hello that tells of them. */
static int greet(struct dibber_net *net, u32 node)
{
	struct dibber_net_hello *hello = hello_to(net, node);
	struct dibber_net_peer *peer = &net->peers[node];
	int rc = 0;
	u32 i;

	if (peer->sending || peer->receiving)
		rc = forget_hellos(net);
	if (rc)
		return rc;
	*hello = (struct dibber_net_hello){
		.magic = cpu_to_le32(DIBBER_NET_MAGIC),
		.version = cpu_to_le32(DIBBER_NET_VERSION),
		.ring_bytes = cpu_to_le32(DIBBER_NET_RING),
		.queues = cpu_to_le32(net->queue_count),
	};
	peer->heard = false;
	peer->told = false;
	WRITE_ONCE(peer->failed, false);
	for (i = 0; i < net->queue_count; i++) {
		struct dibber_net_queue *queue = &net->queues[i];

		rc = dibber_net_way_greet(queue, node);
		if (rc) {
			lose(net, node);
			return rc;
		}
		hello->queue[i].endpoint = cpu_to_le32(queue->data.number);
		hello->queue[i].key = cpu_to_le32(queue->ways[node].own_key);
	}
	peer->greeted = true;
	peer->since = jiffies;
	peer->state = DIBBER_NET_GREETING;
	dibber_net_count(net, greetings);
	return 0;
}

/* Who is there --------------------------------------------------------------------------------- */

static bool link_is_up(struct dibber_card *card)
{
	u32 status = dibber_read(card, DIBBER_HOST_LINK_STATUS);

	return dibber_field(status, HOST_LINK_STATUS_STATE) == DIBBER_LINK_STATE_UP;
}

/*
 * Ask who is at the other end of the cable, and greet it. The card knows no other nodes, because no
 * routes are set through this driver. Returns whether it may soon be connected.
 */
static bool scout(struct dibber_net *net)
{
	struct dibber_card *card = net->card;
	struct dibber_route_command command = {
		.opcode = DIBBER_OPCODE_SCOUT,
		.timeout = SCOUT_CYCLES,
	};
	struct dibber_queue_entry answer;
	struct dibber_net_peer *peer;

	static_assert(offsetof(struct dibber_route_command, cookie) ==
		      offsetof(struct dibber_admin_command, cookie));
	dibber_net_count(net, scouts);
	if (dibber_admin_ask(card, (struct dibber_admin_command *)&command, &answer) ||
	    answer.status != DIBBER_STATUS_OK)
		return false;
	if (answer.node >= DIBBER_NODES || answer.node == card->node) {
		dibber_complain(card, "the card at the other end is node %u, too: parameter node\n",
				answer.node);
		return false;
	}
	peer = &net->peers[answer.node];
	/* A peer that always fails is not greeted without a pause. */
	if (peer->greeted && time_before(jiffies, peer->since + HASTE))
		return true;
	if (greet(net, answer.node)) {
		dibber_complain(card, "no ring or region for node %u\n", answer.node);
		return false;
	}
	ask(net, answer.node);
	return true;
}

/* Either also tells what a lost event did not. Without slots there is traffic enough. */
static void keep_alive(struct dibber_net_queue *queue, u32 node)
{
	spin_lock_bh(&queue->lock);
	if (dibber_own_room(&queue->data) >= 2 && dibber_net_send_credit(queue, node) &&
	    dibber_net_send_tail(queue, node))
		dibber_net_count(queue->net, keepalives);
	dibber_net_maybe_wake(queue);
	spin_unlock_bh(&queue->lock);
}

static void look_after(struct dibber_net *net, u32 node, bool keepalive)
{
	struct dibber_net_peer *peer = &net->peers[node];
	u32 i;

	if (peer->state == DIBBER_NET_ABSENT)
		return;
	/* It may have our hello of before. Another one tells it of other rings. */
	if (peer->state == DIBBER_NET_UP && !is_connected(peer) &&
	    time_after(jiffies, peer->since + UNHEARD))
		WRITE_ONCE(peer->failed, true);
	/* It has told its hello to a former life of ours, and does not say it again. */
	if (peer->state == DIBBER_NET_GREETING && smp_load_acquire(&peer->heard) &&
	    time_after(jiffies, READ_ONCE(peer->heard_at) + UNGREETED))
		WRITE_ONCE(peer->failed, true);
	if (READ_ONCE(peer->failed)) {
		lose(net, node);
		return;
	}
	ask(net, node);
	for (i = 0; peer->state == DIBBER_NET_UP && keepalive && i < peer->queues; i++)
		keep_alive(&net->queues[i], node);
}

static void show_carrier(struct dibber_net *net, bool link)
{
	bool connected = false;
	u32 node, i;

	for (node = 0; node < DIBBER_NODES; node++)
		connected |= is_connected(&net->peers[node]);
	if (link && connected) {
		netif_carrier_on(net->dev);
	} else if (netif_carrier_ok(net->dev)) {
		netif_carrier_off(net->dev);
		for (i = 0; i < net->queue_count; i++)
			dibber_net_let_owners_go(&net->queues[i]);
	}
}

/* Whether somebody is in the state between absent and connected. */
static bool is_greeting(const struct dibber_net *net)
{
	u32 node;

	for (node = 0; node < DIBBER_NODES; node++) {
		if (net->peers[node].state != DIBBER_NET_ABSENT && !is_connected(&net->peers[node]))
			return true;
	}
	return false;
}

static bool is_alone(const struct dibber_net *net)
{
	u32 node;

	for (node = 0; node < DIBBER_NODES; node++) {
		if (net->peers[node].state != DIBBER_NET_ABSENT)
			return false;
	}
	return true;
}

/* With the card locked. Returns whether the card works. */
static bool look_at_card(struct dibber_net *net)
{
	int rc = dibber_admin_check(net->card);

	if (rc == -ESHUTDOWN && !net->card->stopped)
		dibber_program_stop(net->card);
	/* Closed, and not opened again: a hello failed, or the program was halted meanwhile. */
	if (!rc && !net->control.number)
		rc = forget_hellos(net);
	return !rc;
}

void dibber_net_work(struct work_struct *work)
{
	struct dibber_net *net = container_of(to_delayed_work(work), struct dibber_net, work);
	bool works, link = false, keepalive;
	unsigned long delay = PERIOD;
	u32 node;

	if (READ_ONCE(net->closing))
		return;
	mutex_lock(&net->card->lock);
	works = look_at_card(net);
	if (works) {
		link = link_is_up(net->card);
		keepalive = time_after_eq(jiffies, net->keepalive);
		if (keepalive)
			net->keepalive = jiffies + PERIOD;
		take_hellos(net);
		for (node = 0; node < DIBBER_NODES; node++)
			look_after(net, node, keepalive);
		if (is_greeting(net) || (link && is_alone(net) && scout(net)))
			delay = HASTE;
	}
	show_carrier(net, works && link);
	mutex_unlock(&net->card->lock);
	if (!READ_ONCE(net->closing))
		queue_delayed_work(system_wq, &net->work, delay);
}
