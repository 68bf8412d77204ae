/* The table of transfers: what was sent from a slot and has not ended. A tag belongs to one
 * slot. So a transfer always has an entry, and the tag in JOB_DONE is its index. The lanes
 * (flows/) handle a transfer while it has PSNs.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "transfer.h"

struct transfer transfers[MCP_TRANSFERS];

/* Lines ---------------------------------------------------------------------------------------- */

void line_append(struct line *line, uint32_t tag)
{
	transfers[tag].next = MCP_NO_TAG;
	if (line->head == MCP_NO_TAG)
		line->head = tag;
	else
		transfers[line->tail].next = tag;
	line->tail = tag;
}

void line_remove(struct line *line, uint32_t tag, uint32_t before)
{
	if (before == MCP_NO_TAG)
		line->head = transfers[tag].next;
	else
		transfers[before].next = transfers[tag].next;
	if (line->tail == tag)
		line->tail = before;
}

void transfer_free_inbox(uint32_t tag)
{
	transfer_free(&transfers[tag]);
	/* The slot stays reserved while the engine has its job. The slot's next get may be the
	 * fast path's, and that needs its job to be the only one. */
	if (transfer_is_free(tag))
		REG_WRITE(INBOX_FREE, tag - MCP_INBOX);
}
