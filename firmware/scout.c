/* Scouts: headers outside all flows that find out which node is at the end of a route. A scout
 * of another node is answered along the route that it names. The host's scouts go out one at a
 * time. Each ends with its answer, when it comes round to this card, or after its time. A switch
 * at the end of the route answers the question in the scout's number. Its answer comes in the name
 * of this node, because a switch has no number.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "scout.h"

#include "command.h"
#include "routes.h"

#define TIMEOUT_MAX (1u << 20)
#define ASK_MASK    (DIBBER_SWITCH_ASK_WORD | DIBBER_SWITCH_ASK_WRITE)
#define ASK_BITS    11 /* the sequence of scouts is above, in a write up to bit 15 */

/* `key` of a completion */
enum heard { HEARD_NODE, HEARD_SELF, HEARD_SWITCH };

static struct {
	uint32_t tag; /* of its command */
	uint32_t cookie;
	uint32_t sequence;
	uint32_t number; /* an answer must have the same number */
	uint32_t started;
	uint32_t timeout;
	bool solicit;
} asked;
static uint32_t born; /* the card's clock when this program began, in bits 31:8 */
uint32_t scout_waiting;

RARE void scout_boot(void)
{
	/* An answer to the last program's scout may still come. */
	asked.sequence = cpu_cycles();
	born = REG_READ(CYCLES_LOW) << 8;
}

static RARE void end(uint32_t node, enum dibber_status status, enum heard heard, uint32_t value)
{
	scout_waiting = 0;
	command_complete(asked.tag, asked.cookie, value, node, status, heard, asked.solicit);
}

RARE enum dibber_status scout_ask(uint32_t tag, bool solicit)
{
	uint32_t timeout = slot_word(tag, offsetof(struct dibber_route_command, timeout));
	uint32_t route = slot_word(tag, offsetof(struct dibber_route_command, route));
	uint32_t back = slot_word(tag, offsetof(struct dibber_route_command, back));
	uint32_t question = slot_word(tag, offsetof(struct dibber_route_command, question));
	uint32_t written = question & DIBBER_SWITCH_ASK_WRITE ? 0xffff0000 : 0;

	if (!timeout || timeout > TIMEOUT_MAX || !route_is_possible(route) ||
	    !route_is_possible(back) || question & ~(ASK_MASK | written))
		return DIBBER_STATUS_BAD_ARGUMENT;
	asked.tag = tag;
	asked.cookie = slot_word(tag, offsetof(struct dibber_route_command, cookie));
	asked.solicit = solicit;
	asked.sequence++;
	asked.number = question | (asked.sequence << ASK_BITS & ~written);
	asked.timeout = timeout;
	asked.started = REG_READ(CYCLES_LOW);
	scout_waiting = 1;
	/* Without space in the gateware it is lost, as on a cable that is not there. */
	if (REG_READ(SCOUT_SPACE)) {
		REG_WRITE(SCOUT_ROUTE, route);
		REG_WRITE(SCOUT_BACK, back);
		REG_WRITE(SCOUT_NUMBER, asked.number);
		REG_WRITE(SCOUT_START, FIELD_PUT(SCOUT_START, TARGET, DIBBER_ANYBODY));
	}
	return DIBBER_STATUS_OK;
}

RARE uint32_t scout_step(void)
{
	if (REG_READ(CYCLES_LOW) - asked.started < asked.timeout)
		return 0;
	end(0, DIBBER_STATUS_TIMEOUT, HEARD_NODE, 0);
	return 1;
}

/* What a scout learns of this card. A sender that meets this node twice knows by it whether that is
 * one card with two links, or two cards with one number. */
static RARE uint32_t word_of(uint32_t back)
{
	uint32_t two = FIELD_GET(LINK, TWO, REG_READ(LINK));

	return two ? born | DIBBER_SCOUTED_TWO | (back & DIBBER_ROUTE_LINK) : 0;
}

RARE uint32_t scout_handler(void)
{
	uint32_t came = REG_READ(SCOUT);
	uint32_t number = REG_READ(SCOUT_CAME_NUMBER);
	uint32_t back = REG_READ(SCOUT_CAME_BACK);
	uint32_t source = FIELD_GET(SCOUT, SOURCE, came);
	uint32_t reply = FIELD_GET(SCOUT, REPLY, came);

	REG_WRITE(SCOUT_POP, 0);
	if (reply || source == command_node) {
		if (!scout_waiting || number != asked.number)
			mcp_shared.strays++;
		else if (source != command_node)
			end(source, DIBBER_STATUS_OK, HEARD_NODE, back);
		else if (reply)
			end(source, DIBBER_STATUS_OK, HEARD_SWITCH, back);
		else
			end(source, DIBBER_STATUS_OK, HEARD_SELF, back & DIBBER_ROUTE_LINK);
	} else if (route_is_possible(back) && REG_READ(SCOUT_SPACE)) {
		REG_WRITE(SCOUT_ROUTE, back);
		REG_WRITE(SCOUT_BACK, word_of(back));
		REG_WRITE(SCOUT_NUMBER, number);
		REG_WRITE(SCOUT_START, FIELD_PUT(SCOUT_START, TARGET, source) |
					       FIELD_PUT(SCOUT_START, REPLY, 1));
		mcp_shared.scouts++;
	}
	return 1;
}
