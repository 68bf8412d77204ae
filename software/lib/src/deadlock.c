/*
 * Whether a set of routes can deadlock: a circle in the channel dependency graph (Dally and Seitz,
 * "Deadlock-Free Message Routing in Multiprocessor Interconnection Networks", IEEE Transactions on
 * Computers 36(5), 1987).
 *
 * A channel is an output of a switch. A packet that holds one waits for the next one of its route.
 * Cards always take what comes, so the cables to and from cards are in no circle.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <string.h>

#include "error.h"
#include "mapper.h"

#define CHANNELS DIB_NETWORK_CHANNELS
#define NOBODY	 CHANNELS

struct graph {
	uint32_t after[CHANNELS][CHANNELS / 32]; /* a bit for each channel that is waited for */
};

static uint32_t channel_of(uint32_t number, uint32_t port)
{
	return number * DIB_NETWORK_PORTS + port;
}

/* The place of a host: what is at the end of the cable of its link. */
static bool find_host(const struct dib_network *network, unsigned int node, uint32_t link,
		      struct dib_neighbour *uplink)
{
	if (node == network->own) {
		*uplink = network->uplink[link];
		return uplink->kind != DIB_PEER_NONE;
	}
	for (uint32_t n = 0; n < network->switches; n++)
		for (uint32_t port = 0; port < network->sw[n].ports; port++) {
			const struct dib_neighbour *peer = &network->sw[n].peer[port];

			if (peer->kind == DIB_PEER_HOST && peer->number == node &&
			    peer->port == link) {
				*uplink = (struct dib_neighbour){ .kind = DIB_PEER_SWITCH,
								  .port = (uint8_t)port,
								  .number = (uint16_t)n };
				return true;
			}
		}
	return false;
}

/* Add what a way holds and waits for. Returns whether it leads to its target. */
static bool add_way(const struct dib_network *network, const struct dib_way *way,
		    struct graph *graph)
{
	uint32_t hops = way->route & DIBBER_ROUTE_HOPS, held = NOBODY;
	struct dib_neighbour at;

	if (!find_host(network, way->source, way->route & DIBBER_ROUTE_LINK ? 1 : 0, &at))
		return false;
	for (uint32_t i = 0; i < hops; i++) {
		uint32_t turn = way->route >> (4 * (i + 1)) & 15u, port, channel;
		const struct dib_switch *sw;

		if (at.kind != DIB_PEER_SWITCH)
			return false;
		sw = &network->sw[at.number];
		port = (at.port + turn) % sw->ports;
		channel = channel_of(at.number, port);
		if (held != NOBODY)
			graph->after[held][channel / 32] |= 1u << channel % 32;
		held = channel;
		at = sw->peer[port];
	}
	return at.kind == DIB_PEER_HOST && at.number == way->target;
}

/* Add all ways that the hosts of the map take. */
static void add_routes(const struct dib_network *network, struct graph *graph)
{
	struct dib_network seen = *network;

	for (unsigned int from = 0; from < DIBBER_NODES; from++) {
		memset(seen.uplink, 0, sizeof(seen.uplink));
		for (uint32_t link = 0; link < DIB_LINKS; link++)
			find_host(network, from, link, &seen.uplink[link]);
		seen.own = (uint16_t)from;
		for (unsigned int to = 0; to < DIBBER_NODES; to++) {
			uint32_t routes[DIB_NETWORK_ROUTES];
			int count = dib_network_routes(&seen, to, routes);

			for (int i = 0; i < count; i++) {
				struct dib_way way = { .source = (uint16_t)from,
						       .target = (uint16_t)to,
						       .route = routes[i] };

				add_way(network, &way, graph);
			}
		}
	}
}

/* Depth first. Returns the number of channels in a circle that was found, or 0. */
static uint32_t find_circle(const struct graph *graph, struct dib_neighbour *circle)
{
	enum { NEW, OPEN, DONE } state[CHANNELS] = { NEW };
	uint32_t path[CHANNELS], next[CHANNELS];

	for (uint32_t start = 0; start < CHANNELS; start++) {
		uint32_t depth = 0;

		if (state[start] != NEW)
			continue;
		path[depth] = start;
		next[depth++] = 0;
		state[start] = OPEN;
		while (depth) {
			uint32_t here = path[depth - 1], after = next[depth - 1]++;

			if (after == CHANNELS) {
				state[here] = DONE;
				depth--;
			} else if (!(graph->after[here][after / 32] >> after % 32 & 1) ||
				   state[after] == DONE) {
				continue;
			} else if (state[after] == NEW) {
				state[after] = OPEN;
				path[depth] = after;
				next[depth++] = 0;
			} else {
				uint32_t first = 0;

				while (path[first] != after)
					first++;
				for (uint32_t i = first; circle && i < depth; i++)
					circle[i - first] = (struct dib_neighbour){
						.kind = DIB_PEER_SWITCH,
						.port = (uint8_t)(path[i] % DIB_NETWORK_PORTS),
						.number = (uint16_t)(path[i] / DIB_NETWORK_PORTS),
					};
				return depth - first;
			}
		}
	}
	return 0;
}

int dib_network_circle(const struct dib_network *network, const struct dib_way *ways,
		       unsigned int count, struct dib_neighbour circle[DIB_NETWORK_CHANNELS])
{
	struct graph graph;

	if (!network)
		return dib_fail(DIB_ERR_ARGUMENT, "no map given");
	memset(&graph, 0, sizeof(graph));
	if (!ways)
		add_routes(network, &graph);
	for (unsigned int i = 0; ways && i < count; i++)
		if (!add_way(network, &ways[i], &graph))
			return dib_fail(DIB_ERR_ARGUMENT,
					"way %u, route 0x%08x, does not lead from node %u to %u", i,
					ways[i].route, ways[i].source, ways[i].target);
	return (int)find_circle(&graph, circle);
}
