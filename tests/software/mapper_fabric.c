/* A network of switches for the mapper to find its way in, at the level of scouts. Ports are
 * counted through: all of switch 0, then of switch 1 …, then one for each host. Built with mapper.c
 * and updown.c into a library for test_mapper.py.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <string.h>

#include "mapper.h"

#define PORTS 256

static int cable[PORTS];       /* what the other end is plugged into, or -1 */
static int owner[PORTS];       /* switch, or -1 - node for a host's */
static int first[PORTS];       /* first port of the same switch */
static int count[PORTS];       /* how many it has */
static int host[DIBBER_NODES]; /* port of a host, or -1 */
static unsigned int loss;      /* one in so many scouts is lost, 0: none */
static unsigned int scouts;

void fabric_clear(unsigned int lose_one_in)
{
	memset(cable, 0xff, sizeof(cable));
	memset(host, 0xff, sizeof(host));
	loss = lose_one_in;
	scouts = 0;
}

void fabric_switch(int number, int at, int ports)
{
	for (int port = at; port < at + ports; port++) {
		owner[port] = number;
		first[port] = at;
		count[port] = ports;
	}
}

void fabric_host(int node, int at)
{
	owner[at] = -1 - node;
	host[node] = at;
}

void fabric_plug(int one, int other)
{
	cable[one] = other;
	cable[other] = one;
}

void fabric_unplug(int one)
{
	if (cable[one] >= 0)
		cable[cable[one]] = -1;
	cable[one] = -1;
}

/* The port at which a packet from this one ends, -1 where it is dropped; the ports by which it left
 * are in `left`. */
int fabric_walk(int from, unsigned int route, int *left)
{
	int at = from;
	unsigned int hops = route & 15;

	for (unsigned int i = 0;; i++) {
		left[i] = at;
		at = cable[at];
		if (at < 0)
			return -1;
		if (owner[at] < 0)
			return i == hops ? at : -1; /* a host takes what has no route left, and
						       nothing else */
		if (i == hops)
			return -1; /* a switch drops that */
		at = first[at] + (at - first[at] + (int)(route >> (4 * (i + 1)) & 15)) % count[at];
	}
}

static int ask(void *context, uint32_t route, uint32_t back, unsigned int *node)
{
	int left[16], own = *(int *)context, at = fabric_walk(host[own], route, left);

	if ((loss && ++scouts % loss == 0) || at < 0)
		return DIB_HEARD_NOBODY;
	*node = (unsigned int)(-1 - owner[at]);
	if (at == host[own])
		return DIB_HEARD_SELF;
	return fabric_walk(at, back, left) == host[own] ? DIB_HEARD_HOST : DIB_HEARD_NOBODY;
}

static int broken(void *context, uint32_t route, uint32_t back, unsigned int *node)
{
	int *left = context;

	(void)route, (void)back;
	*node = 0;
	return (*left)-- > 0 ? DIB_HEARD_SELF : DIB_ERR_LOST;
}

int fabric_map(int node, unsigned int attempts, struct dib_network *network)
{
	return dib_discover(ask, &node, (unsigned int)node, attempts, network);
}

/* With an `ask` that says that everything comes round, and then fails. */
int fabric_fail(int after, struct dib_network *network)
{
	return dib_discover(broken, &after, 0, 1, network);
}
