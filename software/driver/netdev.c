// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * The network device dibN: what the kernel's network sees of it. The card's endpoints are taken
 * while the interface is up, and given back when it goes down.
 */

#include "netdev.h"

#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/module.h>
#include <linux/rtnetlink.h>

static bool netdev = true;
module_param(netdev, bool, 0444);
MODULE_PARM_DESC(netdev, "each card has a network device dibN");

#define CQ_ENTRIES   64u
#define EQ_ENTRIES   4096u /* a lost event costs time only, but should be rare */
#define HELLOS_BYTES (2 * DIBBER_NODES * sizeof(struct dibber_net_hello))

/* Hold-off --------------------------------------------------------------------------------------
 */

/* The vector must be the data endpoint's alone, or interrupts of processes would be held, too. */
static bool can_hold(const struct dibber_net *net)
{
	return net->card->features & 1u << DIBBER_HOST_FEATURES_HOLD_OFF_SHIFT &&
	       net->card->vectors >= net->card->endpoint_count;
}

/* Units of the card's time in so many microseconds. Not 0, which would be no hold-off. */
static u64 hold_units(const struct dibber_net *net, u32 usecs)
{
	u64 units = div_u64((u64)usecs * net->card->clock_hz, DIBBER_HOLD_OFF_UNIT * 1000000u);

	return max(units, 1ull);
}

/* The endpoint's opening has ended any hold-off of its vector. With the data endpoint open. */
static void set_hold_off(struct dibber_net *net)
{
	u32 vector = net->data.number % net->card->vectors;
	u32 time = net->hold_usecs ? hold_units(net, net->hold_usecs) : 0;

	if (can_hold(net))
		dibber_write(net->card, DIBBER_HOST_HOLD_OFF,
			     vector << DIBBER_HOST_HOLD_OFF_VECTOR_SHIFT |
				     net->hold_frames << DIBBER_HOST_HOLD_OFF_COUNT_SHIFT |
				     time << DIBBER_HOST_HOLD_OFF_TIME_SHIFT);
}

/* Open and stop -------------------------------------------------------------------------------- */

/* In an interrupt. */
static void data_interrupt(struct dibber_own *own)
{
	struct dibber_net *net = container_of(own, struct dibber_net, data);

	dibber_net_count(net, interrupts);
	napi_schedule(&net->napi);
}

/* In an interrupt. */
static void control_interrupt(struct dibber_own *own)
{
	dibber_net_kick(container_of(own, struct dibber_net, control));
}

/* Any endpoint will do: its number is in the hello. Processes ask for low ones first. */
static int open_data(struct dibber_net *net)
{
	unsigned int number = net->card->endpoint_count;
	int rc = -EBUSY;

	while (rc == -EBUSY && --number) {
		if (number != DIBBER_NET_CONTROL)
			rc = dibber_own_open(net->card, &net->data, number, CQ_ENTRIES, EQ_ENTRIES);
	}
	return rc;
}

static int begin(struct dibber_net *net)
{
	struct dibber_card *card = net->card;
	int rc = dibber_admin_check(card);

	if (!rc)
		rc = dibber_own_open(card, &net->control, DIBBER_NET_CONTROL, CQ_ENTRIES, 1);
	if (!rc)
		rc = open_data(net);
	if (!rc)
		rc = dibber_own_region_add(&net->control, net->hellos_address, HELLOS_BYTES,
					   DIBBER_RIGHT_LOCAL_READ | DIBBER_RIGHT_LOCAL_WRITE,
					   &net->hellos_key);
	if (!rc)
		rc = dibber_net_tx_begin(net);
	if (!rc)
		set_hold_off(net);
	return rc;
}

/* Take all back from the card, whatever of it there is. With the card locked and NAPI disabled. */
static void end(struct dibber_net *net)
{
	dibber_own_close(&net->control);
	dibber_own_close(&net->data);
	dibber_net_peers_end(net);
	dibber_net_tx_end(net);
	if (net->hellos_key)
		dibber_own_region_remove(&net->control, net->hellos_key);
	net->hellos_key = 0;
}

static int net_open(struct net_device *dev)
{
	struct dibber_net *net = netdev_priv(dev);
	struct device *device = &net->card->pdev->dev;
	int rc;

	net->hellos = dma_alloc_coherent(device, HELLOS_BYTES, &net->hellos_address, GFP_KERNEL);
	if (!net->hellos)
		return -ENOMEM;
	netif_carrier_off(dev);
	WRITE_ONCE(net->closing, false);
	net->keepalive = jiffies;
	napi_enable(&net->napi);
	mutex_lock(&net->card->lock);
	rc = begin(net);
	if (rc) {
		netdev_err(dev, "no endpoints or regions: %d\n", rc);
		WRITE_ONCE(net->closing, true);
		napi_disable(&net->napi);
		end(net);
	}
	mutex_unlock(&net->card->lock);
	if (rc) {
		cancel_delayed_work_sync(&net->work);
		dma_free_coherent(device, HELLOS_BYTES, net->hellos, net->hellos_address);
		return rc;
	}
	netif_start_queue(dev);
	dibber_net_kick(net);
	return 0;
}

static int net_stop(struct net_device *dev)
{
	struct dibber_net *net = netdev_priv(dev);

	netif_tx_disable(dev);
	netif_carrier_off(dev);
	WRITE_ONCE(net->closing, true);
	/* First, because the work disables and enables NAPI, too. */
	cancel_delayed_work_sync(&net->work);
	napi_disable(&net->napi);
	mutex_lock(&net->card->lock);
	end(net);
	mutex_unlock(&net->card->lock);
	/* Who saw `closing` too late has queued work that does nothing. */
	cancel_delayed_work_sync(&net->work);
	dma_free_coherent(&net->card->pdev->dev, HELLOS_BYTES, net->hellos, net->hellos_address);
	netdev_reset_queue(dev);
	return 0;
}

static const struct net_device_ops operations = {
	.ndo_open = net_open,
	.ndo_stop = net_stop,
	.ndo_start_xmit = dibber_net_xmit,
	.ndo_set_mac_address = eth_mac_addr,
	.ndo_validate_addr = eth_validate_addr,
};

/* ethtool -------------------------------------------------------------------------------------- */

static const char counter_names[][ETH_GSTRING_LEN] = {
#define X(name) #name,
	DIBBER_NET_COUNTERS(X)
#undef X
		"peers",
};

static void get_drvinfo(struct net_device *dev, struct ethtool_drvinfo *info)
{
	struct dibber_net *net = netdev_priv(dev);

	strscpy(info->driver, "dibber", sizeof(info->driver));
	snprintf(info->fw_version, sizeof(info->fw_version), "0x%08x", net->card->identity);
	strscpy(info->bus_info, pci_name(net->card->pdev), sizeof(info->bus_info));
}

static int get_sset_count(struct net_device *dev, int set)
{
	return set == ETH_SS_STATS ? ARRAY_SIZE(counter_names) : -EOPNOTSUPP;
}

static void get_strings(struct net_device *dev, u32 set, u8 *data)
{
	if (set == ETH_SS_STATS)
		memcpy(data, counter_names, sizeof(counter_names));
}

static void get_ethtool_stats(struct net_device *dev, struct ethtool_stats *stats, u64 *data)
{
	struct dibber_net *net = netdev_priv(dev);
	unsigned int i;

	for (i = 0; i < DIBBER_NET_COUNTER_COUNT; i++)
		data[i] = READ_ONCE(net->counters[i]);
	data[i] = READ_ONCE(net->peers_up);
}

/* Commands under way. A ring for received frames is of bytes, so no number of frames is told. */
static void get_ringparam(struct net_device *dev, struct ethtool_ringparam *ring,
			  struct kernel_ethtool_ringparam *kernel, struct netlink_ext_ack *ack)
{
	struct dibber_net *net = netdev_priv(dev);

	ring->tx_max_pending = net->card->slot_count;
	ring->tx_pending = net->card->slot_count;
}

static int get_coalesce(struct net_device *dev, struct ethtool_coalesce *coalesce,
			struct kernel_ethtool_coalesce *kernel, struct netlink_ext_ack *ack)
{
	struct dibber_net *net = netdev_priv(dev);

	if (!can_hold(net))
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

	if (!can_hold(net))
		return -EOPNOTSUPP;
	if (hold_units(net, usecs) > DIBBER_HOST_HOLD_OFF_TIME_MASK) {
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
	if (netif_running(dev))
		set_hold_off(net);
	return 0;
}

static const struct ethtool_ops ethtool = {
	.supported_coalesce_params = ETHTOOL_COALESCE_RX_USECS | ETHTOOL_COALESCE_RX_MAX_FRAMES,
	.get_drvinfo = get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_strings = get_strings,
	.get_sset_count = get_sset_count,
	.get_ethtool_stats = get_ethtool_stats,
	.get_ringparam = get_ringparam,
	.get_coalesce = get_coalesce,
	.set_coalesce = set_coalesce,
};

/* Making and taking away ----------------------------------------------------------------------- */

static void set_address(struct net_device *dev, u32 node)
{
	u8 address[ETH_ALEN] = DIBBER_NET_PREFIX;

	address[4] = node >> 8;
	address[5] = node;
	eth_hw_addr_set(dev, address);
}

/* Without a network device the card is as useful as ever to processes, so nothing fails. */
void dibber_net_add(struct dibber_card *card)
{
	struct net_device *dev;
	struct dibber_net *net;
	int rc;

	if (!netdev)
		return;
	if (card->endpoint_count <= DIBBER_NET_CONTROL) {
		dev_info(&card->pdev->dev, "%u endpoints are too few for a network device\n",
			 card->endpoint_count);
		return;
	}
	dev = alloc_etherdev(sizeof(*net));
	if (!dev)
		return;
	net = netdev_priv(dev);
	net->card = card;
	net->dev = dev;
	net->data.interrupt = data_interrupt;
	net->control.interrupt = control_interrupt;
	net->closing = true;
	spin_lock_init(&net->lock);
	INIT_DELAYED_WORK(&net->work, dibber_net_work);
	SET_NETDEV_DEV(dev, &card->pdev->dev);
	snprintf(dev->name, sizeof(dev->name), "dib%d", card->number);
	set_address(dev, card->node);
	dev->netdev_ops = &operations;
	dev->ethtool_ops = &ethtool;
	dev->hw_features = NETIF_F_SG | NETIF_F_FRAGLIST | NETIF_F_HW_CSUM | NETIF_F_ALL_TSO;
	dev->features = dev->hw_features | NETIF_F_HIGHDMA;
	dev->vlan_features = dev->features;
	dev->min_mtu = ETH_MIN_MTU;
	dev->max_mtu = 65520;
	dev->mtu = dev->max_mtu;
	netif_napi_add(dev, &net->napi, dibber_net_poll);
	netif_carrier_off(dev);
	rc = register_netdev(dev);
	if (rc) {
		dev_warn(&card->pdev->dev, "no network device: %d\n", rc);
		free_netdev(dev);
		return;
	}
	card->net = dev;
}

void dibber_net_remove(struct dibber_card *card)
{
	if (!card->net)
		return;
	unregister_netdev(card->net);
	free_netdev(card->net);
	card->net = NULL;
}

bool dibber_net_down(struct dibber_card *card)
{
	bool was_up;

	if (!card->net)
		return false;
	rtnl_lock();
	was_up = netif_running(card->net);
	dev_close(card->net);
	rtnl_unlock();
	return was_up;
}

void dibber_net_up(struct dibber_card *card)
{
	int rc;

	rtnl_lock();
	rc = dev_open(card->net, NULL);
	rtnl_unlock();
	if (rc)
		netdev_err(card->net, "is down after the card's reset: %d\n", rc);
}
