/* The routing table: up to DIBBER_ROUTES routes to each node. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_ROUTES_H
#define MCP_ROUTES_H

#include "runtime.h"

void routes_boot(void);

/* Whether a route's word has no more than DIBBER_ROUTE_HOPS hops. */
bool route_is_possible(uint32_t route);

/* ROUTE_SET in slot `tag` of endpoint 0. */
enum dibber_status routes_set(uint32_t tag);

/* The current route to a node does not work: take the next valid one, if there is one. */
void routes_turn(uint32_t node);

/* See by their acknowledgements which nodes with routes were heard. `now` is the clock. */
void routes_tick(uint32_t now);

#endif
