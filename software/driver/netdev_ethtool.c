// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/* What ethtool shows and sets of the network device: counters, hold-off, number of queues. */

#include "netdev.h"

#include <linux/ethtool.h>

/* Counters ------------------------------------------------------------------------------------- */

static const char *const queue_names[] = {
#define X(name) #name,
	DIBBER_NET_QUEUE_COUNTERS(X)
#undef X
};

static const char *const names[] = {
#define X(name) #name,
	DIBBER_NET_COUNTERS(X)
#undef X
		"peers",
};

/* Those of queues that are not used any more count as well. */
u64 dibber_net_sum(const struct dibber_net *net, enum dibber_net_queue_counter counter)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < DIBBER_NET_QUEUES; i++)
		sum += READ_ONCE(net->queues[i].counters[counter]);
	return sum;
}

static int get_sset_count(struct net_device *dev, int set)
{
	struct dibber_net *net = netdev_priv(dev);

	if (set != ETH_SS_STATS)
		return -EOPNOTSUPP;
	return ARRAY_SIZE(names) + (1 + net->queue_count) * ARRAY_SIZE(queue_names);
}

static void get_strings(struct net_device *dev, u32 set, u8 *data)
{
	struct dibber_net *net = netdev_priv(dev);
	unsigned int i, name;

	if (set != ETH_SS_STATS)
		return;
	for (name = 0; name < ARRAY_SIZE(names); name++)
		ethtool_sprintf(&data, "%s", names[name]);
	for (name = 0; name < ARRAY_SIZE(queue_names); name++)
		ethtool_sprintf(&data, "%s", queue_names[name]);
	for (i = 0; i < net->queue_count; i++) {
		for (name = 0; name < ARRAY_SIZE(queue_names); name++)
			ethtool_sprintf(&data, "queue%u_%s", i, queue_names[name]);
	}
}

static void get_ethtool_stats(struct net_device *dev, struct ethtool_stats *stats, u64 *data)
{
	struct dibber_net *net = netdev_priv(dev);
	unsigned int i, counter, up = 0;

	for (counter = 0; counter < DIBBER_NET_COUNTER_COUNT; counter++)
		*data++ = READ_ONCE(net->counters[counter]);
	for (i = 0; i < DIBBER_NODES; i++)
		up += READ_ONCE(net->peers[i].state) == DIBBER_NET_UP;
	*data++ = up;
	for (counter = 0; counter < DIBBER_NET_QUEUE_COUNTER_COUNT; counter++)
		*data++ = dibber_net_sum(net, counter);
	for (i = 0; i < net->queue_count; i++) {
		for (counter = 0; counter < DIBBER_NET_QUEUE_COUNTER_COUNT; counter++)
			*data++ = READ_ONCE(net->queues[i].counters[counter]);
	}
}

/* What it is ----------------------------------------------------------------------------------- */

static void get_drvinfo(struct net_device *dev, struct ethtool_drvinfo *info)
{
	struct dibber_net *net = netdev_priv(dev);

	strscpy(info->driver, "dibber", sizeof(info->driver));
	snprintf(info->fw_version, sizeof(info->fw_version), "0x%08x", net->card->identity);
	strscpy(info->bus_info, pci_name(net->card->pdev), sizeof(info->bus_info));
}

/* Commands under way in each queue. A ring for received frames is of bytes, not of frames. */
static void get_ringparam(struct net_device *dev, struct ethtool_ringparam *ring,
			  struct kernel_ethtool_ringparam *kernel, struct netlink_ext_ack *ack)
{
	struct dibber_net *net = netdev_priv(dev);

	ring->tx_max_pending = net->card->slot_count;
	ring->tx_pending = net->card->slot_count;
}

/* Hold-off ------------------------------------------------------------------------------------- */

static int get_coalesce(struct net_device *dev, struct ethtool_coalesce *coalesce,
			struct kernel_ethtool_coalesce *kernel, struct netlink_ext_ack *ack)
{
	struct dibber_net *net = netdev_priv(dev);

	if (!dibber_net_can_hold(net))
		return -EOPNOTSUPP;
	coalesce->rx_coalesce_usecs = net->hold_usecs;
	coalesce->rx_max_coalesced_frames = net->hold_frames;
	return 0;
}

/* Completions of sent frames share the vector with received ones, so they are held as well. */
static int set_coalesce(struct net_device *dev, struct ethtool_coalesce *coalesce,
			struct kernel_ethtool_coalesce *kernel, struct netlink_ext_ack *ack)
{
	struct dibber_net *net = netdev_priv(dev);
	u32 usecs = coalesce->rx_coalesce_usecs, frames = coalesce->rx_max_coalesced_frames;
	u32 i;

	if (!dibber_net_can_hold(net))
		return -EOPNOTSUPP;
	if (dibber_net_hold_units(net, usecs) > DIBBER_HOST_HOLD_OFF_TIME_MASK) {
		NL_SET_ERR_MSG_MOD(ack, "rx-usecs is more than the card can hold an interrupt");
		return -EINVAL;
	}
	if (frames > DIBBER_HOST_HOLD_OFF_COUNT_MASK) {
		NL_SET_ERR_MSG_MOD(ack, "rx-frames is more than the card can count");
		return -EINVAL;
	}
	if (!usecs && frames > 1) {
		NL_SET_ERR_MSG_MOD(ack, "rx-frames needs rx-usecs: no interrupt waits for ever");
		return -EINVAL;
	}
	net->hold_usecs = usecs;
	net->hold_frames = frames;
	for (i = 0; netif_running(dev) && i < net->queue_count; i++)
		dibber_net_set_hold_off(&net->queues[i]);
	return 0;
}

/* Queues --------------------------------------------------------------------------------------- */

/* Endpoint 0 is the administrator's, one is for hellos; on a card with a window that has one. */
static u32 most_queues(const struct dibber_net *net)
{
	u32 taken = 2 + dibber_window_exists(net->card);

	return clamp_t(u32, net->card->endpoint_count - taken, 1, DIBBER_NET_QUEUES);
}

static void get_channels(struct net_device *dev, struct ethtool_channels *channels)
{
	struct dibber_net *net = netdev_priv(dev);

	channels->max_combined = most_queues(net);
	channels->combined_count = net->queue_count;
}

/* With the interface down. */
static int set_queues(struct net_device *dev, u32 count)
{
	struct dibber_net *net = netdev_priv(dev);
	int rc = netif_set_real_num_rx_queues(dev, count);

	if (!rc)
		rc = netif_set_real_num_tx_queues(dev, count);
	if (!rc) {
		net->queue_count = count;
		WRITE_ONCE(net->spread, count);
	}
	return rc;
}

/*
 * Peers greet the interface anew. Without endpoints for so many queues it comes up with as many as
 * before, and the caller is told.
 */
static int set_channels(struct net_device *dev, struct ethtool_channels *channels)
{
	struct dibber_net *net = netdev_priv(dev);
	u32 before = net->queue_count, count = channels->combined_count;
	bool running = netif_running(dev);
	int rc;

	if (count == before)
		return 0;
	if (running)
		dibber_net_stop(dev);
	rc = set_queues(dev, count);
	if (!rc && running)
		rc = dibber_net_open(dev);
	if (!rc)
		return 0;
	if (set_queues(dev, before) || (running && dibber_net_open(dev))) {
		netdev_err(dev, "is down: neither %u queues nor %u could be opened\n", count,
			   before);
		dev_close(dev);
	}
	return rc;
}

const struct ethtool_ops dibber_net_ethtool = {
	.supported_coalesce_params = ETHTOOL_COALESCE_RX_USECS | ETHTOOL_COALESCE_RX_MAX_FRAMES,
	.get_drvinfo = get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_strings = get_strings,
	.get_sset_count = get_sset_count,
	.get_ethtool_stats = get_ethtool_stats,
	.get_ringparam = get_ringparam,
	.get_coalesce = get_coalesce,
	.set_coalesce = set_coalesce,
	.get_channels = get_channels,
	.set_channels = set_channels,
};
