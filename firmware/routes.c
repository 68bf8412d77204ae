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

/* The number of hops is in the lowest four bits of a route. */
#define HOPS(route) ((route) & 0xf)

static struct set known;	    /* nodes that have routes */
static uint32_t seen[DIBBER_NODES]; /* what it acknowledged last, on both lanes */

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
	return HOPS(route) <= DIBBER_ROUTE_HOPS;
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
	routes->route[place] = route;
	routes->valid = (routes->valid & ~(1u << place)) | valid << place;
	if (routes->valid)
		set_add(&known, node);
	else
		set_remove(&known, node);
	use(node, routes->valid ? lowest_bit(routes->valid) : 0);
	return DIBBER_STATUS_OK;
}

RARE void routes_tick(uint32_t now)
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
	}
}

RARE void routes_turn(uint32_t node)
{
	struct dibber_mcp_routes *routes = &mcp_shared.routes[node];
	uint32_t place;

	if (!routes->valid)
		return;
	place = next_turn(routes->valid, routes->current + 1u);
	if (place == routes->current)
		return;
	routes->changes++;
	use(node, place);
	trace(DIBBER_TRACE_ROUTE, node, place);
}
