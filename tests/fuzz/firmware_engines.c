/* What stands around the control program while it is fuzzed: engines that do what it says when an
 * input lets them, and checks of all that it says. The register fake itself aborts on a write that
 * has no space, or to what there is not. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>
#include <string.h>

#include "firmware.h"

#define JOBS	(2 * MCP_TRANSFERS)
#define PACKETS 256u
#define STRIDE	16384u /* packets of a long job between two looks of the program */
#define ACCESSES                                                                                 \
	4000u /* of a turn at most: all handlers with all they may do, and a doubling for safety \
	       */

static struct job {
	uint32_t tag, flow, incarnation, epoch, psn, packets;
	bool fast;
} jobs[JOBS];
static uint32_t job_count;
static bool job_known[MCP_TRANSFERS];

static struct packet {
	uint32_t flow, incarnation, epoch, psn, tag, word;
	bool message, fast;
} packets[PACKETS];
static uint32_t packet_count;

static struct {
	uint32_t incarnation, epoch;
	uint16_t sent; /* PSN behind it */
} lanes[MCP_FLOWS];

static uint8_t taken[MCP_COMMANDS]; /* commands that have not completed */
static uint32_t posts_waiting;
bool inbox_used[DIBBER_SLOTS];
bool posts_flow;
uint32_t refusals_waiting, completions, scout_number;
struct request requests[MCP_COMMANDS];

static void check(bool condition)
{
	if (!condition)
		abort();
}

void engines_reset(void)
{
	job_count = 0;
	packet_count = 0;
	memset(job_known, 0, sizeof(job_known));
	memset(lanes, 0, sizeof(lanes));
	memset(taken, 0, sizeof(taken));
	memset(inbox_used, 0, sizeof(inbox_used));
	memset(requests, 0, sizeof(requests));
	posts_waiting = 0;
	posts_flow = false;
	refusals_waiting = 0;
	completions = 0;
	scout_number = 0;
}

/* Commands ------------------------------------------------------------------------------------- */

static void take(uint32_t tag)
{
	/*
	 * Two, for a host that does not wait for completions: that of the first, whose slot its job
	 * freed later, may still wait for the gateware.
	 */
	check(tag < MCP_COMMANDS && taken[tag] < 2);
	taken[tag]++;
}

/* Only what was taken completes, and once. */
static void complete(uint32_t tag)
{
	check(tag < MCP_COMMANDS && taken[tag]);
	taken[tag]--;
	completions++;
}

bool is_all_completed(void)
{
	for (uint32_t tag = 0; tag < MCP_COMMANDS; tag++)
		if (taken[tag])
			return false;
	return true;
}

static void complete_cookie(uint32_t endpoint, uint32_t cookie)
{
	check(cookie_of(cookie & 0xffff) == cookie && (cookie & 0xffff) / DIBBER_SLOTS == endpoint);
	complete(cookie & 0xffff);
}

void posts_leave(void)
{
	REG(POST_SPACE) += posts_waiting;
	posts_waiting = 0;
}

void __real_fake_write(uint32_t address, uint32_t value);
void __wrap_fake_write(uint32_t address, uint32_t value);

/* Each write of the program (linked with --wrap=fake_write). */
void __wrap_fake_write(uint32_t address, uint32_t value)
{
	uint32_t space;

	engines_observe();
	if (posts_flow)
		posts_leave();
	space = REG(POST_SPACE);
	switch (address - DIBBER_MCP_REGISTER_BASE) {
	case DIBBER_MCP_COMMAND_TAKE:
		check(value < DIBBER_ENDPOINTS);
		take(command_tag(value));
		break;
	case DIBBER_MCP_PUT_START:
		take(command_tag(value >> DIBBER_MCP_PUT_START_ENDPOINT_SHIFT &
				 DIBBER_MCP_PUT_START_ENDPOINT_MASK));
		break;
	case DIBBER_MCP_POST_PUT:
		complete(FIELD_GET(POST_PUT, ENDPOINT, value) * DIBBER_SLOTS +
			 FIELD_GET(POST_PUT, SLOT, value));
		break;
	case DIBBER_MCP_POST_START:
		check(FIELD_GET(POST_START, QUEUE, value) < DIBBER_QUEUES);
		if (FIELD_GET(POST_START, QUEUE, value) < DIBBER_ENDPOINTS)
			complete_cookie(FIELD_GET(POST_START, QUEUE, value), REG(POST_COOKIE));
		break;
	case DIBBER_MCP_REFUSAL_POP:
		refusals_waiting--;
		break;
	}
	__real_fake_write(address, value);
	posts_waiting += space - REG(POST_SPACE);
	engines_observe();
}

/* What the program started --------------------------------------------------------------------- */

static void observe_job(const struct fake_log *entry)
{
	uint32_t tag = entry->value & ~FAKE_FAST, slot = entry->words[0], place = entry->words[1];
	uint32_t length = entry->words[3], skip = entry->words[4], node = place >> 24, skipped = 0;
	struct job *job = &jobs[job_count++];

	/* One job of a transfer at a time, to another node. */
	check(job_count <= JOBS && tag < MCP_TRANSFERS && node < DIBBER_NODES &&
	      node != command_node && skip <= length);
	check(!job_known[tag]);
	job_known[tag] = true;
	if (entry->value & FAKE_FAST)
		take(tag);
	while (skipped * DIBBER_PACKET_PAYLOAD < skip)
		skipped++;
	check(skipped * DIBBER_PACKET_PAYLOAD == skip && skipped < packets_of(length));
	*job = (struct job){
		.tag = tag,
		.flow = MCP_BULK + node,
		.incarnation = place >> 16 & 0xff,
		.psn = place & 0xffff,
		.epoch = slot >> DIBBER_MCP_JOB_SLOT_EPOCH_SHIFT & DIBBER_MCP_JOB_SLOT_EPOCH_MASK,
		.packets = packets_of(length) - skipped,
		.fast = entry->value & FAKE_FAST,
	};
}

static void observe_packet(const struct fake_log *entry)
{
	uint32_t value = entry->value & ~FAKE_FAST, place = entry->words[0];
	struct packet *packet = &packets[packet_count++];

	check(packet_count <= PACKETS && place >> 24 < DIBBER_NODES && place >> 24 != command_node);
	*packet = (struct packet){
		.flow = place >> 24,
		.incarnation = place >> 16 & 0xff,
		.psn = place & 0xffff,
		.epoch = FIELD_GET(EXPRESS_START, EPOCH, value),
		.tag = FIELD_GET(EXPRESS_START, ENDPOINT, value) * DIBBER_SLOTS +
		       FIELD_GET(EXPRESS_START, SLOT, value),
		.word = entry->words[1],
		.message = FIELD_GET(EXPRESS_START, MESSAGE, value),
		.fast = entry->value & FAKE_FAST,
	};
	check(packet->tag < MCP_INBOX + DIBBER_SLOTS);
	check(packet->tag < MCP_INBOX || inbox_used[packet->tag - MCP_INBOX]);
	check((int16_t)(packet->psn - REG_READ_AT(ACKED, packet->flow)) <= (int16_t)DIBBER_WINDOW);
	if (packet->fast)
		take(packet->tag);
}

void engines_observe(void)
{
	for (uint32_t i = 0; i < fake_logged; i++) {
		const struct fake_log *entry = &fake_log[i];
		uint32_t value = entry->value, flow = value & 0xff;

		switch (entry->offset) {
		case DIBBER_MCP_JOB_START:
			observe_job(entry);
			break;
		case DIBBER_MCP_EXPRESS_START:
			observe_packet(entry);
			break;
		case DIBBER_MCP_FLOW_RESET:
			check(flow < MCP_FLOWS);
			lanes[flow].incarnation = value >> 8;
			lanes[flow].epoch = 0;
			lanes[flow].sent = 0;
			break;
		case DIBBER_MCP_FLOW_REWIND:
			check(flow < MCP_FLOWS);
			lanes[flow].epoch = value >> 8;
			break;
		case DIBBER_MCP_INBOX_FREE:
			check(value < DIBBER_SLOTS && inbox_used[value]);
			inbox_used[value] = false;
			break;
		case DIBBER_MCP_ROUTE_WRITE:
			check(value < DIBBER_NODES);
			break;
		case DIBBER_MCP_REGION_WRITE:
			check(value < DIBBER_REGIONS);
			break;
		case DIBBER_MCP_EXPECT_WRITE:
			check((value & 0x3ff) < MCP_COMMANDS &&
			      (value >> 16 & 0xff) < DIBBER_NODES);
			break;
		case DIBBER_MCP_SCOUT_START:
			scout_number = entry->words[2];
			REG(SCOUT_SPACE)++;
			break;
		case DIBBER_MCP_POST_START:
			if (value & FAKE_FAST)
				complete(entry->words[2] & 0xffff);
			break;
		}
	}
	fake_logged = 0;
}

void engines_turn(void)
{
	uint32_t before = fake_accesses;

	mcp_step();
	engines_observe();
	check(fake_accesses - before < ACCESSES && REG(STATE) == DIBBER_MCP_STATE_IDLE);
}

/* What engines and wire do --------------------------------------------------------------------- */

static bool is_wanted(uint32_t flow, uint32_t incarnation, uint32_t epoch)
{
	return lanes[flow].incarnation == incarnation && lanes[flow].epoch == epoch;
}

static void send(uint32_t flow, uint32_t end)
{
	if ((int16_t)(end - lanes[flow].sent) > 0)
		lanes[flow].sent = end;
}

bool engines_ack(uint32_t flow, uint32_t count)
{
	uint32_t psn = (&REG(ACKED))[flow], known = (uint16_t)(lanes[flow].sent - 1 - psn);

	if (!known || known >= 0x8000)
		return false;
	fake_ack(flow, (psn + (count < known ? count : known)) & 0xffff);
	return true;
}

/* No more than a window is ever on the wire: a job ends when all but that is acknowledged. */
void engines_job(uint32_t status, uint32_t limit)
{
	struct job *job = &jobs[0];
	uint32_t done = 0, end = status ? limit % (job->packets + 1) : job->packets;
	struct job last;

	if (!job_count)
		return;
	/* The queue moves only here, so that it stays in its place. */
	while (done < end && is_wanted(job->flow, job->incarnation, job->epoch)) {
		done += end - done < STRIDE ? end - done : STRIDE;
		send(job->flow, job->psn + done);
		if (done > DIBBER_WINDOW &&
		    (int16_t)(job->psn + done - DIBBER_WINDOW - 1 - (&REG(ACKED))[job->flow]) > 0)
			fake_ack(job->flow, (job->psn + done - DIBBER_WINDOW - 1) & 0xffff);
		if (done < end)
			engines_turn();
	}
	if (done < end || (status && !is_wanted(job->flow, job->incarnation, job->epoch)))
		status = DIBBER_STATUS_REWOUND;
	last = *job;
	memmove(&jobs[0], &jobs[1], --job_count * sizeof(jobs[0]));
	job_known[last.tag] = false;
	REG(JOB_SPACE) += !last.fast;
	fake_job_done(last.tag, status, (last.psn + done) & 0xffff, 0x1234);
}

void engines_express(void)
{
	struct packet packet = packets[0];

	if (!packet_count)
		return;
	memmove(&packets[0], &packets[1], --packet_count * sizeof(packets[0]));
	REG(EXPRESS_SPACE) += !packet.fast;
	if (!is_wanted(packet.flow, packet.incarnation, packet.epoch))
		return;
	send(packet.flow, packet.psn + 1);
	if (packet.message && packet.tag < MCP_COMMANDS)
		requests[packet.tag] =
			(struct request){ .sent = true, .node = packet.flow, .word = packet.word };
}

bool engines_are_idle(void)
{
	return !job_count && !packet_count;
}
