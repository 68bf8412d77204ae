/*
 * Routes that cannot deadlock, from a map: up*\/down* routing, as in Schroeder et al., "Autonet: a
 * High-speed, Self-configuring Local Area Network Using Point-to-point Links", SRC report 59, 1990.
 *
 * Every link is directed: its end with the smaller (level, number) is up. No route goes up after it
 * went down, so that no circle of links can wait for each other.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <string.h>

#include "error.h"
#include "mapper.h"

#define CANDIDATES 256u /* paths that are tried for the routes to one node */

struct path {
	uint32_t hops;
	uint8_t in[DIBBER_ROUTE_HOPS]; /* ports */
	uint8_t out[DIBBER_ROUTE_HOPS];
	uint8_t at[DIBBER_ROUTE_HOPS]; /* switches */
};

struct search {
	const struct dib_network *network;
	unsigned int node;
	uint32_t found;
	struct path paths[CANDIDATES];
};

static bool is_up(const struct dib_network *network, uint32_t from, uint32_t to)
{
	const struct dib_switch *sw = network->sw;

	return sw[to].level < sw[from].level || (sw[to].level == sw[from].level && to < from);
}

/* Find all paths of exactly `hops` switches from here that end at the node. */
static void look(struct search *search, struct path *path, uint32_t hops, bool down)
{
	const struct dib_network *network = search->network;
	uint32_t last = path->hops - 1, here = path->at[last];

	for (uint32_t port = 0; port < network->sw[here].ports; port++) {
		const struct dib_neighbour *peer = &network->sw[here].peer[port];
		bool up, seen = false;

		path->out[last] = (uint8_t)port;
		if (path->hops == hops) {
			if (peer->kind == DIB_PEER_HOST && peer->number == search->node &&
			    search->found < CANDIDATES)
				search->paths[search->found++] = *path;
			continue;
		}
		if (peer->kind != DIB_PEER_SWITCH)
			continue;
		for (uint32_t i = 0; i < path->hops; i++)
			seen |= path->at[i] == peer->number;
		up = is_up(network, here, peer->number);
		if (seen || (down && up))
			continue;
		path->at[path->hops] = (uint8_t)peer->number;
		path->in[path->hops] = peer->port;
		path->hops++;
		look(search, path, hops, down || !up);
		path->hops--;
	}
}

static uint32_t route_of(const struct dib_network *network, const struct path *path)
{
	uint32_t route = path->hops;

	for (uint32_t i = 0; i < path->hops; i++) {
		uint32_t ports = network->sw[path->at[i]].ports;

		route |= (path->out[i] + ports - path->in[i]) % ports << (4 * (i + 1));
	}
	return route;
}

/* How many links between switches this path shares with the paths before it. */
static uint32_t shared(const struct search *search, const struct path *path, const uint32_t *taken,
		       uint32_t count)
{
	uint32_t links = 0;

	for (uint32_t i = 0; i + 1 < path->hops; i++)
		for (uint32_t n = 0; n < count; n++) {
			const struct path *other = &search->paths[taken[n]];

			for (uint32_t j = 0; j + 1 < other->hops; j++)
				links += other->at[j] == path->at[i] &&
					 other->out[j] == path->out[i];
		}
	return links;
}

/* Which of the shortest paths is the first. Targets at one switch differ by their ports there, so
 * flows to them are spread over parallel links. */
static uint32_t turn_of(const struct search *search)
{
	const struct path *path = &search->paths[0];
	uint32_t last = path->hops - 1, turn = path->at[last];

	for (uint32_t port = 0; port < path->out[last]; port++)
		turn += search->network->sw[path->at[last]].peer[port].kind == DIB_PEER_HOST;
	return turn;
}

int dib_network_routes(const struct dib_network *network, unsigned int node,
		       uint32_t routes[DIB_NETWORK_ROUTES])
{
	struct search search = { .network = network, .node = node };
	struct path path = { .hops = 1 };
	uint32_t taken[DIB_NETWORK_ROUTES], count, shortest = 0;

	if (!network || !routes)
		return dib_fail(DIB_ERR_ARGUMENT, "no %s given",
				network ? "place for the routes" : "map");
	if (node >= DIBBER_NODES || node == network->own || !(network->hosts >> node & 1) ||
	    network->conflicts >> node & 1)
		return 0;
	if (network->uplink.kind == DIB_PEER_HOST) {
		routes[0] = 0;
		return 1;
	}
	path.at[0] = (uint8_t)network->uplink.number;
	path.in[0] = network->uplink.port;
	for (uint32_t hops = 1; hops <= DIBBER_ROUTE_HOPS; hops++)
		look(&search, &path, hops, false);

	/* Take a shortest path first, then those that share the fewest links with the taken ones.
	 * Of equal ones the shorter is first. */
	while (shortest < search.found && search.paths[shortest].hops == search.paths[0].hops)
		shortest++;
	for (count = 0; count < DIB_NETWORK_ROUTES && count < search.found; count++) {
		uint32_t best = 0, least = count ? UINT32_MAX : 0;

		if (!count)
			best = turn_of(&search) % shortest;

		for (uint32_t n = 0; n < search.found; n++) {
			uint32_t links = shared(&search, &search.paths[n], taken, count);
			bool used = false;

			for (uint32_t i = 0; i < count; i++)
				used |= taken[i] == n;
			if (!used && links < least) {
				least = links;
				best = n;
			}
		}
		taken[count] = best;
		routes[count] = route_of(network, &search.paths[best]);
	}
	return (int)count;
}
