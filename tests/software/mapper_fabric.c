/* A network of switches for the mapper to find its way in, at the level of scouts. Ports are
 * counted through: all of switch 0, then of switch 1 …, then those of hosts. Built with mapper.c
 * and updown.c into a library for mapper_fabric.py.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <string.h>

#include "mapper.h"

#define PORTS 256

static int cable[PORTS];		  /* what the other end is plugged into, or -1 */
static int owner[PORTS];		  /* switch, or -1 - node for a host's */
static int first[PORTS];		  /* first port of the same switch */
static int count[PORTS];		  /* how many it has */
static uint32_t word[PORTS];		  /* that a scout learns at a host's port */
static int host[DIB_LINKS][DIBBER_NODES]; /* port of each link of a host, or -1 */
static unsigned int loss;		  /* one in so many scouts is lost, 0: none */
static unsigned int scouts;
static unsigned int telling; /* a bit for each switch that answers scouts */

void fabric_clear(unsigned int lose_one_in)
{
	memset(cable, 0xff, sizeof(cable));
	memset(host, 0xff, sizeof(host));
	memset(word, 0, sizeof(word));
	loss = lose_one_in;
	scouts = 0;
	telling = 0;
}

void fabric_tell(unsigned int switches)
{
	telling = switches;
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
	host[0][node] = at;
}

/* A host with two links. Two hosts with one number have different `born`. */
void fabric_host_of_two(int node, int at, int second, unsigned int born)
{
	fabric_host(node, at);
	owner[second] = -1 - node;
	host[1][node] = second;
	word[at] = born << 8 | DIBBER_SCOUTED_TWO;
	word[second] = word[at] | DIBBER_ROUTE_LINK;
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
 * are in `left`. A packet that ends at a switch comes to one of its ports. */
static int walk(int from, unsigned int route, int *left)
{
	int at = from;
	unsigned int hops = route & DIBBER_ROUTE_HOPS;

	for (unsigned int i = 0;; i++) {
		left[i] = at;
		at = cable[at];
		if (at < 0)
			return -1;
		if (owner[at] < 0)
			return i == hops ? at : -1; /* a host takes what has no route left, and
						       nothing else */
		if (i == hops)
			return at;
		at = first[at] + (at - first[at] + (int)(route >> (4 * (i + 1)) & 15)) % count[at];
	}
}

/* As walk(), but switches drop what ends at them. */
int fabric_walk(int from, unsigned int route, int *left)
{
	int at = walk(from, route, left);

	return at < 0 || owner[at] < 0 ? at : -1;
}

static bool is_own(int node, int at)
{
	return at >= 0 && (at == host[0][node] || at == host[1][node]);
}

/* A word of the switch of this port, to which a scout came. */
static uint32_t word_of(int at, uint32_t question)
{
	switch (question) {
	case DIB_ASK(MAGIC):
		return DIBBER_SWITCH_SIGNATURE;
	case DIB_ASK(IDENTITY):
		return 0xabc0u + (uint32_t)owner[at];
	case DIB_ASK(GEOMETRY):
		return 0x2000400u | (uint32_t)count[at];
	case DIB_ASK(ASKED_AT):
		return (uint32_t)(at - first[at]);
	default: /* PORT_STATUS */
		return cable[first[at] + (int)(question - DIB_ASK(PORT_STATUS))] < 0
			       ? DIBBER_LINK_STATE_DOWN
			       : DIBBER_LINK_STATE_UP;
	}
}

static int ask(void *context, uint32_t route, uint32_t back, uint32_t question,
	       struct dib_heard_from *from)
{
	int left[16], own = *(int *)context;
	int at = walk(host[route & DIBBER_ROUTE_LINK ? 1 : 0][own], route, left);
	bool arrives;

	if ((loss && ++scouts % loss == 0) || at < 0)
		return DIB_HEARD_NOBODY;
	if (is_own(own, at)) {
		from->node = (unsigned int)own;
		from->word = word[at] & DIBBER_ROUTE_LINK;
		return DIB_HEARD_SELF;
	}
	arrives = is_own(own, fabric_walk(at, back, left));
	if (owner[at] < 0) {
		from->node = (unsigned int)(-1 - owner[at]);
		from->word = word[at];
		return arrives ? DIB_HEARD_HOST : DIB_HEARD_NOBODY;
	}
	if (!arrives || !(telling >> owner[at] & 1))
		return DIB_HEARD_NOBODY;
	from->word = word_of(at, question);
	return DIB_HEARD_SWITCH;
}

static int broken(void *context, uint32_t route, uint32_t back, uint32_t question,
		  struct dib_heard_from *from)
{
	int *left = context;

	(void)route, (void)back, (void)question;
	from->node = 0;
	from->word = 0;
	return (*left)-- > 0 ? DIB_HEARD_SELF : DIB_ERR_LOST;
}

int fabric_map(int node, unsigned int attempts, struct dib_network *network)
{
	return dib_discover(ask, &node, (unsigned int)node, host[1][node] < 0 ? 1 : 2, attempts,
			    network);
}

/* A ring: the node at each address; -1 answers nothing. */
struct ring {
	unsigned int address, nodes;
	const int *at;
};

static int ask_ring(void *context, uint32_t route, uint32_t back, uint32_t question,
		    struct dib_heard_from *from)
{
	struct ring *ring = context;
	uint32_t turn = route >> 4 & 15, target = (ring->address + turn) % ring->nodes;

	(void)question;
	/* One hop there, and one on to where it began. */
	if (route != (1 | turn << 4) || back != (1 | (ring->nodes - turn) << 4) || !turn ||
	    turn >= ring->nodes)
		return DIB_ERR_PROTOCOL;
	if (ring->at[target] < 0)
		return DIB_HEARD_NOBODY;
	from->node = (unsigned int)ring->at[target];
	from->word = 0;
	return DIB_HEARD_HOST;
}

int fabric_ring(int node, unsigned int address, unsigned int nodes, const int *at,
		struct dib_network *network)
{
	struct ring ring = { .address = address, .nodes = nodes, .at = at };

	return dib_discover_ring(ask_ring, &ring, (unsigned int)node, 1, nodes, network);
}

/* With an `ask` that says that everything comes round, and then fails. */
int fabric_fail(int after, struct dib_network *network)
{
	return dib_discover(broken, &after, 0, 1, 1, network);
}
