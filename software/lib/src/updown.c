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

#define CANDIDATES 256u /* paths by each link that are tried for the routes to one node */

struct path {
	uint32_t hops;
	uint8_t link;		       /* of this card */
	uint8_t end;		       /* of the target */
	uint8_t in[DIBBER_ROUTE_HOPS]; /* ports */
	uint8_t out[DIBBER_ROUTE_HOPS];
	uint8_t at[DIBBER_ROUTE_HOPS]; /* switches */
};

struct search {
	const struct dib_network *network;
	unsigned int node;
	uint32_t found;
	uint32_t found_by[DIB_LINKS];
	struct path paths[DIB_LINKS * CANDIDATES];
};

static bool is_up(const struct dib_network *network, uint32_t from, uint32_t to)
{
	const struct dib_switch *sw = network->sw;

	return sw[to].level < sw[from].level || (sw[to].level == sw[from].level && to < from);
}

static void take(struct search *search, const struct path *path, uint8_t end)
{
	if (search->found_by[path->link] == CANDIDATES)
		return;
	search->found_by[path->link]++;
	search->paths[search->found] = *path;
	search->paths[search->found++].end = end;
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
			if (peer->kind == DIB_PEER_HOST && peer->number == search->node)
				take(search, path, peer->port);
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

/* The same by a link of this card. */
static void look_by(struct search *search, uint8_t link, uint32_t hops)
{
	const struct dib_neighbour *uplink = &search->network->uplink[link];
	struct path path = { .hops = hops ? 1 : 0, .link = link };

	if (!hops && uplink->kind == DIB_PEER_HOST && uplink->number == search->node)
		take(search, &path, uplink->port);
	if (!hops || uplink->kind != DIB_PEER_SWITCH)
		return;
	path.at[0] = (uint8_t)uplink->number;
	path.in[0] = uplink->port;
	look(search, &path, hops, false);
}

static uint32_t route_of(const struct dib_network *network, const struct path *path)
{
	uint32_t route = path->hops | (path->link ? DIBBER_ROUTE_LINK : 0);

	for (uint32_t i = 0; i < path->hops; i++) {
		uint32_t ports = network->sw[path->at[i]].ports;

		route |= (path->out[i] + ports - path->in[i]) % ports << (4 * (i + 1));
	}
	return route;
}

/* What this path shares with the paths before it: links between switches, and the cables of both
 * cards. These count most, so the second path has the other link of this card, if there is one. */
static uint32_t shared(const struct search *search, const struct path *path, const uint32_t *taken,
		       uint32_t count)
{
	uint32_t links = 0;

	for (uint32_t n = 0; n < count; n++) {
		const struct path *other = &search->paths[taken[n]];

		links += DIBBER_ROUTE_HOPS *
			 (2u * (other->link == path->link) + (other->end == path->end));
		for (uint32_t i = 0; i + 1 < path->hops; i++)
			for (uint32_t j = 0; j + 1 < other->hops; j++)
				links += other->at[j] == path->at[i] &&
					 other->out[j] == path->out[i];
	}
	return links;
}

/* The link that a host with two shall use for what it and `peer` send to each other. The hosts
 * after this one, in the order of their numbers and round again, have links 0 and 1 in turn. So
 * each link of each host has half of the others. */
static uint32_t link_for(const struct dib_network *network, unsigned int host, unsigned int peer)
{
	uint32_t link = 0;

	for (unsigned int n = (host + 1) % DIBBER_NODES; n != peer; n = (n + 1) % DIBBER_NODES)
		link += network->hosts >> n & 1;
	return link & 1;
}

/* Which of the shortest paths is the first. Of those that have the right link at most of their
 * ends, targets at one switch take different ones: they differ by their ports there. So flows to
 * them are spread over parallel links. */
static uint32_t first_of(const struct search *search, uint32_t shortest)
{
	uint32_t link = link_for(search->network, search->network->own, search->node);
	uint32_t end = link_for(search->network, search->node, search->network->own);
	uint32_t best = 0, count = 0, turn = 0, chosen[DIB_LINKS * CANDIDATES];

	for (uint32_t n = 0; n < shortest; n++) {
		const struct path *path = &search->paths[n];
		uint32_t right = 1u + 2u * (path->link == link) + (path->end == end);

		if (right > best) {
			best = right;
			count = 0;
		}
		if (right == best)
			chosen[count++] = n;
	}
	if (search->paths[0].hops) {
		const struct path *path = &search->paths[chosen[0]];
		uint32_t last = path->hops - 1;

		turn = path->at[last];
		for (uint32_t port = 0; port < path->out[last]; port++)
			turn += search->network->sw[path->at[last]].peer[port].kind ==
				DIB_PEER_HOST;
	}
	return chosen[turn % count];
}

int dib_network_routes(const struct dib_network *network, unsigned int node,
		       uint32_t routes[DIB_NETWORK_ROUTES])
{
	struct search search = { .network = network, .node = node };
	uint32_t taken[DIB_NETWORK_ROUTES], count, shortest = 0;

	if (!network || !routes)
		return dib_fail(DIB_ERR_ARGUMENT, "no %s given",
				network ? "place for the routes" : "map");
	if (node >= DIBBER_NODES || network->own >= DIBBER_NODES || node == network->own ||
	    !(network->hosts >> node & 1) || network->conflicts >> node & 1)
		return 0;
	for (uint32_t hops = 0; hops <= DIBBER_ROUTE_HOPS; hops++)
		for (uint8_t link = 0; link < DIB_LINKS; link++)
			look_by(&search, link, hops);

	/* Take a shortest path first, then those that share the fewest links with the taken ones.
	 * Of equal ones the shorter is first. */
	while (shortest < search.found && search.paths[shortest].hops == search.paths[0].hops)
		shortest++;
	for (count = 0; count < DIB_NETWORK_ROUTES && count < search.found; count++) {
		uint32_t best = 0, least = count ? UINT32_MAX : 0;

		if (!count)
			best = first_of(&search, shortest);

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
