/*
 * Finds hosts and switches with scouts. A switch that answers says which one it is, and at which of
 * its ports the scout came in. So three scouts identify it. Switches that do not answer are found
 * with scouts alone, after Mainwaring, Chun, Schleimer and Wilkerson, "System Area Network
 * Mapping", SPAA 1997.
 *
 * A way is a list of turns. Its reverse has the same turns negated, the last one first. A scout
 * that goes out by a way, turns round, and takes the reverse comes home if there is a switch at
 * the end of the way. If it goes out by one way and comes home by the reverse of another way,
 * both ways lead to the same switch, because the wire into each port comes from one place. Such a
 * scout passes the switches twice. So it comes half as far as one that a switch answers.
 *
 * A ring of three or more nodes is mapped as a switch with a port for each node
 * (docs/design/ring.md). A ring of two works without a route, as a cable does.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <string.h>

#include "mapper.h"

#define TURNS 16u /* that a hop can distinguish */

/* A switch answers one scout at a time and drops others, and all hosts may map at once. So a
 * question to what is there for certain is asked more often, and the first one of all, too. */
#define ATTEMPTS_CERTAIN 32u
#define ATTEMPTS_FIRST	 8u

/* A way that is longer than a scout can take is not tried. */
struct way {
	uint32_t hops;
	uint8_t turn[2 * DIBBER_ROUTE_HOPS + 2];
	uint8_t link; /* where it leaves this card */
	uint8_t back; /* where it comes home */
};

struct mapping {
	dib_ask ask;
	void *context;
	unsigned int attempts;
	struct dib_network *network;
	struct way way[DIB_NETWORK_SWITCHES];	 /* the way to each switch, into its port 0 */
	uint32_t identity[DIB_NETWORK_SWITCHES]; /* of switches that tell */
	uint32_t word[DIBBER_NODES]; /* of a host that was met; 0: not by a second link */
};

/* What a switch says of itself. */
struct told {
	uint32_t identity;
	uint8_t ports;
	uint8_t at; /* the port of arrival, by its own count */
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
	there.back = by->link;
	return there;
}

static uint32_t route_of(const struct way *way)
{
	uint32_t route = way->hops | (way->link ? DIBBER_ROUTE_LINK : 0);

	for (uint32_t i = 0; i < way->hops; i++)
		route |= (uint32_t)way->turn[i] << (4 * (i + 1));
	return route;
}

static int ask_often(struct mapping *mapping, const struct way *way, const struct way *back,
		     uint32_t question, unsigned int attempts, struct dib_heard_from *from)
{
	int heard = DIB_HEARD_NOBODY;

	if (attempts < mapping->attempts)
		attempts = mapping->attempts;

	if (way->hops > DIBBER_ROUTE_HOPS || back->hops > DIBBER_ROUTE_HOPS) {
		mapping->network->truncated = 1;
		return DIB_HEARD_NOBODY;
	}
	for (unsigned int i = 0; i < attempts && heard == DIB_HEARD_NOBODY; i++) {
		heard = mapping->ask(mapping->context, route_of(way), route_of(back), question,
				     from);
		mapping->network->scouts++;
	}
	return heard;
}

static int ask(struct mapping *mapping, const struct way *way, const struct way *back,
	       uint32_t question, struct dib_heard_from *from)
{
	return ask_often(mapping, way, back, question, 1, from);
}

static uint8_t link_of(uint32_t word)
{
	return word & DIBBER_ROUTE_LINK ? 1 : 0;
}

/* Whether a scout by this way comes round, by the link where it shall: 1, 0 or an error. */
static int returns(struct mapping *mapping, const struct way *way)
{
	static const struct way nowhere;
	struct dib_heard_from from;
	int heard = ask(mapping, way, &nowhere, DIB_ASK(MAGIC), &from);

	return heard < 0 ? heard : heard == DIB_HEARD_SELF && link_of(from.word) == way->back;
}

/* Ask the switch at the end of a way what it is. Returns 1, 0 if it does not say all, or an
 * error. */
static int be_told(struct mapping *mapping, const struct way *way, struct told *told)
{
	static const uint32_t questions[] = { DIB_ASK(IDENTITY), DIB_ASK(GEOMETRY),
					      DIB_ASK(ASKED_AT) };
	static const struct way nowhere;
	struct way back = home(&nowhere, way);
	uint32_t words[3];

	for (uint32_t i = 0; i < 3; i++) {
		struct dib_heard_from from;
		int heard = ask_often(mapping, way, &back, questions[i], ATTEMPTS_CERTAIN, &from);

		if (heard != DIB_HEARD_SWITCH)
			return heard < 0 ? heard : 0;
		words[i] = from.word;
	}
	*told = (struct told){ .identity = words[0],
			       .ports = (uint8_t)(words[1] & 0xff),
			       .at = (uint8_t)words[2] };
	return (told->ports == 4 || told->ports == 8 || told->ports == 16) &&
	       words[2] < told->ports;
}

static struct dib_neighbour switch_at(uint32_t number, uint32_t port)
{
	return (struct dib_neighbour){ .kind = DIB_PEER_SWITCH,
				       .port = (uint8_t)port,
				       .number = (uint16_t)number };
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

/* Whether a port of a switch that tells may have a neighbour: 0 if its link is not UP, 1 otherwise,
 * or an error. So no scout waits for an answer that cannot come. */
static int is_up(struct mapping *mapping, uint32_t n, uint32_t port)
{
	const struct dib_switch *sw = &mapping->network->sw[n];
	static const struct way nowhere;
	struct way back = home(&nowhere, &mapping->way[n]);
	struct dib_heard_from from;
	int heard;

	if (!sw->tells)
		return 1;
	heard = ask_often(mapping, &mapping->way[n], &back,
			  DIB_ASK(PORT_STATUS) + (sw->first + port) % sw->ports, ATTEMPTS_CERTAIN,
			  &from);
	if (heard != DIB_HEARD_SWITCH)
		return heard < 0 ? heard : 1;
	return (from.word >> DIBBER_SWITCH_PORT_STATUS_STATE_SHIFT &
		DIBBER_SWITCH_PORT_STATUS_STATE_MASK) == DIBBER_LINK_STATE_UP;
}

static int add_told(struct mapping *mapping, const struct way *way, const struct told *told)
{
	struct dib_network *network = mapping->network;
	struct dib_switch *added = &network->sw[network->switches];

	added->ports = told->ports;
	added->tells = 1;
	added->first = told->at;
	mapping->identity[network->switches] = told->identity;
	mapping->way[network->switches] = *way;
	return (int)network->switches++;
}

/* The port of a known switch, which has told the same. Returns whether there is one. */
static bool find_told(const struct mapping *mapping, const struct told *told,
		      struct dib_neighbour *peer)
{
	const struct dib_network *network = mapping->network;

	for (uint32_t n = 0; n < network->switches; n++) {
		const struct dib_switch *sw = &network->sw[n];

		if (!sw->tells || mapping->identity[n] != told->identity ||
		    sw->ports != told->ports)
			continue;
		*peer = switch_at(n, (uint32_t)(told->at + sw->ports - sw->first) % sw->ports);
		return true;
	}
	return false;
}

/* Find the free port of a known switch that does not tell, at which this way ends. Returns 1 and
 * `peer`, 0 if there is none, or an error. */
static int find(struct mapping *mapping, const struct way *way, struct dib_neighbour *peer)
{
	struct dib_network *network = mapping->network;

	for (uint32_t n = 0; n < network->switches; n++) {
		for (uint32_t port = 0; port < network->sw[n].ports && !network->sw[n].tells;
		     port++) {
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
				*peer = switch_at(n, port);
				return 1;
			}
		}
	}
	return 0;
}

static struct dib_neighbour host_at(unsigned int node, uint8_t link)
{
	return (struct dib_neighbour){ .kind = DIB_PEER_HOST,
				       .port = link,
				       .number = (uint16_t)node };
}

/* Enter a host that answered with a word. A host with two links is met twice. Its words then differ
 * in the link alone. Otherwise two hosts have the same number. */
static void add_host(struct mapping *mapping, unsigned int node, uint32_t word,
		     struct dib_neighbour *peer)
{
	struct dib_network *network = mapping->network;

	/* A card for more nodes than this library may answer. It is no host of this network. */
	if (node >= DIBBER_NODES) {
		network->truncated = 1;
		return;
	}
	*peer = host_at(node, link_of(word));
	if (!(network->hosts >> node & 1))
		mapping->word[node] = word;
	else if ((word ^ mapping->word[node]) == DIBBER_ROUTE_LINK)
		mapping->word[node] = 0;
	else
		network->conflicts |= UINT64_C(1) << node;
	network->hosts |= UINT64_C(1) << node;
}

/* A scout came to this card itself: its other link is at the end of the way. */
static struct dib_neighbour own_place(struct mapping *mapping, uint32_t word,
				      struct dib_neighbour end)
{
	struct dib_neighbour *uplink = &mapping->network->uplink[link_of(word)];

	if (uplink->kind == DIB_PEER_NONE)
		*uplink = end;
	return host_at(mapping->network->own, link_of(word));
}

static int look_at_port(struct mapping *mapping, uint32_t n, uint32_t port)
{
	struct dib_network *network = mapping->network;
	struct dib_neighbour *here = &network->sw[n].peer[port];
	static const struct way nowhere;
	struct way there = onwards(&mapping->way[n], port);
	struct way back = home(&nowhere, &there), round;
	struct dib_neighbour peer;
	struct dib_heard_from from = { 0 };
	struct told told;
	bool tells;
	int rc;

	rc = is_up(mapping, n, port);
	if (rc <= 0)
		return rc;
	if (there.hops > DIBBER_ROUTE_HOPS) {
		network->truncated = 1;
		return 0;
	}
	rc = ask_often(mapping, &there, &back, DIB_ASK(MAGIC),
		       network->sw[n].tells ? ATTEMPTS_CERTAIN : 1, &from);
	if (rc < 0)
		return rc;
	if (rc == DIB_HEARD_HOST) {
		add_host(mapping, from.node, from.word, here);
		return 0;
	}
	if (rc == DIB_HEARD_SELF && network->links > 1) {
		*here = own_place(mapping, from.word, switch_at(n, port));
		return 0;
	}
	tells = rc == DIB_HEARD_SWITCH;
	if (tells) {
		rc = be_told(mapping, &there, &told);
		network->truncated |= rc == 0;
	} else {
		round = onwards(&there, 0);
		round = home(&round, &there);
		rc = returns(mapping, &round);
	}
	if (rc <= 0)
		return rc;

	/* This port is not free any more, although its neighbour is not known yet. */
	here->kind = DIB_PEER_SWITCH;
	rc = tells ? find_told(mapping, &told, &peer) : find(mapping, &there, &peer);
	if (rc < 0)
		return rc;
	if (!rc) {
		if (network->switches == DIB_NETWORK_SWITCHES) {
			network->truncated = 1;
			here->kind = DIB_PEER_NONE;
			return 0;
		}
		rc = tells ? add_told(mapping, &there, &told) : add_switch(mapping, &there);
		if (rc < 0)
			return rc;
		peer = switch_at((uint32_t)rc, 0);
	}
	*here = peer;
	network->sw[peer.number].peer[peer.port] = switch_at(n, port);
	return 0;
}

/* Numbers -------------------------------------------------------------------------------------- */

/* Find the root of the switches that have no number yet: that of the lowest host, and of its links
 * the first one. Returns whether there is one. */
static bool find_root(const struct dib_network *found, const uint32_t *is, uint32_t *root,
		      uint32_t *first)
{
	uint32_t lowest = UINT32_MAX;

	for (uint32_t n = 0; n < found->switches; n++)
		for (uint32_t port = 0; port < found->sw[n].ports && is[n] == UINT32_MAX; port++) {
			const struct dib_neighbour *peer = &found->sw[n].peer[port];
			uint32_t place = 2u * peer->number + peer->port;

			if (peer->kind == DIB_PEER_HOST && place < lowest) {
				lowest = place;
				*root = n;
				*first = port;
			}
		}
	return lowest != UINT32_MAX;
}

/* Number switches and ports by a rule that depends on the network alone, not on the order in which
 * they were found. So all hosts get the same map. The root is the switch of the lowest host, which
 * is at its port 0. The others follow breadth first, in the order of ports; each is entered by its
 * port 0. Switches that only hosts with two links join have a root of their own, by the same
 * rule. */
static void number(struct dib_network *network)
{
	struct dib_network found = *network;
	uint32_t was[DIB_NETWORK_SWITCHES] = { 0 }, first[DIB_NETWORK_SWITCHES] = { 0 },
		 is[DIB_NETWORK_SWITCHES];
	uint32_t known = 0;

	memset(is, 0xff, sizeof(is));
	memset(network->sw, 0, sizeof(network->sw));
	for (uint32_t n = 0; n < known || find_root(&found, is, &was[known], &first[known]); n++) {
		if (n == known)
			is[was[known++]] = n;

		const struct dib_switch *old = &found.sw[was[n]];
		struct dib_switch *new = &network->sw[n];

		new->ports = old->ports;
		new->tells = old->tells;
		new->first = old->tells ? (uint8_t)((old->first + first[n]) % old->ports) : 0;
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
	for (uint32_t link = 0; link < network->links; link++) {
		struct dib_neighbour *at = &network->uplink[link];

		if (at->kind != DIB_PEER_SWITCH)
			continue;
		at->number = (uint16_t)is[found.uplink[link].number];
		at->port =
			(uint8_t)((at->port + network->sw[at->number].ports - first[at->number]) %
				  network->sw[at->number].ports);
	}
}

/* What is at the end of the cable of a link of this card. Returns 0 or an error. */
static int look_at_link(struct mapping *mapping, uint8_t link)
{
	struct dib_network *network = mapping->network;
	struct dib_neighbour *uplink = &network->uplink[link];
	struct way way = { .link = link }, round;
	static const struct way nowhere;
	struct dib_heard_from from = { 0 };
	struct told told;
	bool tells;
	int rc;

	if (uplink->kind != DIB_PEER_NONE)
		return 0;
	rc = ask_often(mapping, &way, &nowhere, DIB_ASK(MAGIC), ATTEMPTS_FIRST, &from);
	if (rc < 0)
		return rc;
	if (rc == DIB_HEARD_HOST) {
		add_host(mapping, from.node, from.word, uplink);
		return 0;
	}
	if (rc == DIB_HEARD_SELF && link_of(from.word) != link) {
		*uplink = own_place(mapping, from.word, host_at(network->own, link));
		return 0;
	}
	tells = rc == DIB_HEARD_SWITCH;
	if (tells) {
		rc = be_told(mapping, &way, &told);
		network->truncated |= rc == 0;
	} else {
		round = onwards(&way, 0);
		round = home(&round, &way);
		rc = returns(mapping, &round);
	}
	if (rc <= 0)
		return rc;

	/* Both links may lead to one switch. */
	rc = tells ? find_told(mapping, &told, uplink) : find(mapping, &way, uplink);
	if (!rc) {
		rc = tells ? add_told(mapping, &way, &told) : add_switch(mapping, &way);
		*uplink = switch_at((uint32_t)rc, 0);
	}
	if (rc < 0)
		return rc;
	network->sw[uplink->number].peer[uplink->port] = host_at(network->own, link);
	return 0;
}

int dib_discover(dib_ask asks, void *context, unsigned int own, unsigned int links,
		 unsigned int attempts, struct dib_network *network)
{
	struct mapping mapping = {
		.ask = asks, .context = context, .attempts = attempts, .network = network
	};

	memset(network, 0, sizeof(*network));
	network->own = (uint16_t)own;
	network->links = links;
	network->hosts = UINT64_C(1) << own;
	for (uint8_t link = 0; link < links; link++) {
		int rc = look_at_link(&mapping, link);

		if (rc < 0)
			return rc;
	}
	for (uint32_t n = 0; n < network->switches; n++) {
		for (uint32_t port = 0; port < network->sw[n].ports; port++) {
			int rc = 0;

			if (network->sw[n].peer[port].kind == DIB_PEER_NONE)
				rc = look_at_port(&mapping, n, port);
			if (rc < 0)
				return rc;
		}
	}
	number(network);
	return 0;
}

int dib_discover_ring(dib_ask asks, void *context, unsigned int own, unsigned int attempts,
		      unsigned int nodes, struct dib_network *network)
{
	struct mapping mapping = {
		.ask = asks, .context = context, .attempts = attempts, .network = network
	};
	static const struct way nowhere;
	struct dib_switch *ring = &network->sw[0];

	memset(network, 0, sizeof(*network));
	network->own = (uint16_t)own;
	network->links = 1;
	network->hosts = UINT64_C(1) << own;
	network->switches = 1;
	network->uplink[0].kind = DIB_PEER_SWITCH;
	ring->ports = (uint8_t)nodes;
	ring->peer[0] = (struct dib_neighbour){ .kind = DIB_PEER_HOST, .number = (uint16_t)own };
	for (uint32_t turn = 1; turn < nodes; turn++) {
		struct way there = onwards(&nowhere, turn), back = onwards(&nowhere, nodes - turn);
		struct dib_heard_from from = { 0 };
		int rc;

		rc = ask_often(&mapping, &there, &back, DIB_ASK(MAGIC), ATTEMPTS_FIRST, &from);
		if (rc < 0)
			return rc;
		if (rc == DIB_HEARD_HOST)
			add_host(&mapping, from.node, from.word, &ring->peer[turn]);
	}
	number(network);
	return 0;
}
