// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * The network device dibN: what the kernel's network sees of it. The card's endpoints are taken
 * while the interface is up, and given back when it goes down.
 */

#include "netdev.h"

#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <linux/rtnetlink.h>

static bool netdev = true;
module_param(netdev, bool, 0444);
MODULE_PARM_DESC(netdev, "each card has a network device dibN");

#define CQ_ENTRIES   64u
#define HELLOS_BYTES (2 * DIBBER_NODES * sizeof(struct dibber_net_hello))

/* Open and stop -------------------------------------------------------------------------------- */

/* In an interrupt. */
static void control_interrupt(struct dibber_own *own)
{
	dibber_net_kick(container_of(own, struct dibber_net, control));
}

static int begin(struct dibber_net *net)
{
	struct dibber_card *card = net->card;
	int rc = dibber_admin_check(card);
	u32 i;

	if (!rc)
		rc = dibber_own_open(card, &net->control, DIBBER_NET_CONTROL, CQ_ENTRIES, 1);
	if (!rc)
		rc = dibber_own_region_add(&net->control, net->hellos_address, HELLOS_BYTES,
					   DIBBER_RIGHT_LOCAL_READ | DIBBER_RIGHT_LOCAL_WRITE,
					   &net->hellos_key);
	for (i = 0; !rc && i < net->queue_count; i++)
		rc = dibber_net_queue_open(&net->queues[i]);
	return rc;
}

/* Take all back from the card, whatever of it there is. With the card locked and NAPI disabled. */
static void end(struct dibber_net *net)
{
	u32 i;

	dibber_own_close(&net->control);
	for (i = 0; i < net->queue_count; i++)
		dibber_net_queue_close(&net->queues[i]);
	dibber_net_peers_end(net);
	if (net->hellos_key)
		dibber_own_region_remove(&net->control, net->hellos_key);
	net->hellos_key = 0;
}

static void enable_polling(struct dibber_net *net, bool on)
{
	u32 i;

	for (i = 0; i < net->queue_count; i++) {
		if (on)
			napi_enable(&net->queues[i].napi);
		else
			napi_disable(&net->queues[i].napi);
	}
}

static void free_hellos(struct dibber_net *net)
{
	dma_free_coherent(&net->card->pdev->dev, HELLOS_BYTES, net->hellos, net->hellos_address);
	net->hellos = NULL;
}

int dibber_net_open(struct net_device *dev)
{
	struct dibber_net *net = netdev_priv(dev);
	int rc;

	net->hellos = dma_alloc_coherent(&net->card->pdev->dev, HELLOS_BYTES, &net->hellos_address,
					 GFP_KERNEL);
	if (!net->hellos)
		return -ENOMEM;
	netif_carrier_off(dev);
	WRITE_ONCE(net->closing, false);
	net->keepalive = jiffies;
	enable_polling(net, true);
	mutex_lock(&net->card->lock);
	rc = begin(net);
	if (rc) {
		netdev_err(dev, "no endpoints or regions for %u queues: %d\n", net->queue_count,
			   rc);
		WRITE_ONCE(net->closing, true);
		enable_polling(net, false);
		end(net);
	}
	mutex_unlock(&net->card->lock);
	if (rc) {
		cancel_delayed_work_sync(&net->work);
		free_hellos(net);
		return rc;
	}
	netif_tx_start_all_queues(dev);
	dibber_net_kick(net);
	return 0;
}

int dibber_net_stop(struct net_device *dev)
{
	struct dibber_net *net = netdev_priv(dev);
	u32 i;

	/* It could not be opened again when its queues were changed. */
	if (!net->hellos)
		return 0;
	netif_tx_disable(dev);
	netif_carrier_off(dev);
	WRITE_ONCE(net->closing, true);
	/* First, because the work disables and enables NAPI, too. */
	cancel_delayed_work_sync(&net->work);
	enable_polling(net, false);
	mutex_lock(&net->card->lock);
	end(net);
	mutex_unlock(&net->card->lock);
	/* Who saw `closing` too late has queued work that does nothing. */
	cancel_delayed_work_sync(&net->work);
	free_hellos(net);
	for (i = 0; i < net->queue_count; i++)
		netdev_tx_reset_queue(netdev_get_tx_queue(dev, i));
	return 0;
}

static void get_stats64(struct net_device *dev, struct rtnl_link_stats64 *stats)
{
	struct dibber_net *net = netdev_priv(dev);

#define SUM(name) dibber_net_sum(net, DIBBER_NET_QUEUE_##name)
	stats->rx_packets = SUM(rx_packets);
	stats->rx_bytes = SUM(rx_bytes);
	stats->rx_dropped = SUM(rx_dropped);
	stats->rx_frame_errors = SUM(rx_frame_errors);
	stats->rx_errors = stats->rx_frame_errors;
	stats->tx_packets = SUM(tx_packets);
	stats->tx_bytes = SUM(tx_bytes);
	stats->tx_dropped = SUM(tx_dropped);
#undef SUM
}

static const struct net_device_ops operations = {
	.ndo_open = dibber_net_open,
	.ndo_stop = dibber_net_stop,
	.ndo_start_xmit = dibber_net_xmit,
	.ndo_select_queue = dibber_net_select_queue,
	.ndo_get_stats64 = get_stats64,
	.ndo_set_mac_address = eth_mac_addr,
	.ndo_validate_addr = eth_validate_addr,
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
	u32 i;
	int rc;

	if (!netdev)
		return;
	if (card->endpoint_count <= DIBBER_NET_CONTROL) {
		dev_info(&card->pdev->dev, "%u endpoints are too few for a network device\n",
			 card->endpoint_count);
		return;
	}
	dev = alloc_etherdev_mq(sizeof(*net), DIBBER_NET_QUEUES);
	if (!dev)
		return;
	net = netdev_priv(dev);
	net->card = card;
	net->dev = dev;
	net->control.interrupt = control_interrupt;
	net->closing = true;
	net->queue_count = 1;
	net->spread = 1;
	for (i = 0; i < DIBBER_NET_QUEUES; i++)
		dibber_net_queue_create(net, i);
	INIT_DELAYED_WORK(&net->work, dibber_net_work);
	SET_NETDEV_DEV(dev, &card->pdev->dev);
	snprintf(dev->name, sizeof(dev->name), "dib%d", card->number);
	set_address(dev, card->node);
	dev->netdev_ops = &operations;
	dev->ethtool_ops = &dibber_net_ethtool;
	dev->hw_features = NETIF_F_SG | NETIF_F_FRAGLIST | NETIF_F_HW_CSUM | NETIF_F_ALL_TSO;
	dev->features = dev->hw_features | NETIF_F_HIGHDMA;
	dev->vlan_features = dev->features;
	dev->min_mtu = ETH_MIN_MTU;
	dev->max_mtu = 65520;
	dev->mtu = dev->max_mtu;
	netif_carrier_off(dev);
	/* More of them by `ethtool -L`: each takes an endpoint, which processes may want. */
	netif_set_real_num_tx_queues(dev, net->queue_count);
	netif_set_real_num_rx_queues(dev, net->queue_count);
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
