/*
 * Finds hosts and switches with scouts alone, after Mainwaring, Chun, Schleimer and Wilkerson,
 * "System Area Network Mapping", SPAA 1997.
 *
 * A way is a list of turns. Its reverse has the same turns negated, the last one first. A scout
 * that goes out by a way, turns round, and takes the reverse comes home if there is a switch at
 * the end of the way. If it goes out by one way and comes home by the reverse of another way,
 * both ways lead to the same switch, because the wire into each port comes from one place.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <string.h>

#include "mapper.h"

#define TURNS 16u /* that a hop can distinguish */

/* The way is longer than a scout can take, so it is not tried. */
struct way {
	uint32_t hops;
	uint8_t turn[2 * DIBBER_ROUTE_HOPS + 2];
};

struct mapping {
	dib_ask ask;
	void *context;
	unsigned int attempts;
	struct dib_network *network;
	struct way way[DIB_NETWORK_SWITCHES]; /* the way to each switch, into its port 0 */
};

static struct way onwards(const struct way *way, uint32_t turn)
{
	struct way longer = *way;

	longer.turn[longer.hops++] = turn % TURNS;
	return longer;
}

static struct way home(const struct way *way, const struct way *by)
{
	struct way there = *way;

	for (uint32_t i = by->hops; i-- > 0;)
		there.turn[there.hops++] = (TURNS - by->turn[i]) % TURNS;
	return there;
}

static uint32_t route_of(const struct way *way)
{
	uint32_t route = way->hops;

	for (uint32_t i = 0; i < way->hops; i++)
		route |= (uint32_t)way->turn[i] << (4 * (i + 1));
	return route;
}

static int ask(struct mapping *mapping, const struct way *way, const struct way *back,
	       unsigned int *node)
{
	int heard = DIB_HEARD_NOBODY;

	if (way->hops > DIBBER_ROUTE_HOPS || back->hops > DIBBER_ROUTE_HOPS) {
		mapping->network->truncated = 1;
		return DIB_HEARD_NOBODY;
	}
	for (unsigned int i = 0; i < mapping->attempts && heard == DIB_HEARD_NOBODY; i++) {
		heard = mapping->ask(mapping->context, route_of(way), route_of(back), node);
		mapping->network->scouts++;
	}
	return heard;
}

/* Whether a scout by this way comes round: 1, 0 or an error. */
static int returns(struct mapping *mapping, const struct way *way)
{
	static const struct way nowhere;
	unsigned int node;
	int heard = ask(mapping, way, &nowhere, &node);

	return heard < 0 ? heard : heard == DIB_HEARD_SELF;
}

/* Enter a new switch at the end of a way. Returns its index, or an error. */
static int add_switch(struct mapping *mapping, const struct way *way)
{
	struct dib_network *network = mapping->network;
	struct dib_switch *added = &network->sw[network->switches];
	uint32_t ports = 4;

	/* The smallest turn that fails is the number of ports. */
	for (; ports < DIB_NETWORK_PORTS; ports *= 2) {
		struct way round = onwards(way, ports);
		int rc;

		round = home(&round, way);
		rc = returns(mapping, &round);
		if (rc < 0)
			return rc;
		if (rc)
			break;
	}
	added->ports = (uint8_t)ports;
	mapping->way[network->switches] = *way;
	return (int)network->switches++;
}

/* Find the free port of a known switch at which this way ends. Returns 1 and `peer`, 0 if there is
 * none, or an error. */
static int find(struct mapping *mapping, const struct way *way, struct dib_neighbour *peer)
{
	struct dib_network *network = mapping->network;

	for (uint32_t n = 0; n < network->switches; n++) {
		for (uint32_t port = 0; port < network->sw[n].ports; port++) {
			struct way round;
			int rc;

			if (network->sw[n].peer[port].kind != DIB_PEER_NONE)
				continue;
			/* The way from there to the switch's own port 0, and home. */
			round = onwards(way, network->sw[n].ports - port);
			round = home(&round, &mapping->way[n]);
			rc = returns(mapping, &round);
			if (rc < 0)
				return rc;
			if (rc) {
				*peer = (struct dib_neighbour){ .kind = DIB_PEER_SWITCH,
								.port = (uint8_t)port,
								.number = (uint16_t)n };
				return 1;
			}
		}
	}
	return 0;
}

static void add_host(struct dib_network *network, unsigned int node, struct dib_neighbour *peer)
{
	*peer = (struct dib_neighbour){ .kind = DIB_PEER_HOST, .number = (uint16_t)node };
	if (network->hosts >> node & 1)
		network->conflicts |= 1u << node;
	network->hosts |= 1u << node;
}

static int look_at_port(struct mapping *mapping, uint32_t n, uint32_t port)
{
	struct dib_network *network = mapping->network;
	struct dib_neighbour *here = &network->sw[n].peer[port];
	static const struct way nowhere;
	struct way there = onwards(&mapping->way[n], port);
	struct way back = home(&nowhere, &there), round;
	struct dib_neighbour peer;
	unsigned int node = 0;
	int rc;

	rc = ask(mapping, &there, &back, &node);
	if (rc < 0)
		return rc;
	if (rc == DIB_HEARD_HOST) {
		add_host(network, node, here);
		return 0;
	}
	round = onwards(&there, 0);
	round = home(&round, &there);
	rc = returns(mapping, &round);
	if (rc <= 0)
		return rc;

	/* This port is not free any more, although its neighbour is not known yet. */
	here->kind = DIB_PEER_SWITCH;
	rc = find(mapping, &there, &peer);
	if (rc < 0)
		return rc;
	if (!rc) {
		if (network->switches == DIB_NETWORK_SWITCHES) {
			network->truncated = 1;
			here->kind = DIB_PEER_NONE;
			return 0;
		}
		rc = add_switch(mapping, &there);
		if (rc < 0)
			return rc;
		peer = (struct dib_neighbour){ .kind = DIB_PEER_SWITCH, .number = (uint16_t)rc };
	}
	*here = peer;
	network->sw[peer.number].peer[peer.port] = (struct dib_neighbour){ .kind = DIB_PEER_SWITCH,
									   .port = (uint8_t)port,
									   .number = (uint16_t)n };
	return 0;
}

/* Numbers -------------------------------------------------------------------------------------- */

/* Number switches and ports by a rule that depends on the network alone, not on the order in which
 * they were found. So all hosts get the same map. The root is the switch of the lowest host, which
 * is at its port 0. The others follow breadth first, in the order of ports; each is entered by its
 * port 0. */
static void number(struct dib_network *network)
{
	struct dib_network found = *network;
	uint32_t was[DIB_NETWORK_SWITCHES] = { 0 }, first[DIB_NETWORK_SWITCHES] = { 0 },
		 is[DIB_NETWORK_SWITCHES];
	uint32_t known = 0, lowest = UINT32_MAX;

	for (uint32_t n = 0; n < found.switches; n++) {
		is[n] = UINT32_MAX;
		for (uint32_t port = 0; port < found.sw[n].ports; port++) {
			const struct dib_neighbour *peer = &found.sw[n].peer[port];

			if (peer->kind == DIB_PEER_HOST && peer->number < lowest) {
				lowest = peer->number;
				was[0] = n;
				first[0] = port;
			}
		}
	}
	is[was[0]] = known++;
	memset(network->sw, 0, sizeof(network->sw));
	for (uint32_t n = 0; n < known; n++) {
		const struct dib_switch *old = &found.sw[was[n]];
		struct dib_switch *new = &network->sw[n];

		new->ports = old->ports;
		for (uint32_t port = 0; port < new->ports; port++) {
			const struct dib_neighbour *peer =
				&old->peer[(port + first[n]) % old->ports];

			/* A cable from a switch to itself leads nowhere, and not every host can see
			 * it. */
			if (peer->kind == DIB_PEER_SWITCH && peer->number == was[n])
				continue;
			new->peer[port] = *peer;
			if (peer->kind != DIB_PEER_SWITCH)
				continue;
			if (is[peer->number] == UINT32_MAX) {
				was[known] = peer->number;
				first[known] = peer->port;
				is[peer->number] = known;
				network->sw[known].level = new->level + 1;
				known++;
			}
			new->peer[port].number = (uint16_t)is[peer->number];
			new->peer[port].port =
				(uint8_t)((peer->port + found.sw[peer->number].ports -
					   first[is[peer->number]]) %
					  found.sw[peer->number].ports);
		}
	}
	network->uplink.number = (uint16_t)is[found.uplink.number];
	network->uplink.port =
		(uint8_t)((found.sw[found.uplink.number].ports - first[network->uplink.number]) %
			  found.sw[found.uplink.number].ports);
}

int dib_discover(dib_ask asks, void *context, unsigned int own, unsigned int attempts,
		 struct dib_network *network)
{
	struct mapping mapping = {
		.ask = asks, .context = context, .attempts = attempts, .network = network
	};
	struct way way = { 0 };
	unsigned int node = 0;
	int rc;

	memset(network, 0, sizeof(*network));
	network->own = (uint16_t)own;
	network->hosts = 1u << own;
	rc = ask(&mapping, &way, &way, &node);
	if (rc < 0)
		return rc;
	if (rc == DIB_HEARD_HOST) {
		add_host(network, node, &network->uplink);
		return 0;
	}
	way = onwards(&way, 0);
	rc = returns(&mapping, &way);
	if (rc <= 0)
		return rc;

	way.hops = 0;
	rc = add_switch(&mapping, &way);
	if (rc < 0)
		return rc;
	network->uplink.kind = DIB_PEER_SWITCH;
	network->sw[0].peer[0] =
		(struct dib_neighbour){ .kind = DIB_PEER_HOST, .number = (uint16_t)own };
	for (uint32_t n = 0; n < network->switches; n++) {
		for (uint32_t port = 0; port < network->sw[n].ports; port++) {
			if (network->sw[n].peer[port].kind != DIB_PEER_NONE)
				continue;
			rc = look_at_port(&mapping, n, port);
			if (rc < 0)
				return rc;
		}
	}
	number(network);
	return 0;
}
