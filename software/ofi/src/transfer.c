/* fi_read and fi_write with their variants: gets and puts of the card. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>
#include <string.h>

#include "charge.h"
#include "coalesce.h"
#include "endpoint.h"
#include "errors.h"
#include "message.h"
#include "progress.h"
#include "region.h"
#include "ring.h"
#include "transfer.h"

#define COPIED BUFFER_BYTES /* the longest transfer that goes through a buffer of staging */

/* Keys ----------------------------------------------------------------------------------------- */

/* Where the program chooses the keys (mr_mode 0), the peer is asked once for the card's key. */
struct known_key {
	struct list place;
	struct peer *peer;
	uint64_t key;
	uint32_t card_key;
};

static struct known_key *known(struct domain *domain, const struct peer *peer, uint64_t key)
{
	list_each(item, following, &domain->known_keys) {
		struct known_key *entry = member_of(item, struct known_key, place);

		if (entry->peer == peer && entry->key == key)
			return entry;
	}
	return NULL;
}

static void forget_key(struct domain *domain, const struct peer *peer, uint64_t key)
{
	struct known_key *entry = known(domain, peer, key);

	if (!entry)
		return;
	list_remove(&entry->place);
	free(entry);
}

/* Without memory the key is asked for again next time. */
static void remember_key(struct domain *domain, struct peer *peer, uint64_t key, uint32_t card_key)
{
	struct known_key *entry;

	forget_key(domain, peer, key);
	entry = malloc(sizeof(*entry));
	if (!entry)
		return;
	*entry = (struct known_key){ .peer = peer, .key = key, .card_key = card_key };
	list_append(&domain->known_keys, &entry->place);
}

void dfi_transfer_forget(struct domain *domain)
{
	while (!list_empty(&domain->known_keys)) {
		struct known_key *entry =
			member_of(domain->known_keys.next, struct known_key, place);

		list_remove(&entry->place);
		free(entry);
	}
}

static void asked(void *owner, int error)
{
	struct op *op = owner;

	if (error)
		dfi_op_end(op, 0, error);
	dfi_op_put(op);
}

static void ask_for_key(struct op *op)
{
	const uint64_t words[2] = { op->id, op->remote_key };
	const struct message message = { .kind = MESSAGE_ASK_KEY,
					 .length = sizeof(words),
					 .payload = words };
	int rc;

	list_append(&op->ep->answered_later, &op->place);
	op->refs++;
	rc = dfi_ring_send(op->ep->domain, op->peer, &message, asked, op);
	if (rc) {
		dfi_op_end(op, 0, -rc);
		dfi_op_put(op);
	}
}

bool dfi_transfer_ask_key(struct domain *domain, struct peer *peer, const struct message *message)
{
	uint64_t words[2], answer[2];
	const struct message told = { .kind = MESSAGE_TELL_KEY,
				      .length = sizeof(answer),
				      .payload = answer };
	const struct region *region;

	if (message->length != sizeof(words))
		return false;
	memcpy(words, message->payload, sizeof(words));
	region = dfi_region_of_key(domain, words[1]);
	answer[0] = words[0];
	answer[1] = region && region->region ? dib_key(region->region) : 0;
	dfi_ring_send(domain, peer, &told, NULL, NULL);
	return true;
}

/* Commands ------------------------------------------------------------------------------------- */

static void noted(void *owner, int error)
{
	struct op *op = owner;

	dfi_op_end(op, op->pieces.length, error);
	dfi_op_put(op);
}

/* The data of a write is told when the write has ended. */
static void send_note(struct op *op)
{
	const struct message note = { .kind = MESSAGE_NOTE,
				      .flags = MESSAGE_DATA,
				      .data = op->data };
	int rc;

	op->refs++;
	rc = dfi_ring_send(op->ep->domain, op->peer, &note, noted, op);
	if (rc)
		noted(op, -rc);
}

static void start(struct op *op);

static void ended(struct domain *domain, struct command *command, int status)
{
	struct op *op = command->owner;
	int error = status < 0 ? -status : dfi_status_error((unsigned int)status);

	if (error == FI_ETIMEDOUT || error == FI_ECONNRESET)
		dfi_peer_lost(domain, op->peer, error);
	if (error == FI_ENOKEY && domain->user_keys && !op->retried) {
		/* The peer may have registered other memory with this key since. */
		op->retried = true;
		dfi_release(domain, &op->hold, &op->pieces, 0);
		forget_key(domain, op->peer, op->remote_key);
		start(op);
	} else if (!error && op->has_data) {
		send_note(op);
	} else {
		dfi_op_end(op, op->pieces.length, error);
	}
	dfi_op_put(op);
}

static int fill_write(struct op *op, struct command **command)
{
	uint8_t bytes[COPIED];

	if (op->hold.key) {
		(*command)->local_key = op->hold.key;
		(*command)->local_offset = op->hold.offset;
		return 0;
	}
	dfi_gather(bytes, &op->pieces);
	if (dfi_command_copy(*command, bytes, (uint32_t)op->pieces.length)) {
		*command = NULL;
		return -FI_ENOMEM;
	}
	return 0;
}

static void fill_read(struct op *op, struct command *command)
{
	command->local_key = op->hold.key;
	command->local_offset = op->hold.offset;
	command->land = op->hold.key ? NULL : op->pieces.iov[0].iov_base;
}

/* Whether a transfer goes through a buffer. Its own copy of a short one costs less than a region
 * for a moment. */
static bool goes_through_buffer(const struct op *op)
{
	if (op->pieces.length > COPIED || (!op->writes && op->pieces.count > 1))
		return false;
	return op->inject || op->pieces.length <= DIBBER_INLINE_BYTES || !op->pieces.desc[0];
}

static void start_again(struct op *op)
{
	op->retried = true;
	forget_key(op->ep->domain, op->peer, op->remote_key);
	start(op);
}

static void issue(struct op *op, uint32_t card_key)
{
	struct domain *domain = op->ep->domain;
	struct command *command;
	int rc = 0;

	if (dfi_coalesce(op, card_key, start_again))
		return;
	if (!goes_through_buffer(op) && !op->hold.key)
		rc = dfi_hold(domain, &op->pieces, op->pieces.length,
			      op->writes ? DIBBER_RIGHT_LOCAL_READ : DIBBER_RIGHT_LOCAL_WRITE,
			      &op->hold);
	if (rc == -FI_EAGAIN) {
		op->again = start;
		return dfi_op_wait_for_region(op);
	}
	command = rc ? NULL
		     : dfi_command_new(op->writes ? COMMAND_PUT : COMMAND_GET, op->peer, ended, op);
	if (command) {
		command->length = (uint32_t)op->pieces.length;
		command->remote_key = card_key;
		command->remote_offset = op->remote_offset;
		if (op->writes)
			rc = fill_write(op, &command);
		else
			fill_read(op, command);
	}
	if (!command)
		return dfi_op_end(op, 0, rc ? -rc : FI_ENOMEM);
	op->refs++;
	dfi_command_issue(domain, command);
}

static void start(struct op *op)
{
	struct domain *domain = op->ep->domain;
	const struct known_key *entry;

	if (!domain->user_keys)
		return op->remote_key >> 32 ? dfi_op_end(op, 0, FI_ENOKEY)
					    : issue(op, (uint32_t)op->remote_key);
	entry = known(domain, op->peer, op->remote_key);
	if (entry)
		return issue(op, entry->card_key);
	ask_for_key(op);
}

bool dfi_transfer_tell_key(struct domain *domain, struct peer *peer, const struct message *message)
{
	uint64_t words[2];
	struct op *op;

	if (message->length != sizeof(words))
		return false;
	memcpy(words, message->payload, sizeof(words));
	op = dfi_op_answered(domain, peer, words[0]);
	if (!op)
		return true;
	list_remove(&op->place);
	if (!words[1] || words[1] >> 32) {
		dfi_op_end(op, 0, FI_ENOKEY);
		return true;
	}
	remember_key(domain, peer, op->remote_key, (uint32_t)words[1]);
	issue(op, (uint32_t)words[1]);
	return true;
}

bool dfi_transfer_note(struct domain *domain, struct peer *peer, const struct message *message)
{
	const struct fi_cq_err_entry entry = {
		.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
		.data = message->data,
	};

	if (!(message->flags & MESSAGE_DATA))
		return false;
	if (domain->ep && domain->ep->receive)
		dfi_queue_report(domain->ep->receive, &entry, peer->address);
	return true;
}

/* Own memory ----------------------------------------------------------------------------------- */

static void transfer_here(struct op *op)
{
	struct domain *domain = op->ep->domain;
	size_t length = op->pieces.length;
	void *memory = dfi_region_memory(domain, op->remote_key, op->remote_offset, length,
					 op->writes ? FI_REMOTE_WRITE : FI_REMOTE_READ);
	const struct message note = { .flags = MESSAGE_DATA, .data = op->data };

	if (!memory)
		return dfi_op_end(op, 0, FI_ENOKEY);
	if (op->writes)
		dfi_gather(memory, &op->pieces);
	else
		dfi_scatter(&op->pieces, 0, memory, length);
	if (op->has_data)
		dfi_transfer_note(domain, op->peer, &note);
	dfi_op_end(op, length, 0);
}

/* Calls ---------------------------------------------------------------------------------------- */

struct transfer {
	fi_addr_t peer;
	uint64_t offset, key, data;
	void *context;
	uint64_t flags;
	bool writes;
};

static void begin(struct op *op)
{
	if (op->peer->self)
		transfer_here(op);
	else if (op->pieces.length)
		start(op);
	else if (op->has_data)
		send_note(op);
	else
		dfi_op_end(op, 0, 0);
}

static ssize_t transfer(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			const struct transfer *what)
{
	struct endpoint *ep = member_of(fid, struct endpoint, fid);
	struct op *op = NULL;
	int rc;

	if (what->flags & FI_FENCE)
		return -FI_EOPNOTSUPP;
	dfi_enter();
	dfi_charge(CHARGE_TRANSFER, 1);
	dfi_progress_alert(ep->domain);
	rc = dfi_endpoint_ready(ep, false);
	if (!rc && !(op = dfi_op_new(ep, false, FI_RMA | (what->writes ? FI_WRITE : FI_READ),
				     what->context)))
		rc = -FI_ENOMEM;
	if (!rc)
		rc = dfi_pieces(&op->pieces, iov, desc, count);
	if (!rc && (op->pieces.length > MESSAGE_LIMIT ||
		    (what->flags & FI_INJECT && op->pieces.length > PAYLOAD_BYTES)))
		rc = -FI_EMSGSIZE;
	if (!rc && !(op->peer = dfi_endpoint_peer(ep, what->peer)))
		rc = -FI_EINVAL;
	if (!rc && op->peer->error)
		rc = -op->peer->error;
	if (!rc) {
		op->remote_offset = what->offset;
		op->remote_key = what->key;
		op->data = what->data;
		op->has_data = what->flags & FI_REMOTE_CQ_DATA;
		op->inject = what->flags & FI_INJECT;
		op->writes = what->writes;
		op->report = !(what->flags & DFI_SILENT) &&
			     (!ep->transmit_selective || what->flags & FI_COMPLETION);
		begin(op);
	}
	if (rc && op)
		dfi_op_cancel(op);
	dfi_leave();
	return rc;
}

static uint64_t usual(const struct fid_ep *fid)
{
	return member_of(fid, struct endpoint, fid)->transmit_flags;
}

static struct iovec piece(const void *memory, size_t length)
{
	return (struct iovec){ .iov_base = (void *)(uintptr_t)memory, .iov_len = length };
}

static ssize_t transfer_read(struct fid_ep *fid, void *memory, size_t length, void *desc,
			     fi_addr_t from, uint64_t offset, uint64_t key, void *context)
{
	const struct iovec iov = piece(memory, length);
	const struct transfer what = { from, offset, key, 0, context, usual(fid), false };

	return transfer(fid, &iov, &desc, 1, &what);
}

static ssize_t transfer_readv(struct fid_ep *fid, const struct iovec *iov, void **desc,
			      size_t count, fi_addr_t from, uint64_t offset, uint64_t key,
			      void *context)
{
	const struct transfer what = { from, offset, key, 0, context, usual(fid), false };

	return transfer(fid, iov, desc, count, &what);
}

static ssize_t transfer_message(struct fid_ep *fid, const struct fi_msg_rma *m, uint64_t flags,
				bool writes)
{
	const struct transfer what = { m->addr, m->rma_iov[0].addr, m->rma_iov[0].key,
				       m->data, m->context,	    flags,
				       writes };
	size_t length = 0;

	if (m->rma_iov_count != 1)
		return -FI_EINVAL;
	for (size_t i = 0; i < m->iov_count; i++)
		length += m->msg_iov[i].iov_len;
	if (length != m->rma_iov[0].len)
		return -FI_EINVAL;
	return transfer(fid, m->msg_iov, m->desc, m->iov_count, &what);
}

static ssize_t transfer_readmsg(struct fid_ep *fid, const struct fi_msg_rma *m, uint64_t flags)
{
	return transfer_message(fid, m, flags & ~(uint64_t)(FI_REMOTE_CQ_DATA | FI_INJECT), false);
}

static ssize_t transfer_write(struct fid_ep *fid, const void *memory, size_t length, void *desc,
			      fi_addr_t to, uint64_t offset, uint64_t key, void *context)
{
	const struct iovec iov = piece(memory, length);
	const struct transfer what = { to, offset, key, 0, context, usual(fid), true };

	return transfer(fid, &iov, &desc, 1, &what);
}

static ssize_t transfer_writev(struct fid_ep *fid, const struct iovec *iov, void **desc,
			       size_t count, fi_addr_t to, uint64_t offset, uint64_t key,
			       void *context)
{
	const struct transfer what = { to, offset, key, 0, context, usual(fid), true };

	return transfer(fid, iov, desc, count, &what);
}

static ssize_t transfer_writemsg(struct fid_ep *fid, const struct fi_msg_rma *m, uint64_t flags)
{
	return transfer_message(fid, m, flags, true);
}

static ssize_t transfer_inject(struct fid_ep *fid, const void *memory, size_t length, fi_addr_t to,
			       uint64_t offset, uint64_t key)
{
	const struct iovec iov = piece(memory, length);
	const struct transfer what = { to, offset, key, 0, NULL, FI_INJECT | DFI_SILENT, true };

	return transfer(fid, &iov, NULL, 1, &what);
}

static ssize_t transfer_writedata(struct fid_ep *fid, const void *memory, size_t length, void *desc,
				  uint64_t data, fi_addr_t to, uint64_t offset, uint64_t key,
				  void *context)
{
	const struct iovec iov = piece(memory, length);
	const struct transfer what = { to,   offset,  key,
				       data, context, usual(fid) | FI_REMOTE_CQ_DATA,
				       true };

	return transfer(fid, &iov, &desc, 1, &what);
}

static ssize_t transfer_injectdata(struct fid_ep *fid, const void *memory, size_t length,
				   uint64_t data, fi_addr_t to, uint64_t offset, uint64_t key)
{
	const struct iovec iov = piece(memory, length);
	const struct transfer what = { to,   offset, key,
				       data, NULL,   FI_INJECT | DFI_SILENT | FI_REMOTE_CQ_DATA,
				       true };

	return transfer(fid, &iov, NULL, 1, &what);
}

struct fi_ops_rma dfi_transfer_ops = {
	.size = sizeof(dfi_transfer_ops),
	.read = transfer_read,
	.readv = transfer_readv,
	.readmsg = transfer_readmsg,
	.write = transfer_write,
	.writev = transfer_writev,
	.writemsg = transfer_writemsg,
	.inject = transfer_inject,
	.writedata = transfer_writedata,
	.injectdata = transfer_injectdata,
};
