/* fi_send, fi_recv and fi_tsend, fi_trecv with their variants. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>
#include <string.h>

#include "charge.h"
#include "endpoint.h"
#include "errors.h"
#include "match.h"
#include "message.h"
#include "progress.h"
#include "ring.h"

/* Sending -------------------------------------------------------------------------------------- */

static void put_eager(void *owner, int error)
{
	struct op *op = owner;

	dfi_op_end(op, op->pieces.length, error);
	dfi_op_put(op);
}

static int send_eager(struct op *op)
{
	uint8_t bytes[PAYLOAD_BYTES];
	const struct message message = {
		.kind = MESSAGE_EAGER,
		.flags = (uint8_t)((op->flags & FI_TAGGED ? MESSAGE_TAG : 0) |
				   (op->has_data ? MESSAGE_DATA : 0)),
		.length = (uint16_t)op->pieces.length,
		.tag = op->tag,
		.data = op->data,
		.payload = bytes,
	};
	int rc;

	dfi_gather(bytes, &op->pieces);
	op->refs++;
	rc = dfi_ring_send(op->ep->domain, op->peer, &message, put_eager, op);
	if (rc)
		op->refs--;
	return rc;
}

static void put_offer(void *owner, int error)
{
	struct op *op = owner;

	if (error)
		dfi_op_end(op, 0, error);
	dfi_op_put(op);
}

struct offer {
	uint64_t length, offset, id;
	uint32_t key, reserved;
};

static int offer(struct op *op)
{
	const struct offer offered = {
		.length = op->pieces.length,
		.offset = op->hold.offset,
		.id = op->id,
		.key = op->hold.key,
	};
	const struct message message = {
		.kind = MESSAGE_OFFER,
		.flags = (uint8_t)((op->flags & FI_TAGGED ? MESSAGE_TAG : 0) |
				   (op->has_data ? MESSAGE_DATA : 0)),
		.length = sizeof(offered),
		.tag = op->tag,
		.data = op->data,
		.payload = &offered,
	};
	int rc;

	op->refs++;
	list_append(&op->ep->answered_later, &op->place);
	rc = dfi_ring_send(op->ep->domain, op->peer, &message, put_offer, op);
	if (rc) {
		op->refs--;
		list_remove(&op->place);
	}
	return rc;
}

/* The order of messages is that of their calls. So an offer whose memory cannot be registered now
 * does not wait here: the call returns -FI_EAGAIN. */
static int send_offer(struct op *op)
{
	struct domain *domain = op->ep->domain;
	int rc = 0;

	dfi_charge(CHARGE_LONG, 1);
	if (op->pieces.length)
		rc = dfi_hold(domain, &op->pieces, op->pieces.length, DIBBER_RIGHT_REMOTE_READ,
			      &op->hold);
	if (!rc)
		rc = offer(op);
	if (rc)
		dfi_release(domain, &op->hold, &op->pieces, 0);
	return rc;
}

static int send_to_self(struct op *op, bool wait_for_match)
{
	struct arrival arrival = {
		.peer = op->peer,
		.tagged = op->flags & FI_TAGGED,
		.has_data = op->has_data,
		.tag = op->tag,
		.data = op->data,
		.length = op->pieces.length,
		.sender = wait_for_match ? op : NULL,
	};
	void *bytes = malloc(op->pieces.length + 1);
	size_t length = op->pieces.length;
	bool kept;

	if (!bytes)
		return -FI_ENOMEM;
	dfi_gather(bytes, &op->pieces);
	arrival.bytes = bytes;
	kept = dfi_match_arrival(op->ep, &arrival);
	free(bytes);
	if (!kept)
		return -FI_ENOMEM;
	if (!wait_for_match)
		dfi_op_end(op, length, 0);
	return 0;
}

struct send {
	fi_addr_t to;
	uint64_t tag, data;
	void *context;
	uint64_t flags; /* FI_TAGGED, FI_REMOTE_CQ_DATA, FI_INJECT, FI_COMPLETION, … */
};

#define UNTIL_MATCHED (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)

/* An injected message of one piece needs no operation, because nobody is told of its end. One that
 * has to wait does, because operations are counted. Returns -FI_ENOSYS for all that need one. */
static int send_injected(struct endpoint *ep, const struct iovec *iov, size_t count,
			 const struct send *what)
{
	struct message message = {
		.kind = MESSAGE_EAGER,
		.flags = (uint8_t)((what->flags & FI_TAGGED ? MESSAGE_TAG : 0) |
				   (what->flags & FI_REMOTE_CQ_DATA ? MESSAGE_DATA : 0)),
		.tag = what->tag,
		.data = what->data,
	};
	struct peer *peer;

	if (!(what->flags & DFI_SILENT) || count != 1 || iov->iov_len > PAYLOAD_BYTES ||
	    (!iov->iov_base && iov->iov_len) || ep->counters[COUNT_SEND])
		return -FI_ENOSYS;
	peer = dfi_endpoint_peer(ep, what->to);
	if (!peer || peer->self || !dfi_ring_is_open(peer))
		return -FI_ENOSYS;
	message.length = (uint16_t)iov->iov_len;
	message.payload = iov->iov_base;
	return dfi_ring_send(ep->domain, peer, &message, NULL, NULL);
}

static int send_op(struct op *op, uint64_t flags)
{
	if (op->peer->error)
		return -op->peer->error;
	if (op->peer->self)
		return send_to_self(op, flags & UNTIL_MATCHED);
	if (op->pieces.length <= PAYLOAD_BYTES && !(flags & UNTIL_MATCHED))
		return send_eager(op);
	return send_offer(op);
}

static ssize_t send(struct endpoint *ep, const struct iovec *iov, void **desc, size_t count,
		    const struct send *what)
{
	uint64_t flags = what->flags;
	struct op *op = NULL;
	int rc;

	dfi_enter();
	dfi_charge(CHARGE_SEND, 1);
	dfi_progress_alert(ep->domain);
	rc = dfi_endpoint_ready(ep, false);
	if (!rc) {
		rc = send_injected(ep, iov, count, what);
		if (rc != -FI_ENOSYS) {
			dfi_leave();
			return rc;
		}
		rc = 0;
	}
	if (!rc && !(op = dfi_op_new(ep, false, FI_SEND | (flags & FI_TAGGED ? FI_TAGGED : FI_MSG),
				     what->context)))
		rc = -FI_ENOMEM;
	if (!rc)
		rc = dfi_pieces(&op->pieces, iov, desc, count);
	if (!rc && (op->pieces.length > MESSAGE_LIMIT ||
		    (flags & FI_INJECT && op->pieces.length > PAYLOAD_BYTES)))
		rc = -FI_EMSGSIZE;
	if (!rc && !(op->peer = dfi_endpoint_peer(ep, what->to)))
		rc = -FI_EINVAL;
	if (!rc) {
		op->tag = what->tag;
		op->data = what->data;
		op->has_data = flags & FI_REMOTE_CQ_DATA;
		op->report =
			!(flags & DFI_SILENT) && (!ep->transmit_selective || flags & FI_COMPLETION);
		rc = send_op(op, flags);
	}
	if (rc && op)
		dfi_op_cancel(op);
	if (rc == -FI_EAGAIN)
		dfi_progress(ep->domain, true);
	dfi_leave();
	return rc;
}

/* Receiving ------------------------------------------------------------------------------------ */

struct receive {
	fi_addr_t from;
	uint64_t tag, ignore;
	void *context;
	uint64_t flags;
};

#define LOOKS (FI_PEEK | FI_CLAIM | FI_DISCARD)

static int start_receive(struct endpoint *ep, struct op *op, const struct receive *what)
{
	uint64_t flags = what->flags;

	if (ep->caps & FI_DIRECTED_RECV && what->from != FI_ADDR_UNSPEC &&
	    !(op->peer = dfi_endpoint_peer(ep, what->from)))
		return -FI_EINVAL;
	op->tag = what->tag;
	op->ignore = what->ignore;
	op->report = !ep->receive_selective || flags & FI_COMPLETION;
	op->multi = flags & FI_MULTI_RECV && !(flags & FI_TAGGED);
	if (op->multi && op->pieces.count != 1)
		return -FI_EINVAL;
	if (flags & LOOKS) {
		dfi_progress(ep->domain, false);
		dfi_match_look(op, flags & FI_TAGGED, flags);
	} else {
		dfi_match_receive(op);
	}
	return 0;
}

static ssize_t receive(struct endpoint *ep, const struct iovec *iov, void **desc, size_t count,
		       const struct receive *what)
{
	struct op *op = NULL;
	int rc;

	dfi_enter();
	dfi_charge(CHARGE_RECEIVE, 1);
	dfi_progress_alert(ep->domain);
	rc = dfi_endpoint_ready(ep, true);
	if (!rc &&
	    !(op = dfi_op_new(ep, true, FI_RECV | (what->flags & FI_TAGGED ? FI_TAGGED : FI_MSG),
			      what->context)))
		rc = -FI_ENOMEM;
	if (!rc)
		rc = dfi_pieces(&op->pieces, iov, desc, count);
	if (!rc)
		rc = start_receive(ep, op, what);
	if (rc && op)
		dfi_op_cancel(op);
	dfi_leave();
	return rc;
}

/* Messages of peers ---------------------------------------------------------------------------- */

bool dfi_message_eager(struct domain *domain, struct peer *peer, const struct message *message)
{
	const struct arrival arrival = {
		.peer = peer,
		.tagged = message->flags & MESSAGE_TAG,
		.has_data = message->flags & MESSAGE_DATA,
		.tag = message->tag,
		.data = message->data,
		.length = message->length,
		.bytes = message->payload,
	};

	return !domain->ep || dfi_match_arrival(domain->ep, &arrival);
}

bool dfi_message_offer(struct domain *domain, struct peer *peer, const struct message *message)
{
	struct offer offered;
	struct arrival arrival = {
		.peer = peer,
		.tagged = message->flags & MESSAGE_TAG,
		.has_data = message->flags & MESSAGE_DATA,
		.tag = message->tag,
		.data = message->data,
	};

	if (message->length != sizeof(offered))
		return false;
	memcpy(&offered, message->payload, sizeof(offered));
	if (offered.length > MESSAGE_LIMIT || (offered.length && !offered.key))
		return false;
	arrival.length = offered.length;
	arrival.offset = offered.offset;
	arrival.id = offered.id;
	arrival.key = offered.key;
	return !domain->ep || dfi_match_arrival(domain->ep, &arrival);
}

bool dfi_message_fetched(struct domain *domain, struct peer *peer, const struct message *message)
{
	uint64_t words[2];
	struct op *op;

	if (message->length != sizeof(words))
		return false;
	memcpy(words, message->payload, sizeof(words));
	op = dfi_op_answered(domain, peer, words[0]);
	if (op)
		dfi_op_end(op, op->pieces.length, words[1] ? FI_EIO : 0);
	return true;
}

/* Calls ---------------------------------------------------------------------------------------- */

static struct endpoint *endpoint_of(struct fid_ep *fid)
{
	return member_of(fid, struct endpoint, fid);
}

static struct iovec piece(const void *memory, size_t length)
{
	return (struct iovec){ .iov_base = (void *)(uintptr_t)memory, .iov_len = length };
}

static ssize_t message_recv(struct fid_ep *fid, void *memory, size_t length, void *desc,
			    fi_addr_t from, void *context)
{
	struct endpoint *ep = endpoint_of(fid);
	const struct iovec iov = piece(memory, length);
	const struct receive what = { from, 0, 0, context, ep->receive_flags };

	return receive(ep, &iov, &desc, 1, &what);
}

static ssize_t message_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			     fi_addr_t from, void *context)
{
	struct endpoint *ep = endpoint_of(fid);
	const struct receive what = { from, 0, 0, context, ep->receive_flags };

	return receive(ep, iov, desc, count, &what);
}

static ssize_t message_recvmsg(struct fid_ep *fid, const struct fi_msg *m, uint64_t flags)
{
	const struct receive what = { m->addr, 0, 0, m->context, flags };

	return receive(endpoint_of(fid), m->msg_iov, m->desc, m->iov_count, &what);
}

static ssize_t message_send(struct fid_ep *fid, const void *memory, size_t length, void *desc,
			    fi_addr_t to, void *context)
{
	struct endpoint *ep = endpoint_of(fid);
	const struct iovec iov = piece(memory, length);
	const struct send what = { to, 0, 0, context, ep->transmit_flags };

	return send(ep, &iov, &desc, 1, &what);
}

static ssize_t message_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			     fi_addr_t to, void *context)
{
	struct endpoint *ep = endpoint_of(fid);
	const struct send what = { to, 0, 0, context, ep->transmit_flags };

	return send(ep, iov, desc, count, &what);
}

static ssize_t message_sendmsg(struct fid_ep *fid, const struct fi_msg *m, uint64_t flags)
{
	const struct send what = { m->addr, 0, m->data, m->context, flags };

	return send(endpoint_of(fid), m->msg_iov, m->desc, m->iov_count, &what);
}

static ssize_t message_inject(struct fid_ep *fid, const void *memory, size_t length, fi_addr_t to)
{
	const struct iovec iov = piece(memory, length);
	const struct send what = { to, 0, 0, NULL, FI_INJECT | DFI_SILENT };

	return send(endpoint_of(fid), &iov, NULL, 1, &what);
}

static ssize_t message_senddata(struct fid_ep *fid, const void *memory, size_t length, void *desc,
				uint64_t data, fi_addr_t to, void *context)
{
	struct endpoint *ep = endpoint_of(fid);
	const struct iovec iov = piece(memory, length);
	const struct send what = { to, 0, data, context, ep->transmit_flags | FI_REMOTE_CQ_DATA };

	return send(ep, &iov, &desc, 1, &what);
}

static ssize_t message_injectdata(struct fid_ep *fid, const void *memory, size_t length,
				  uint64_t data, fi_addr_t to)
{
	const struct iovec iov = piece(memory, length);
	const struct send what = { to, 0, data, NULL, FI_INJECT | DFI_SILENT | FI_REMOTE_CQ_DATA };

	return send(endpoint_of(fid), &iov, NULL, 1, &what);
}

struct fi_ops_msg dfi_message_ops = {
	.size = sizeof(dfi_message_ops),
	.recv = message_recv,
	.recvv = message_recvv,
	.recvmsg = message_recvmsg,
	.send = message_send,
	.sendv = message_sendv,
	.sendmsg = message_sendmsg,
	.inject = message_inject,
	.senddata = message_senddata,
	.injectdata = message_injectdata,
};

static ssize_t tagged_recv(struct fid_ep *fid, void *memory, size_t length, void *desc,
			   fi_addr_t from, uint64_t tag, uint64_t ignore, void *context)
{
	struct endpoint *ep = endpoint_of(fid);
	const struct iovec iov = piece(memory, length);
	const struct receive what = { from, tag, ignore, context, ep->receive_flags | FI_TAGGED };

	return receive(ep, &iov, &desc, 1, &what);
}

static ssize_t tagged_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			    fi_addr_t from, uint64_t tag, uint64_t ignore, void *context)
{
	struct endpoint *ep = endpoint_of(fid);
	const struct receive what = { from, tag, ignore, context, ep->receive_flags | FI_TAGGED };

	return receive(ep, iov, desc, count, &what);
}

static ssize_t tagged_recvmsg(struct fid_ep *fid, const struct fi_msg_tagged *m, uint64_t flags)
{
	const struct receive what = { m->addr, m->tag, m->ignore, m->context, flags | FI_TAGGED };

	return receive(endpoint_of(fid), m->msg_iov, m->desc, m->iov_count, &what);
}

static ssize_t tagged_send(struct fid_ep *fid, const void *memory, size_t length, void *desc,
			   fi_addr_t to, uint64_t tag, void *context)
{
	struct endpoint *ep = endpoint_of(fid);
	const struct iovec iov = piece(memory, length);
	const struct send what = { to, tag, 0, context, ep->transmit_flags | FI_TAGGED };

	return send(ep, &iov, &desc, 1, &what);
}

static ssize_t tagged_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			    fi_addr_t to, uint64_t tag, void *context)
{
	struct endpoint *ep = endpoint_of(fid);
	const struct send what = { to, tag, 0, context, ep->transmit_flags | FI_TAGGED };

	return send(ep, iov, desc, count, &what);
}

static ssize_t tagged_sendmsg(struct fid_ep *fid, const struct fi_msg_tagged *m, uint64_t flags)
{
	const struct send what = { m->addr, m->tag, m->data, m->context, flags | FI_TAGGED };

	return send(endpoint_of(fid), m->msg_iov, m->desc, m->iov_count, &what);
}

static ssize_t tagged_inject(struct fid_ep *fid, const void *memory, size_t length, fi_addr_t to,
			     uint64_t tag)
{
	const struct iovec iov = piece(memory, length);
	const struct send what = { to, tag, 0, NULL, FI_INJECT | DFI_SILENT | FI_TAGGED };

	return send(endpoint_of(fid), &iov, NULL, 1, &what);
}

static ssize_t tagged_senddata(struct fid_ep *fid, const void *memory, size_t length, void *desc,
			       uint64_t data, fi_addr_t to, uint64_t tag, void *context)
{
	struct endpoint *ep = endpoint_of(fid);
	const struct iovec iov = piece(memory, length);
	const struct send what = { to, tag, data, context,
				   ep->transmit_flags | FI_REMOTE_CQ_DATA | FI_TAGGED };

	return send(ep, &iov, &desc, 1, &what);
}

static ssize_t tagged_injectdata(struct fid_ep *fid, const void *memory, size_t length,
				 uint64_t data, fi_addr_t to, uint64_t tag)
{
	const struct iovec iov = piece(memory, length);
	const struct send what = { to, tag, data, NULL,
				   FI_INJECT | DFI_SILENT | FI_REMOTE_CQ_DATA | FI_TAGGED };

	return send(endpoint_of(fid), &iov, NULL, 1, &what);
}

struct fi_ops_tagged dfi_tagged_ops = {
	.size = sizeof(dfi_tagged_ops),
	.recv = tagged_recv,
	.recvv = tagged_recvv,
	.recvmsg = tagged_recvmsg,
	.send = tagged_send,
	.sendv = tagged_sendv,
	.sendmsg = tagged_sendmsg,
	.inject = tagged_inject,
	.senddata = tagged_senddata,
	.injectdata = tagged_injectdata,
};
