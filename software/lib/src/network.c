/* Scouts and routes of a card. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <string.h>

#include "admin.h"
#include "card.h"
#include "error.h"
#include "mapper.h"
#include "transport.h"

/* Timeout of a scout: 20 µs at 125 MHz. The other end answers within one turn of its event loop. */
#define TIMEOUT	    2500u
#define ATTEMPTS    16u
#define CYCLES_MOST (1u << 20)
#define HOPS(route) ((route) & 15u)

static unsigned int links_of(const struct dib_card *card)
{
	return 1u + (card->fixed.features >> DIBBER_HOST_FEATURES_TWO_LINKS_SHIFT & 1u);
}

static bool is_possible(const struct dib_card *card, uint32_t route)
{
	if (links_of(card) > 1)
		route &= ~(uint32_t)DIBBER_ROUTE_LINK;
	return HOPS(route) <= DIBBER_ROUTE_HOPS;
}

/* Send a scout. Returns an enum dib_heard, or an error. */
static int scout(struct dib_card *card, uint32_t route, uint32_t back, uint32_t timeout,
		 uint32_t question, struct dib_heard_from *from)
{
	struct dibber_route_command command = {
		.opcode = DIBBER_OPCODE_SCOUT,
		.timeout = timeout,
		.route = route,
		.back = back,
		.question = question,
	};
	struct dibber_queue_entry entry;
	int rc = dib_admin_run(card, DIB_CARD, &command, "sending a scout", &entry);

	if (rc)
		return rc;
	if (entry.status == DIBBER_STATUS_TIMEOUT)
		return DIB_HEARD_NOBODY;
	if (entry.status != DIBBER_STATUS_OK)
		return dib_fail(DIB_ERR_COMMAND, "sending a scout: %s (%s)",
				dib_status_name(entry.status), dib_status_string(entry.status));
	if (entry.node >= card->fixed.nodes)
		return dib_fail(DIB_ERR_PROTOCOL, "a scout was answered by node %u of %u",
				entry.node, card->fixed.nodes);
	from->node = entry.node;
	from->word = entry.length;
	switch (entry.key) {
	case 0:
		return DIB_HEARD_HOST;
	case 1:
		return DIB_HEARD_SELF;
	case 2:
		return DIB_HEARD_SWITCH;
	default:
		return dib_fail(DIB_ERR_PROTOCOL, "a scout ended in an unknown way, %u", entry.key);
	}
}

int dib_scout(struct dib_card *card, uint32_t route, uint32_t back, uint32_t timeout,
	      unsigned int *node)
{
	struct dib_heard_from from;
	int rc;

	rc = dib_check_card(card);
	if (rc)
		return rc;
	if (!node)
		return dib_fail(DIB_ERR_ARGUMENT, "no place for the node given");
	if (!is_possible(card, route) || !is_possible(card, back))
		return dib_fail(DIB_ERR_ARGUMENT, "a route of more than %u switches",
				DIBBER_ROUTE_HOPS);
	if (!timeout || timeout > CYCLES_MOST)
		return dib_fail(DIB_ERR_ARGUMENT, "a scout can wait for 1 to %u cycles, not %u",
				CYCLES_MOST, timeout);
	rc = dib_card_enter(card, DIB_CARD);
	if (rc)
		return rc;
	rc = scout(card, route, back, timeout, DIB_ASK(MAGIC), &from);
	dib_card_leave(card);
	if (rc < 0)
		return rc;
	if (rc == DIB_HEARD_NOBODY)
		return dib_fail(DIB_ERR_NOT_FOUND,
				"no node answered at the end of route 0x%08x in %u cycles", route,
				timeout);
	if (rc == DIB_HEARD_SWITCH)
		return dib_fail(DIB_ERR_NOT_FOUND, "route 0x%08x ends at a switch", route);
	*node = from.node;
	return 0;
}

int dib_switch_ask(struct dib_card *card, uint32_t route, uint32_t back, uint32_t question,
		   uint32_t *word)
{
	struct dib_heard_from from;
	uint32_t allowed = DIBBER_SWITCH_ASK_WORD | DIBBER_SWITCH_ASK_WRITE;
	int rc;

	rc = dib_check_card(card);
	if (rc)
		return rc;
	if (!word)
		return dib_fail(DIB_ERR_ARGUMENT, "no place for the word given");
	if (!is_possible(card, route) || !is_possible(card, back))
		return dib_fail(DIB_ERR_ARGUMENT, "a route of more than %u switches",
				DIBBER_ROUTE_HOPS);
	if (question & DIBBER_SWITCH_ASK_WRITE)
		allowed |= 0xffff0000;
	if (question & ~allowed)
		return dib_fail(DIB_ERR_ARGUMENT, "0x%08x is no question to a switch", question);
	rc = dib_card_enter(card, DIB_CARD);
	if (rc)
		return rc;
	rc = scout(card, route, back, TIMEOUT, question, &from);
	dib_card_leave(card);
	if (rc < 0)
		return rc;
	if (rc == DIB_HEARD_NOBODY)
		return dib_fail(DIB_ERR_NOT_FOUND,
				"no switch answered at the end of route 0x%08x in %u cycles", route,
				TIMEOUT);
	if (rc != DIB_HEARD_SWITCH)
		return dib_fail(DIB_ERR_NOT_FOUND, "route 0x%08x ends at node %u, not a switch",
				route, from.node);
	*word = from.word;
	return 0;
}

static int ask(void *card, uint32_t route, uint32_t back, uint32_t question,
	       struct dib_heard_from *from)
{
	return scout(card, route, back, TIMEOUT, question, from);
}

/* Nodes of the ring that a card is on; 0: it is on none, or the ring is not whole. */
static int ring_of(struct dib_card *card, uint32_t *nodes)
{
	uint32_t peer;
	int rc = dib_read_register(card, DIBBER_HOST_LINK_PEER, &peer);

	if (rc)
		return rc;
	*nodes = peer >> DIBBER_HOST_LINK_PEER_NODES_SHIFT & DIBBER_HOST_LINK_PEER_NODES_MASK;
	if (!(card->fixed.features & 1u << DIBBER_HOST_FEATURES_RING_SHIFT))
		*nodes = 0;
	if (*nodes > DIB_NETWORK_PORTS)
		return dib_fail(DIB_ERR_PROTOCOL, "the card says that its ring has %u nodes",
				*nodes);
	return 0;
}

int dib_network_map(struct dib_card *card, unsigned int attempts, struct dib_network *network)
{
	uint32_t own, nodes;
	int rc;

	rc = dib_check_card(card);
	if (rc)
		return rc;
	if (!network)
		return dib_fail(DIB_ERR_ARGUMENT, "no place for the map given");
	if (!attempts || attempts > ATTEMPTS)
		return dib_fail(DIB_ERR_ARGUMENT, "1 to %u attempts, not %u", ATTEMPTS, attempts);
	rc = dib_card_enter(card, DIB_CARD);
	if (rc)
		return rc;
	rc = dib_read_register(card, DIBBER_HOST_NODE_ID, &own);
	if (!rc && (own >= card->fixed.nodes || own >= DIBBER_NODES))
		rc = dib_fail(DIB_ERR_PROTOCOL, "the card says that it is node %u of %u", own,
			      card->fixed.nodes);
	if (!rc)
		rc = ring_of(card, &nodes);
	if (!rc && nodes <= 2)
		rc = dib_discover(ask, card, own, links_of(card), attempts, network);
	/* The ring may have become whole meanwhile. */
	if (!rc && nodes == 0)
		rc = ring_of(card, &nodes);
	if (!rc && nodes > 2)
		rc = dib_discover_ring(ask, card, own, attempts, nodes, network);
	dib_card_leave(card);
	return rc;
}

int dib_route_set(struct dib_card *card, unsigned int node, unsigned int place, uint32_t route,
		  int valid)
{
	struct dibber_route_command command = {
		.opcode = DIBBER_OPCODE_ROUTE_SET,
		.place = (uint8_t)place,
		.valid = valid != 0,
		.node = (uint16_t)node,
		.route = route,
	};
	struct dibber_queue_entry entry;
	int rc;

	rc = dib_check_card(card);
	if (rc)
		return rc;
	if (node >= card->fixed.nodes || place >= DIB_NETWORK_ROUTES || !is_possible(card, route))
		return dib_fail(
			DIB_ERR_ARGUMENT,
			"node %u, place %u, route 0x%08x: below %u, below %u, up to %u switches",
			node, place, route, card->fixed.nodes, DIB_NETWORK_ROUTES,
			DIBBER_ROUTE_HOPS);
	rc = dib_card_enter(card, DIB_CARD);
	if (rc)
		return rc;
	rc = dib_admin_run(card, DIB_CARD, &command, "entering a route", &entry);
	if (!rc && entry.status == DIBBER_STATUS_BAD_ARGUMENT)
		rc = dib_fail(DIB_ERR_ARGUMENT, "node %u is this card itself", node);
	else if (!rc && entry.status != DIBBER_STATUS_OK)
		rc = dib_fail(DIB_ERR_COMMAND, "entering a route: %s (%s)",
			      dib_status_name(entry.status), dib_status_string(entry.status));
	dib_card_leave(card);
	return rc;
}

int dib_routes_get(struct dib_card *card, unsigned int node, struct dib_routes *routes)
{
	struct dibber_mcp_routes known;
	int rc;

	rc = dib_check_card(card);
	if (rc)
		return rc;
	if (!routes)
		return dib_fail(DIB_ERR_ARGUMENT, "no place for the routes given");
	if (node >= card->fixed.nodes)
		return dib_fail(DIB_ERR_ARGUMENT, "node %u: this card knows nodes 0 to %u", node,
				card->fixed.nodes - 1);
	if (!card->firmware && !card->transport->observes)
		return dib_fail(DIB_ERR_NO_FIRMWARE, "routes: load a control program first");
	rc = dib_firmware_read(card,
			       dib_shared(card) +
				       (uint32_t)offsetof(struct dibber_mcp_shared, routes) +
				       node * (uint32_t)sizeof(known),
			       &known, sizeof(known));
	if (rc)
		return rc;
	memcpy(routes->route, known.route, sizeof(routes->route));
	routes->valid = known.valid;
	routes->current = known.current;
	routes->heard = known.heard;
	routes->changes = known.changes;
	return 0;
}
