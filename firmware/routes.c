/* The routing table: up to DIBBER_ROUTES routes to each node. The host enters them. Hardware
 * puts the current route in front of each packet to the node. When replays do not help, the
 * next valid route becomes the current one. The table lies in mcp_shared, where the host reads
 * it.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "routes.h"

#include "command.h"
#include "flows/flow.h"
#include "trace.h"

/* The number of hops is in the lowest bits of a route. */
#define HOPS(route) ((route) & 0xf)

static struct set known;	    /* nodes that have routes */
static uint32_t seen[DIBBER_NODES]; /* what it acknowledged last, on both lanes */

/* The place, plus one, of a route that was left because its link went down; 0: none was. */
static uint8_t left[DIBBER_NODES];
static uint32_t link_changed; /* when a link went up or down last */
#define LINK_TICKS 20	      /* that all links must be as they are before a route is taken again */

/* Hardware's table keeps what the last program wrote, because acknowledgements must go on
 * while no program runs. */
static void use(uint32_t node, uint32_t place)
{
	struct dibber_mcp_routes *routes = &mcp_shared.routes[node];

	routes->current = place;
	REG_WRITE(ROUTE, routes->valid ? routes->route[place] : 0);
	REG_WRITE(ROUTE_WRITE, node);
}

RARE void routes_boot(void)
{
	for (uint32_t node = 0; node < DIBBER_NODES; node++)
		use(node, 0);
}

RARE bool route_is_possible(uint32_t route)
{
	if (FIELD_GET(LINK, TWO, REG_READ(LINK)))
		route &= ~DIBBER_ROUTE_LINK;
	return HOPS(route) <= DIBBER_ROUTE_HOPS;
}

/* Whether the link of a route is among `links`, one bit a link. */
static bool begins_at(uint32_t route, uint32_t links)
{
	return links >> (route & DIBBER_ROUTE_LINK ? 1 : 0) & 1;
}

static uint32_t current_route(uint32_t node)
{
	struct dibber_mcp_routes *routes = &mcp_shared.routes[node];

	return routes->valid ? routes->route[routes->current] : 0;
}

RARE bool routes_up(uint32_t node)
{
	return begins_at(current_route(node), FIELD_GET(LINK, UP, REG_READ(LINK)));
}

/* The places of a node's routes whose link is UP; all valid ones, if there is none. */
static RARE uint32_t usable(struct dibber_mcp_routes *routes)
{
	uint32_t up = FIELD_GET(LINK, UP, REG_READ(LINK));
	uint32_t places = 0;

	for (uint32_t place = 0; place < DIBBER_ROUTES; place++)
		if (routes->valid >> place & 1 && begins_at(routes->route[place], up))
			places |= 1u << place;
	return places ? places : routes->valid;
}

/* Take the first usable route from `place` on. */
static RARE void turn(uint32_t node, uint32_t place)
{
	struct dibber_mcp_routes *routes = &mcp_shared.routes[node];

	if (!routes->valid)
		return;
	place = next_turn(usable(routes), place);
	if (place == routes->current)
		return;
	routes->changes++;
	use(node, place);
	trace(DIBBER_TRACE_ROUTE, node, place);
}

RARE enum dibber_status routes_set(uint32_t tag)
{
	uint32_t word = slot_word(tag, 0);
	uint32_t place = word >> 16 & 0xff;
	uint32_t valid = word >> 24;
	uint32_t node = slot_word(tag, offsetof(struct dibber_route_command, node)) & 0xffff;
	uint32_t route = slot_word(tag, offsetof(struct dibber_route_command, route));
	struct dibber_mcp_routes *routes;

	if (node >= DIBBER_NODES || node == command_node || place >= DIBBER_ROUTES || valid > 1 ||
	    !route_is_possible(route))
		return DIBBER_STATUS_BAD_ARGUMENT;
	routes = &mcp_shared.routes[node];
	left[node] = 0;
	routes->route[place] = route;
	routes->valid = (routes->valid & ~(1u << place)) | valid << place;
	if (routes->valid)
		set_add(&known, node);
	else
		set_remove(&known, node);
	use(node, routes->valid ? lowest_bit(usable(routes)) : 0);
	return DIBBER_STATUS_OK;
}

/* The link of the route that was left is UP again, and stays so: take this route again. */
static RARE bool come_back(uint32_t node, uint32_t now)
{
	uint32_t place = left[node] - 1u;

	if (!left[node] || now - link_changed < LINK_TICKS * mcp_tick ||
	    !begins_at(mcp_shared.routes[node].route[place], FIELD_GET(LINK, UP, REG_READ(LINK))))
		return false;
	left[node] = 0;
	use(node, place);
	trace(DIBBER_TRACE_ROUTE, node, place);
	return true;
}

RARE void routes_tick(uint32_t now, struct set *back)
{
	struct set nodes;
	uint32_t node;

	set_copy(&nodes, &known);
	while (set_take(&nodes, &node)) {
		uint32_t acked = REG_READ_AT(ACKED, MCP_EXPRESS + node) |
				 REG_READ_AT(ACKED, MCP_BULK + node) << 16;

		if (seen[node] != acked)
			mcp_shared.routes[node].heard = now;
		seen[node] = acked;
		if (come_back(node, now))
			set_add(back, node);
	}
}

RARE void routes_turn(uint32_t node)
{
	left[node] = 0;
	turn(node, mcp_shared.routes[node].current + 1u);
}

RARE bool routes_link(uint32_t node, uint32_t changed)
{
	uint32_t place = mcp_shared.routes[node].current;
	bool before = begins_at(current_route(node), changed);

	link_changed = REG_READ(CYCLES_LOW);
	if (!routes_up(node)) {
		turn(node, place + 1u);
		if (mcp_shared.routes[node].current != place && !left[node])
			left[node] = place + 1;
	}
	return before && routes_up(node);
}
