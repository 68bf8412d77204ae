/* Bytes of matched messages on their way into the receiver's memory. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <string.h>

#include "errors.h"
#include "fetch.h"
#include "ring.h"

/* Multi-receives ------------------------------------------------------------------------------- */

static size_t room_of(const struct op *whole)
{
	return whole->pieces.length - whole->used;
}

bool dfi_fetch_fills(const struct op *whole, uint64_t length)
{
	return room_of(whole) <= length || room_of(whole) - length < whole->ep->min_multi_recv;
}

struct op *dfi_fetch_part(struct op *whole, uint64_t length)
{
	struct op *part = dfi_op_new(whole->ep, true, whole->flags, whole->context);
	bool fills = dfi_fetch_fills(whole, length);
	size_t bytes = room_of(whole) < length ? room_of(whole) : (size_t)length;
	const struct iovec iov = {
		.iov_base = (uint8_t *)whole->pieces.iov[0].iov_base + whole->used,
		.iov_len = bytes,
	};

	if (!part)
		return NULL;
	dfi_pieces(&part->pieces, &iov, whole->pieces.desc, 1);
	part->report = whole->report;
	part->whole = whole;
	part->flags &= ~(uint64_t)FI_MULTI_RECV;
	whole->used += bytes;
	whole->filling++;
	if (fills) {
		whole->full = true;
		list_remove(&whole->place);
	}
	return part;
}

/* The buffer goes back to the program with the last of its messages. */
static uint64_t end_part(struct op *part)
{
	struct op *whole = part->whole;

	if (!whole || --whole->filling || !whole->full)
		return 0;
	part->report = true;
	whole->ended = true;
	whole->ep->under_way[1]--;
	whole->refs++;
	dfi_op_put(whole);
	return FI_MULTI_RECV;
}

void dfi_fetch_end_posted(struct op *op, int error)
{
	list_remove(&op->place);
	if (op->multi && op->filling) {
		/* Its last message gives the buffer back. */
		op->full = true;
		return;
	}
	if (op->multi)
		op->flags |= FI_MULTI_RECV;
	dfi_op_end(op, 0, error);
}

/* Ends ----------------------------------------------------------------------------------------- */

static void end(struct op *op, const struct arrival *arrival, int error)
{
	size_t room = op->pieces.length;
	size_t length = arrival->length < room ? (size_t)arrival->length : room;
	struct fi_cq_err_entry entry = {
		.op_context = op->context,
		.flags = op->flags | (arrival->has_data ? FI_REMOTE_CQ_DATA : 0),
		.len = length,
		.buf = op->whole ? op->pieces.iov[0].iov_base : NULL,
		.data = arrival->data,
		.tag = arrival->tag,
	};

	if (!error && arrival->length > room) {
		error = FI_ETRUNC;
		entry.olen = (size_t)arrival->length - room;
	}
	entry.err = error;
	entry.prov_errno = error;
	entry.flags |= end_part(op);
	dfi_op_end_receive(op, &entry, arrival->peer->address);
}

void dfi_fetch_bytes(struct op *op, const struct arrival *arrival)
{
	if (arrival->length)
		dfi_scatter(&op->pieces, 0, arrival->bytes, (size_t)arrival->length);
	end(op, arrival, 0);
}

/* Offers --------------------------------------------------------------------------------------- */

void dfi_fetch_answer(struct endpoint *ep, struct peer *peer, uint64_t id, int error)
{
	const uint64_t words[2] = { id, (uint64_t)error };
	const struct message message = { .kind = MESSAGE_FETCHED,
					 .length = sizeof(words),
					 .payload = words };

	/* A peer that is lost is told nothing. */
	dfi_ring_send(ep->domain, peer, &message, NULL, NULL);
}

/* `op` keeps what `end` must know of the arrival. */
static void keep(struct op *op, const struct arrival *arrival)
{
	op->peer = arrival->peer;
	op->tag = arrival->tag;
	op->data = arrival->data;
	op->has_data = arrival->has_data;
	op->offered_length = arrival->length;
	op->offered_offset = arrival->offset;
	op->offered_id = arrival->id;
	op->offered_key = arrival->key;
}

static void end_offer(struct op *op, size_t arrived, int error)
{
	const struct arrival arrival = {
		.peer = op->peer,
		.tag = op->tag,
		.data = op->data,
		.has_data = op->has_data,
		.length = op->offered_length,
	};
	struct endpoint *ep = op->ep;
	bool held = op->hold.region || op->hold.kept;

	dfi_release(ep->domain, &op->hold, &op->pieces, error ? 0 : arrived);
	dfi_fetch_answer(ep, op->peer, op->offered_id, error);
	end(op, &arrival, error);
	if (held)
		dfi_ops_retry(ep->domain);
}

static void fetched(struct domain *domain, struct command *command, int status)
{
	struct op *op = command->owner;
	int error = status < 0 ? -status : dfi_status_error((unsigned int)status);

	/* The sender's region is gone: it gave up the message, or has ended. */
	if (error == FI_ETIMEDOUT || error == FI_ECONNRESET)
		dfi_peer_lost(domain, op->peer, error);
	end_offer(op, command->length, error);
	dfi_op_put(op);
}

static void fetch(struct op *op)
{
	struct domain *domain = op->ep->domain;
	size_t room = op->pieces.length;
	size_t length = op->offered_length < room ? (size_t)op->offered_length : room;
	struct command *command;
	int rc = 0;

	if (!length)
		return end_offer(op, 0, 0);
	if (length > BUFFER_BYTES || op->pieces.count > 1)
		rc = dfi_hold(domain, &op->pieces, length, DIBBER_RIGHT_LOCAL_WRITE, &op->hold);
	if (rc == -FI_EAGAIN) {
		op->again = fetch;
		return dfi_op_wait_for_region(op);
	}
	command = rc ? NULL : dfi_command_new(COMMAND_GET, op->peer, fetched, op);
	if (!command)
		return end_offer(op, 0, rc ? -rc : FI_ENOMEM);
	command->length = (uint32_t)length;
	command->local_key = op->hold.key;
	command->local_offset = op->hold.offset;
	command->land = op->hold.key ? NULL : op->pieces.iov[0].iov_base;
	command->remote_key = op->offered_key;
	command->remote_offset = op->offered_offset;
	op->refs++;
	dfi_command_issue(domain, command);
}

void dfi_fetch_offer(struct op *op, const struct arrival *arrival)
{
	keep(op, arrival);
	fetch(op);
}
