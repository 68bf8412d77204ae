/* The BULK lane: transfers that send jobs read from host memory, on one list for each flow, in
 * PSN order. README.md, "When a job fails" and "Replay", explains DRAIN and REQUEUE.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "flows/bulk.h"

#include "flows/ended.h"
#include "trace.h"

/* Bits of `ticks` that are 0 in one of 8 ticks. */
#define SHUT_EACH (7 * MCP_TICK)

uint32_t bulk_space;

RARE bool bulk_look(void)
{
	bulk_space = REG_READ(JOB_SPACE);
	return bulk_space;
}

static bool has_space(void)
{
	return bulk_space || bulk_look();
}

/* The registers of a job that is no put: whose request it answers, and where that request says
 * what to write. */
static RARE uint32_t answer(struct transfer *transfer)
{
	uint32_t ready = transfer->peer;

	if (transfer->kind == TRANSFER_ANSWER) {
		REG_WRITE(JOB_MESSAGE, transfer->cookie);
		return FIELD_PUT(JOB_SLOT, RESPONSE, 1);
	}
	REG_WRITE(JOB_MESSAGE, transfers[ready].cookie);
	return FIELD_PUT(JOB_SLOT, RESPONSE, 1) | FIELD_PUT(JOB_SLOT, INDIRECT, 1) |
	       FIELD_PUT(JOB_SLOT, TARGET, ready - MCP_INBOX) |
	       FIELD_PUT(JOB_SLOT, TARGET_LEVELS, COMMAND_WORD(ready, opcode) >> 20 & 7);
}

/* Queue a transfer's job from packet `skip` on. */
static ALWAYS void start(struct flow *flow, uint32_t tag, uint32_t skip)
{
	struct transfer *transfer = &transfers[tag];
	uint32_t what = FIELD_PUT(JOB_SLOT, SLOT, tag % DIBBER_SLOTS) |
			FIELD_PUT(JOB_SLOT, ENDPOINT, tag / DIBBER_SLOTS) |
			FIELD_PUT(JOB_SLOT, EPOCH, flow->epoch);

	transfer->busy = transfer->flags & DIBBER_FLAG_CHECKSUM ? BUSY_JOB | BUSY_SUM : BUSY_JOB;
	flow->jobs++;
	if (transfer->kind != TRANSFER_PUT)
		what |= answer(transfer);
	REG_WRITE(JOB_SLOT, what);
	REG_WRITE(JOB_FLOW, flow->place | ((transfer->first + skip) & 0xffff));
	REG_WRITE(JOB_LENGTH, transfer->length);
	REG_WRITE(JOB_SKIP, skip * DIBBER_PACKET_PAYLOAD);
	REG_WRITE(JOB_START, tag);
	bulk_space--;
	trace(DIBBER_TRACE_JOB, tag, transfer->first + skip);
}

static inline void append(struct flow *flow, uint32_t tag)
{
	transfers[tag].next = MCP_NO_TAG;
	if (flow->head == MCP_NO_TAG)
		flow->head = tag;
	else
		transfers[flow->tail].next = tag;
	flow->tail = tag;
}

void bulk_submit(uint32_t tag, uint32_t packets)
{
	struct transfer *transfer = &transfers[tag];
	uint32_t number = MCP_BULK + transfer->node;
	struct flow *flow = &flows[number];

	append(flow, tag);
	set_add(&flow_active, number);
	transfer->first = flow->next;
	flow->next += packets;
	transfer->end = flow->next;
	start(flow, tag, 0);
}

void bulk_adopt(uint32_t tag, uint32_t end, uint32_t packets, bool ended)
{
	struct transfer *transfer = &transfers[tag];
	struct flow *flow = &flows[MCP_BULK + transfer->node];

	append(flow, tag);
	transfer->first = end - packets;
	transfer->end = end;
	if (ended) {
		transfer->state = TRANSFER_WHOLE;
	} else {
		transfer->busy = BUSY_JOB;
		flow->jobs++;
	}
}

RARE uint32_t bulk_find(uint32_t number, uint32_t psn)
{
	struct flow *flow = &flows[number];

	/* At most a window of packets lies between the head and the refused one. */
	for (uint32_t tag = flow->head; tag != MCP_NO_TAG; tag = transfers[tag].next)
		if (!psn_before(transfers[tag].first, flow->start) &&
		    psn - transfers[tag].first < transfers[tag].end - transfers[tag].first)
			return tag;
	return MCP_NO_TAG;
}

/* PSN after a transfer's own. */
static uint32_t following(struct flow *flow, struct transfer *transfer)
{
	return transfer->next == MCP_NO_TAG ? flow->next : transfers[transfer->next].first;
}

/* Ends of jobs --------------------------------------------------------------------------------- */

/* It is unknown whether a transfer was executed. */
static void lose(struct transfer *transfer, enum dibber_status status)
{
	transfer->state = TRANSFER_OVER;
	transfer->busy &= BUSY_JOB;
	if (transfer->status == DIBBER_STATUS_OK)
		transfer->status = status;
}

/* The same for this transfer and those behind it. */
static RARE void give_up(uint32_t tag, enum dibber_status reason)
{
	for (; tag != MCP_NO_TAG; tag = transfers[tag].next) {
		mcp_shared.timeouts += transfers[tag].status == DIBBER_STATUS_OK;
		lose(&transfers[tag], reason);
	}
}

/* The job failed, or used other PSNs than were reserved for it. */
static RARE void job_failed(struct flow *flow, uint32_t tag, uint32_t done, uint32_t end)
{
	struct transfer *transfer = &transfers[tag];
	uint32_t status = FIELD_GET(JOB_DONE, STATUS, done);
	uint32_t state = transfer->state;

	mcp_alive();
	trace(DIBBER_TRACE_JOB_ERROR, done, end);
	/* No error means that its owner changed the command after the check. */
	if (transfer->status == DIBBER_STATUS_OK)
		transfer->status = status ? status : DIBBER_STATUS_BAD_LENGTH;
	transfer->state = TRANSFER_CUT;
	transfer->busy = 0;

	/* Behind a gap its packets have no effect. It gets no PSNs when its turn comes again. */
	if (psn_before(transfer->first, flow->start))
		return;
	if (flow->state == FLOW_DRAIN && !psn_before(transfer->first, transfers[flow->mark].first))
		return;

	transfer->end = psn_before(end, transfer->first) ? transfer->first : end;
	/*
	 * With nothing behind it, the next transfer continues at the PSN where it stopped. Not
	 * if it was sent before, because that pass may have gone farther and its PSNs may have
	 * been executed.
	 */
	if (transfer->next == MCP_NO_TAG && state == TRANSFER_SENT)
		flow->next = transfer->end;
	/* After a whole pass the peer sees no gap and may have executed what is behind it. */
	if (state == TRANSFER_WHOLE || following(flow, transfer) == transfer->end)
		give_up(transfer->next, DIBBER_STATUS_TIMEOUT);
	if (flow->state != FLOW_REWIND) {
		flow->state = FLOW_DRAIN;
		flow->mark = tag;
	}
}

static inline void job_ended(uint32_t tag, uint32_t done)
{
	struct transfer *transfer = &transfers[tag];
	struct flow *flow = &flows[MCP_BULK + transfer->node];
	uint32_t status = FIELD_GET(JOB_DONE, STATUS, done);
	uint32_t end;

	transfer->busy &= ~BUSY_JOB;
	/* An abandoned transfer has completed already. Now its slot may be used again. */
	if (transfer->state == TRANSFER_FREE || transfer->kind == TRANSFER_REPLY) {
		if (transfer_is_free(tag) && tag >= MCP_INBOX)
			transfer_free_inbox(tag);
		if (tag < MCP_COMMANDS)
			REG_WRITE(SLOT_FREE,
				  FIELD_PUT(SLOT_FREE, SLOT, tag % DIBBER_SLOTS) |
					  FIELD_PUT(SLOT_FREE, ENDPOINT, tag / DIBBER_SLOTS));
		return;
	}
	flow->jobs--;

	/* The job's end is before `acked` if acknowledgements were read first, else at or
	 * after it. */
	end = flow->acked + (int16_t)(FIELD_GET(JOB_DONE, PSN, done) - flow->acked);
	if (status == DIBBER_STATUS_OK && end == transfer->end &&
	    !psn_before(transfer->first, flow->start)) {
		if (transfer->busy & BUSY_SUM) {
			transfer->key = REG_READ(JOB_CHECKSUM);
			mcp_shared.checksums++;
		}
		transfer->busy = 0;
		if (transfer->state != TRANSFER_OVER)
			transfer->state = TRANSFER_WHOLE;
		if (flow->state == FLOW_OPEN && psn_before(flow->acked, end))
			return;
	} else if (transfer->state == TRANSFER_OVER) {
		transfer->busy = 0;
	} else if (status != DIBBER_STATUS_REWOUND &&
		   (status || !psn_before(transfer->first, flow->start))) {
		job_failed(flow, tag, done, end);
	}
	set_add(&flow_work, MCP_BULK + transfer->node);
}

APART uint32_t bulk_job_handler(void)
{
	uint32_t done = 0;

	do {
		uint32_t value = REG_READ(JOB_DONE);
		uint32_t tag = FIELD_GET(JOB_DONE, TAG, value);

		/* A job of the fast path that failed may come here first. */
		if (tag < MCP_TRANSFERS && !(transfers[tag].busy & BUSY_JOB))
			fast_given();
		if (tag < MCP_TRANSFERS && (transfers[tag].busy & BUSY_JOB))
			job_ended(tag, value);
		else
			trace(DIBBER_TRACE_JOB_UNKNOWN, value, 0);
		REG_WRITE(JOB_DONE_POP, 1);
		done++;
	} while (done < MCP_BATCH && (REG_READ(EVENTS) & EVENT(JOB_DONE)));
	return done;
}

/* Completion ----------------------------------------------------------------------------------- */

/* Whether the transfer at the head has ended. */
static inline bool has_ended(struct flow *flow, struct transfer *transfer)
{
	/* A CUT transfer that is queued again stays until DRAIN has come to it, because the
	 * gap must not be forgotten. */
	if (transfer->state == TRANSFER_CUT && flow->state != FLOW_DRAIN &&
	    following(flow, transfer) != transfer->end)
		return false;
	if (transfer->state != TRANSFER_OVER)
		return !transfer->busy && !psn_before(transfer->first, flow->start) &&
		       !psn_before(flow->acked, transfer->end);
	if (transfer->busy && flow->abandon)
		flow->jobs--;
	/* While the engine has its job, slot and source memory are still read. */
	return !transfer->busy || flow->abandon;
}

/* All up to the gap has arrived. Nothing behind it was executed, so it gets new PSNs. */
static RARE void leave_drain(uint32_t number, uint32_t end)
{
	struct flow *flow = &flows[number];

	flow->mark = MCP_NO_TAG;
	if (flow->head == MCP_NO_TAG && flow->next == end && flow->acked == end) {
		/* The next transfer continues where the failed one stopped. */
		flow->state = FLOW_OPEN;
		return;
	}
	flow_incarnate(number);
	flow_renumber(flow);
	flow->state = flow->head == MCP_NO_TAG ? FLOW_OPEN : FLOW_REWIND;
}

/* No transfer is left that could send the packets that the peer misses. */
static RARE void leave_gap(uint32_t number)
{
	flow_incarnate(number);
	flow_renumber(&flows[number]);
}

static inline uint32_t complete(uint32_t number)
{
	struct flow *flow = &flows[number];
	uint32_t done = 0;
	bool fast = false;

	while (flow->head != MCP_NO_TAG) {
		uint32_t tag = flow->head;

		if (done == MCP_BATCH) {
			set_add(&flow_work, number);
			return done;
		}
		if (!has_ended(flow, &transfers[tag]))
			break;
		flow->head = transfers[tag].next;
		fast = transfers[tag].kind <= TRANSFER_ANSWER;
		transfer_end(tag);
		done++;
		if (tag == flow->mark) {
			if (flow->state == FLOW_DRAIN)
				leave_drain(number, transfers[tag].end);
			else
				flow->mark = flow->head;
		}
	}
	flow->abandon = 0;
	if (flow->head == MCP_NO_TAG && flow->state == FLOW_OPEN) {
		if (flow->acked != flow->next)
			leave_gap(number);
		if (fast_pauses(number))
			fast_arm(number);
		else if (fast)
			fast_rest(number);
	}
	return done;
}

RARE void bulk_rest(uint32_t number)
{
	struct flow *flow = &flows[number];

	if (flow->state != FLOW_OPEN)
		return;
	if (flow->head == MCP_NO_TAG && flow->acked == flow->next)
		fast_arm(number);
	else if (!(flow->ticks & SHUT_EACH))
		flow->ticks |= MCP_SHUT;
}

/* Replay --------------------------------------------------------------------------------------- */

bool bulk_is_lost(uint32_t number)
{
	struct flow *flow = &flows[number];

	if (flow->state == FLOW_DRAIN)
		return psn_before(flow->acked, transfers[flow->mark].end);
	return flow->state == FLOW_OPEN && flow->acked != flow->next;
}

RARE void bulk_rewind(uint32_t number)
{
	flow_rewind(number);
	flows[number].state = FLOW_REWIND;
	flows[number].mark = MCP_NO_TAG;
	set_add(&flow_work, number);
}

/* Whether a failed job left PSNs unused that the packets behind it need. */
static bool leaves_gap(struct flow *flow, struct transfer *transfer)
{
	return transfer->state == TRANSFER_CUT && (psn_before(flow->acked, transfer->end) ||
						   following(flow, transfer) != transfer->end);
}

/* Queue a transfer again. False: it must wait for space, or the requeue ends here. */
static bool requeue(struct flow *flow, uint32_t tag)
{
	struct transfer *transfer = &transfers[tag];
	uint32_t skip = 0;

	if (transfer->state == TRANSFER_OVER) {
		if (psn_before(transfer->first, flow->start) ||
		    !psn_before(flow->acked, transfer->end))
			return true;
		/* It is not sent again, but what is behind needs its PSNs. A new incarnation
		 * begins when all before it has ended. */
		flow->state = FLOW_DRAIN;
		flow->mark = tag;
		return false;
	}
	if (psn_before(transfer->first, flow->start)) {
		/* It was behind a gap. If it failed there it has no packets, but keeps its
		 * place. */
		uint32_t packets =
			transfer->state == TRANSFER_CUT ? 0 : packets_of(transfer->length);

		if (packets && !has_space())
			return false;
		transfer->first = flow->next;
		flow->next += packets;
		transfer->end = flow->next;
		if (packets) {
			transfer->state = TRANSFER_SENT;
			start(flow, tag, 0);
		}
		return true;
	}
	/* It has no PSN: it failed behind a gap, or before its first packet with nothing
	 * behind it. So it is no gap. What is behind it now may have been executed. */
	if (transfer->first == following(flow, transfer))
		return true;
	if (leaves_gap(flow, transfer)) {
		/* Its lost packets are not sent again, because a second job need not stop at
		 * the same place. */
		if (psn_before(flow->acked, transfer->end))
			transfer->end = psn_before(flow->acked, transfer->first) ? transfer->first
										 : flow->acked;
		flow->state = FLOW_DRAIN;
		flow->mark = tag;
		return false;
	}
	if (!transfer->busy && !psn_before(flow->acked, transfer->end))
		return true;
	if (!has_space())
		return false;
	/* A checksum is of one whole pass. The peer drops packets that it has. */
	if (!(transfer->flags & DIBBER_FLAG_CHECKSUM) && psn_before(transfer->first, flow->acked))
		skip = flow->acked - transfer->first;
	if (transfer->state == TRANSFER_SENT)
		transfer->state = TRANSFER_AGAIN;
	start(flow, tag, skip);
	return true;
}

static RARE uint32_t replay(uint32_t number)
{
	struct flow *flow = &flows[number];
	uint32_t done = 0;

	mcp_alive();
	if (flow->state == FLOW_REWIND) {
		if (flow->jobs)
			return 0;
		flow->state = FLOW_REQUEUE;
		flow->mark = flow->head;
	}
	while (done < MCP_BATCH && flow->mark != MCP_NO_TAG && requeue(flow, flow->mark)) {
		flow->mark = transfers[flow->mark].next;
		done++;
	}
	if (flow->mark == MCP_NO_TAG)
		flow->state = FLOW_OPEN;
	set_add(&flow_work, number);
	return done;
}

/* Nothing moved for too long: all that is outstanding on this flow is lost. */
RARE void bulk_expire(uint32_t number)
{
	struct flow *flow = &flows[number];

	set_add(&flow_work, number);
	flow->idle = 0;
	if (transfers[flow->head].state == TRANSFER_OVER) {
		/* It was lost before, and the engine kept its job: complete it without waiting
		 * for the job. */
		flow->abandon = 1;
		return;
	}
	give_up(flow->head, DIBBER_STATUS_TIMEOUT);
	set_add(&flow_lost, number - MCP_BULK);
	flow_incarnate(number);
	flow_renumber(flow);
	flow->state = FLOW_OPEN;
	flow->mark = MCP_NO_TAG;
}

/* A target that began anew --------------------------------------------------------------------- */

/* Whether a transfer's job is about to end: all its PSNs are of this incarnation and
 * acknowledged. */
static bool is_ending(struct flow *flow, struct transfer *transfer)
{
	return transfer->state < TRANSFER_CUT && !psn_before(transfer->first, flow->start) &&
	       !psn_before(flow->acked, transfer->end);
}

RARE bool bulk_settled(uint32_t number)
{
	struct flow *flow = &flows[number];

	bulk_step(number);
	return flow->head == MCP_NO_TAG || !is_ending(flow, &transfers[flow->head]);
}

RARE void bulk_restart(uint32_t number, uint32_t end)
{
	struct flow *flow = &flows[number];

	mcp_alive();
	/* A transfer that waits for PSNs of this incarnation has sent nothing that the target
	 * may have executed. */
	for (uint32_t tag = flow->head; tag != MCP_NO_TAG; tag = transfers[tag].next)
		if (!psn_before(transfers[tag].first, flow->start) &&
		    psn_before(transfers[tag].first, end))
			lose(&transfers[tag], DIBBER_STATUS_PEER_RESTARTED);
	flow_incarnate(number);
	flow_renumber(flow);
	flow->state = flow->head == MCP_NO_TAG ? FLOW_OPEN : FLOW_REWIND;
	flow->mark = MCP_NO_TAG;
	set_add(&flow_work, number);
}

APART uint32_t bulk_step(uint32_t number)
{
	uint32_t done = complete(number);

	if (flows[number].state == FLOW_REWIND || flows[number].state == FLOW_REQUEUE)
		done += replay(number);
	return done;
}
