/* Endpoints that are being closed. Commands that were not taken end as FLUSHED, the others end
 * as usual. ENDPOINT_CLOSE completes behind all of them.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "closing.h"

#include "command.h"
#include "operations.h"
#include "trace.h"

/* Whether the engine has a job of the slot's former command, which it may keep for ever. */
static bool is_abandoned(uint32_t tag)
{
	return !transfer_is_free(tag) && transfers[tag].state == TRANSFER_FREE;
}

/* End a command that was not taken. False: it must wait for its slot, or there is none. */
static bool flush(uint32_t index)
{
	struct endpoint *endpoint = &endpoints[index];
	uint32_t tag = command_tag(index);
	/* Read before COMMAND_PENDING, which follows the room with a delay. */
	bool room = REG_READ(QUEUE_ROOM) >> index & 1;

	if (!endpoint->close_left)
		return false;
	if (REG_READ(COMMAND_PENDING) >> index & 1) {
		uint32_t cookie = COMMAND_WORD(tag, cookie);

		endpoint->close_left--;
		command_take(index);
		command_complete(tag, cookie, 0, 0, DIBBER_STATUS_FLUSHED, 0, false);
		return true;
	}
	if (room && !is_abandoned(tag))
		return false;
	/* The remaining commands end without completions. */
	endpoint->close_left = 0;
	return true;
}

/* Whether nothing of the endpoint is under way, and no completion is on its way to its queue.
 * Of endpoint 0 the closing command itself is left. */
static bool is_closed(uint32_t index)
{
	return !endpoints[index].close_left && endpoints[index].outstanding == !index &&
	       !(REG_READ(FAST_BUSY) >> index & 1) && queue_is_idle();
}

RARE uint32_t closing_step(void)
{
	uint32_t done = 0;

	for (uint32_t mask = command_closing; mask && done < MCP_BATCH; mask &= mask - 1) {
		uint32_t index = lowest_bit(mask);
		struct endpoint *endpoint = &endpoints[index];

		if (flush(index) || operations_close_step(index)) {
			done++;
		} else if (is_closed(index)) {
			if (index) {
				REG_WRITE(COMMAND_SKIP, index);
				REG_WRITE(QUEUE_CLOSE, QUEUE_COMPLETIONS(index));
			}
			endpoint->state = index ? ENDPOINT_CLOSED : ENDPOINT_ADMIN;
			command_closing &= ~(1u << index);
			trace(DIBBER_TRACE_CLOSE, index, REG_READ_AT(HEAD, index));
			command_complete(endpoint->close_tag, endpoint->close_cookie, 0, 0,
					 DIBBER_STATUS_OK, 0, endpoint->close_solicit);
			done++;
		}
	}
	return done;
}
