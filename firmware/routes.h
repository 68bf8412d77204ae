/* The routing table: up to DIBBER_ROUTES routes to each node. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_ROUTES_H
#define MCP_ROUTES_H

#include "sets.h"

void routes_boot(void);

/* Whether a route's word has no more than DIBBER_ROUTE_HOPS hops. */
bool route_is_possible(uint32_t route);

/* ROUTE_SET in slot `tag` of endpoint 0. */
enum dibber_status routes_set(uint32_t tag);

/* The current route to a node does not work: take the next valid one, if there is one. */
void routes_turn(uint32_t node);

/* Whether the link of the current route to a node is UP. */
bool routes_up(uint32_t node);

/* The links in `changed`, one bit each, went up or down. If that of the node's route is down, take
 * a route of the other link, if there is one. Returns whether the node's flows must be rewound:
 * their link changed, and they have one that is UP. */
bool routes_link(uint32_t node, uint32_t changed);

/* See by their acknowledgements which nodes with routes were heard. `now` is the clock. Nodes whose
 * route is by a link again that was down are added to `back`. */
void routes_tick(uint32_t now, struct set *back);

#endif
