/* This file is part of Dibber. */
/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The table of puts that were taken and not completed. A tag belongs to one slot, so that finding
 * a place never fails and the tag in JOB_DONE is the index. What happens to a transfer once it
 * has PSNs is its flow's affair (flow.c).
 */

#include "mcp.h"
#include "registers.h"

struct transfer transfers[MCP_TRANSFERS];

static uint32_t space;	/* jobs that can be queued for certain; by now there may be more */

bool transfer_is_free(uint32_t tag)
{
	return !transfers[tag].outstanding && !transfers[tag].job;
}

void transfer_submit(uint32_t tag, uint32_t node, uint32_t length, uint32_t cookie, bool solicit)
{
	struct transfer *transfer = &transfers[tag];

	transfer->cookie = cookie;
	transfer->length = length;
	transfer->node = node;
	transfer->status = DIBBER_STATUS_OK;
	transfer->solicit = solicit;
	transfer->outstanding = 1;
	flow_append(node, tag);
	transfer_start(tag);
}

bool transfer_has_space(void)
{
	if (!space)
		space = REG_READ(JOB_SPACE);
	return space;
}

void transfer_start(uint32_t tag)
{
	struct transfer *transfer = &transfers[tag];
	struct flow *flow = &flows[transfer->node];

	transfer->first = flow->next;
	transfer->end = transfer->first + packets_of(transfer->length);
	transfer->job = 1;
	flow->next = transfer->end;

	REG_WRITE(JOB_SLOT, FIELD_PUT(JOB_SLOT, SLOT, tag % DIBBER_SLOTS) |
			    FIELD_PUT(JOB_SLOT, ENDPOINT, tag / DIBBER_SLOTS));
	REG_WRITE(JOB_FLOW, FIELD_PUT(JOB_FLOW, PSN, transfer->first & 0xffff) |
			    FIELD_PUT(JOB_FLOW, INCARNATION, flow->incarnation) |
			    FIELD_PUT(JOB_FLOW, NODE, transfer->node));
	REG_WRITE(JOB_LENGTH, transfer->length);
	REG_WRITE(JOB_SKIP, 0);
	REG_WRITE(JOB_START, tag);
	space--;

	/* The first one in flight starts the clock. */
	if (flow->head == tag)
		flow->progress = REG_READ(CYCLES_LOW);
	trace(TRACE_JOB, tag, transfer->first);
}

void transfer_complete(uint32_t tag)
{
	struct transfer *transfer = &transfers[tag];

	transfer->outstanding = 0;
	command_complete(tag / DIBBER_SLOTS, transfer->cookie, transfer->length, transfer->node,
			 transfer->status, transfer->solicit);
}

static void job_done(void)
{
	uint32_t done = REG_READ(JOB_DONE);
	uint32_t tag = FIELD_GET(JOB_DONE, TAG, done);

	REG_WRITE(JOB_DONE_POP, 1);
	if (tag >= MCP_TRANSFERS || !transfers[tag].job) {
		trace(TRACE_JOB_UNKNOWN, done, 0);
		return;
	}
	transfers[tag].job = 0;
	/* One that was given up has its completion already; now its slot may be used again. */
	if (transfers[tag].outstanding)
		flow_job_done(tag, done);
}

APART uint32_t transfer_done_handler(void)
{
	uint32_t done = 0;

	do {
		job_done();
		done++;
	} while (done < MCP_BATCH && (REG_READ(EVENTS) & EVENT(JOB_DONE)));
	return done;
}
