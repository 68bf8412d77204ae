/* Atomics: messages to the process that owns the memory, which executes them in its progress.
 *
 * The card's own atomics are not atomic against the CPU of the memory's host, and a card cannot
 * reach its own host by the link. So a process's atomics on its own memory could not be mixed with
 * those of others. Executed by the owner, all of them are atomic with each other.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <string.h>

#include "arithmetic.h"
#include "atomic.h"
#include "charge.h"
#include "endpoint.h"
#include "message.h"
#include "progress.h"
#include "region.h"
#include "ring.h"

#define OPERANDS 1024u /* bytes of the operands of one atomic */

enum variant {
	VARIANT_WRITE,
	VARIANT_FETCH,
	VARIANT_COMPARE,
};

struct request {
	uint64_t key, offset, id;
	uint16_t count;
	uint8_t type, op;
	uint8_t variant, reserved[3];
	/* Operands and compared values follow. */
};

struct result {
	uint64_t id, error;
	/* Former values follow. */
};

_Static_assert(sizeof(struct request) + 2 * OPERANDS <= PAYLOAD_BYTES, "a request is one message");

static bool exists(enum variant variant, enum fi_datatype type, enum fi_op op)
{
	if (!dfi_arithmetic_exists(type, op))
		return false;
	if (variant == VARIANT_COMPARE)
		return op >= FI_CSWAP;
	return op < FI_CSWAP && (op != FI_ATOMIC_READ || variant == VARIANT_FETCH);
}

/* Executing ------------------------------------------------------------------------------------ */

/* Returns a positive FI_ number, or 0. */
static int execute(const struct domain *domain, const struct request *request, const void *operand,
		   const void *compare, void *result)
{
	enum fi_datatype type = request->type;
	size_t size = dfi_element_bytes(type), bytes = request->count * size;
	uint64_t access = (request->variant == VARIANT_WRITE ? 0 : FI_REMOTE_READ) |
			  (request->op == FI_ATOMIC_READ ? 0 : FI_REMOTE_WRITE);
	void *memory;

	if (request->variant > VARIANT_COMPARE || !exists(request->variant, type, request->op) ||
	    !request->count || bytes > OPERANDS)
		return FI_EOPNOTSUPP;
	memory = dfi_region_memory(domain, request->key, request->offset, bytes, access);
	if (!memory)
		return FI_ENOKEY;
	if ((uintptr_t)memory % size)
		return FI_EINVAL;
	dfi_arithmetic(type, request->op, request->count, memory, operand,
		       request->variant == VARIANT_COMPARE ? compare : NULL, result);
	return 0;
}

bool dfi_atomic_request(struct domain *domain, struct peer *peer, const struct message *message)
{
	struct {
		struct result head;
		uint64_t values[OPERANDS / 8];
	} answer = { 0 };
	uint64_t operands[OPERANDS / 8], compared[OPERANDS / 8];
	struct message told = { .kind = MESSAGE_RESULT, .payload = &answer };
	struct request request;
	size_t bytes;

	if (message->length < sizeof(request))
		return false;
	memcpy(&request, message->payload, sizeof(request));
	bytes = request.count * dfi_element_bytes(request.type);
	if (bytes > OPERANDS || message->length != sizeof(request) + 2 * bytes)
		return false;
	memcpy(operands, (const uint8_t *)message->payload + sizeof(request), bytes);
	memcpy(compared, (const uint8_t *)message->payload + sizeof(request) + bytes, bytes);
	answer.head.id = request.id;
	answer.head.error = (uint64_t)execute(domain, &request, operands, compared, answer.values);
	told.length =
		(uint16_t)(sizeof(answer.head) + (request.variant == VARIANT_WRITE ? 0 : bytes));
	dfi_ring_send(domain, peer, &told, NULL, NULL);
	return true;
}

bool dfi_atomic_result(struct domain *domain, struct peer *peer, const struct message *message)
{
	const uint8_t *values = message->payload;
	struct result result;
	struct op *op;
	size_t bytes;

	if (message->length < sizeof(result))
		return false;
	memcpy(&result, message->payload, sizeof(result));
	op = dfi_op_answered(domain, peer, result.id);
	if (!op)
		return true;
	bytes = message->length - sizeof(result);
	if (!result.error && op->result.length) {
		if (bytes != op->result.length)
			return false;
		dfi_scatter(&op->result, 0, values + sizeof(result), bytes);
	}
	dfi_op_end(op, op->result.length, result.error ? (int)(result.error & 0xffff) : 0);
	return true;
}

/* Asking --------------------------------------------------------------------------------------- */

static void requested(void *owner, int error)
{
	struct op *op = owner;

	if (error)
		dfi_op_end(op, 0, error);
	dfi_op_put(op);
}

struct atomic {
	enum variant variant;
	struct pieces operand, compare, result;
	fi_addr_t peer;
	uint64_t offset, key;
	enum fi_datatype type;
	enum fi_op op;
	void *context;
	uint64_t flags;
};

struct full_request {
	struct request head;
	uint8_t values[2 * OPERANDS];
};

/* `bytes` of operands, and as many of compared values whether they are used or not. */
static void fill(struct full_request *full, const struct op *op, const struct atomic *a,
		 size_t bytes)
{
	memset(full, 0, sizeof(full->head) + 2 * bytes);
	full->head = (struct request){
		.key = a->key,
		.offset = a->offset,
		.id = op->id,
		.count = (uint16_t)(bytes / dfi_element_bytes(a->type)),
		.type = (uint8_t)a->type,
		.op = (uint8_t)a->op,
		.variant = (uint8_t)a->variant,
	};
	if (a->op != FI_ATOMIC_READ)
		dfi_gather(full->values, &a->operand);
	if (a->variant == VARIANT_COMPARE)
		dfi_gather(full->values + bytes, &a->compare);
}

static void execute_here(struct op *op, const struct full_request *full, size_t bytes)
{
	uint64_t operands[OPERANDS / 8], compared[OPERANDS / 8], former[OPERANDS / 8];
	int error;

	memcpy(operands, full->values, bytes);
	memcpy(compared, full->values + bytes, bytes);
	error = execute(op->ep->domain, &full->head, operands, compared, former);
	if (!error)
		dfi_scatter(&op->result, 0, former, op->result.length);
	dfi_op_end(op, op->result.length, error);
}

static int begin(struct op *op, const struct atomic *a, size_t bytes)
{
	struct full_request full;
	struct message message = { .kind = MESSAGE_ATOMIC, .payload = &full };
	int rc;

	fill(&full, op, a, bytes);
	if (op->peer->self) {
		execute_here(op, &full, bytes);
		return 0;
	}
	message.length = (uint16_t)(sizeof(full.head) + 2 * bytes);
	list_append(&op->ep->answered_later, &op->place);
	op->refs++;
	rc = dfi_ring_send(op->ep->domain, op->peer, &message, requested, op);
	if (rc)
		op->refs--;
	return rc;
}

static int check(const struct atomic *a, size_t *bytes)
{
	*bytes = a->variant == VARIANT_FETCH && a->op == FI_ATOMIC_READ ? a->result.length
									: a->operand.length;
	if (!exists(a->variant, a->type, a->op) || a->flags & FI_FENCE)
		return -FI_EOPNOTSUPP;
	if (!*bytes || *bytes > OPERANDS || *bytes % dfi_element_bytes(a->type) ||
	    (a->variant != VARIANT_WRITE && a->result.length != *bytes) ||
	    (a->variant == VARIANT_COMPARE && a->compare.length != *bytes))
		return -FI_EINVAL;
	return 0;
}

static ssize_t atomic(struct fid_ep *fid, const struct atomic *a)
{
	struct endpoint *ep = member_of(fid, struct endpoint, fid);
	struct op *op = NULL;
	size_t bytes;
	int rc = check(a, &bytes);

	if (rc)
		return rc;
	dfi_enter();
	dfi_charge(CHARGE_ATOMIC, 1);
	dfi_progress_alert(ep->domain);
	rc = dfi_endpoint_ready(ep, false);
	if (!rc && !(op = dfi_op_new(ep, false,
				     FI_ATOMIC | (a->variant == VARIANT_WRITE ? FI_WRITE : FI_READ),
				     a->context)))
		rc = -FI_ENOMEM;
	if (!rc && !(op->peer = dfi_endpoint_peer(ep, a->peer)))
		rc = -FI_EINVAL;
	if (!rc && op->peer->error)
		rc = -op->peer->error;
	if (!rc) {
		op->result = a->result;
		op->report = !(a->flags & DFI_SILENT) &&
			     (!ep->transmit_selective || a->flags & FI_COMPLETION);
		rc = begin(op, a, bytes);
	}
	if (rc && op)
		dfi_op_cancel(op);
	dfi_leave();
	return rc;
}

/* Calls ---------------------------------------------------------------------------------------- */

/* Turn the caller's elements into pieces. A type that does not exist is found by check(). */
static int elements(struct pieces *pieces, const struct fi_ioc *ioc, void **desc, size_t count,
		    enum fi_datatype type)
{
	struct iovec iov[IOV_LIMIT];

	if (count > IOV_LIMIT)
		return -FI_EINVAL;
	for (size_t i = 0; i < count; i++)
		iov[i] = (struct iovec){ .iov_base = ioc[i].addr,
					 .iov_len = ioc[i].count * dfi_element_bytes(type) };
	return dfi_pieces(pieces, iov, desc, count);
}

static struct fi_ioc element(const void *memory, size_t count)
{
	return (struct fi_ioc){ .addr = (void *)(uintptr_t)memory, .count = count };
}

static uint64_t usual(const struct fid_ep *fid)
{
	return member_of(fid, struct endpoint, fid)->transmit_flags;
}

static ssize_t atomic_message(struct fid_ep *fid, enum variant variant,
			      const struct fi_msg_atomic *m, const struct fi_ioc *compare,
			      size_t compares, struct fi_ioc *result, size_t results,
			      uint64_t flags)
{
	struct atomic a = {
		.variant = variant,
		.peer = m->addr,
		.type = m->datatype,
		.op = m->op,
		.context = m->context,
		.flags = flags,
	};
	int rc;

	if (m->rma_iov_count != 1)
		return -FI_EINVAL;
	a.offset = m->rma_iov[0].addr;
	a.key = m->rma_iov[0].key;
	/* FI_ATOMIC_READ ignores the operand, which may be NULL (fi_atomic(3)). */
	if ((rc = elements(&a.operand, m->msg_iov, m->desc,
			   m->op == FI_ATOMIC_READ ? 0 : m->iov_count, a.type)) ||
	    (rc = elements(&a.compare, compare, NULL, compares, a.type)) ||
	    (rc = elements(&a.result, result, NULL, results, a.type)))
		return rc;
	return atomic(fid, &a);
}

struct place {
	fi_addr_t peer;
	uint64_t offset, key;
	enum fi_datatype type;
	enum fi_op op;
};

static ssize_t atomic_vectors(struct fid_ep *fid, enum variant variant, const struct fi_ioc *iov,
			      size_t count, const struct fi_ioc *compare, size_t compares,
			      struct fi_ioc *result, size_t results, const struct place *place,
			      void *context, uint64_t flags)
{
	const struct fi_rma_ioc target = { .addr = place->offset, .key = place->key };
	const struct fi_msg_atomic m = {
		.msg_iov = iov,
		.iov_count = count,
		.addr = place->peer,
		.rma_iov = &target,
		.rma_iov_count = 1,
		.datatype = place->type,
		.op = place->op,
		.context = context,
	};

	return atomic_message(fid, variant, &m, compare, compares, result, results, flags);
}

static ssize_t atomic_write(struct fid_ep *fid, const void *memory, size_t count, void *desc,
			    fi_addr_t peer, uint64_t offset, uint64_t key, enum fi_datatype type,
			    enum fi_op op, void *context)
{
	const struct fi_ioc ioc = element(memory, count);
	const struct place place = { peer, offset, key, type, op };

	(void)desc;
	return atomic_vectors(fid, VARIANT_WRITE, &ioc, 1, NULL, 0, NULL, 0, &place, context,
			      usual(fid));
}

static ssize_t atomic_writev(struct fid_ep *fid, const struct fi_ioc *ioc, void **desc,
			     size_t count, fi_addr_t peer, uint64_t offset, uint64_t key,
			     enum fi_datatype type, enum fi_op op, void *context)
{
	const struct place place = { peer, offset, key, type, op };

	(void)desc;
	return atomic_vectors(fid, VARIANT_WRITE, ioc, count, NULL, 0, NULL, 0, &place, context,
			      usual(fid));
}

static ssize_t atomic_writemsg(struct fid_ep *fid, const struct fi_msg_atomic *m, uint64_t flags)
{
	return atomic_message(fid, VARIANT_WRITE, m, NULL, 0, NULL, 0, flags);
}

static ssize_t atomic_inject(struct fid_ep *fid, const void *memory, size_t count, fi_addr_t peer,
			     uint64_t offset, uint64_t key, enum fi_datatype type, enum fi_op op)
{
	const struct fi_ioc ioc = element(memory, count);
	const struct place place = { peer, offset, key, type, op };

	return atomic_vectors(fid, VARIANT_WRITE, &ioc, 1, NULL, 0, NULL, 0, &place, NULL,
			      DFI_SILENT);
}

static ssize_t atomic_readwrite(struct fid_ep *fid, const void *memory, size_t count, void *desc,
				void *result, void *result_desc, fi_addr_t peer, uint64_t offset,
				uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
	const struct fi_ioc ioc = element(memory, count);
	const struct place place = { peer, offset, key, type, op };
	struct fi_ioc former = element(result, count);

	(void)desc, (void)result_desc;
	return atomic_vectors(fid, VARIANT_FETCH, &ioc, 1, NULL, 0, &former, 1, &place, context,
			      usual(fid));
}

static ssize_t atomic_readwritev(struct fid_ep *fid, const struct fi_ioc *ioc, void **desc,
				 size_t count, struct fi_ioc *result, void **result_desc,
				 size_t results, fi_addr_t peer, uint64_t offset, uint64_t key,
				 enum fi_datatype type, enum fi_op op, void *context)
{
	const struct place place = { peer, offset, key, type, op };

	(void)desc, (void)result_desc;
	return atomic_vectors(fid, VARIANT_FETCH, ioc, count, NULL, 0, result, results, &place,
			      context, usual(fid));
}

static ssize_t atomic_readwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *m,
				   struct fi_ioc *result, void **result_desc, size_t results,
				   uint64_t flags)
{
	(void)result_desc;
	return atomic_message(fid, VARIANT_FETCH, m, NULL, 0, result, results, flags);
}

static ssize_t atomic_compwrite(struct fid_ep *fid, const void *memory, size_t count, void *desc,
				const void *compare, void *compare_desc, void *result,
				void *result_desc, fi_addr_t peer, uint64_t offset, uint64_t key,
				enum fi_datatype type, enum fi_op op, void *context)
{
	const struct fi_ioc ioc = element(memory, count), compared = element(compare, count);
	const struct place place = { peer, offset, key, type, op };
	struct fi_ioc former = element(result, count);

	(void)desc, (void)compare_desc, (void)result_desc;
	return atomic_vectors(fid, VARIANT_COMPARE, &ioc, 1, &compared, 1, &former, 1, &place,
			      context, usual(fid));
}

static ssize_t atomic_compwritev(struct fid_ep *fid, const struct fi_ioc *ioc, void **desc,
				 size_t count, const struct fi_ioc *compare, void **compare_desc,
				 size_t compares, struct fi_ioc *result, void **result_desc,
				 size_t results, fi_addr_t peer, uint64_t offset, uint64_t key,
				 enum fi_datatype type, enum fi_op op, void *context)
{
	const struct place place = { peer, offset, key, type, op };

	(void)desc, (void)compare_desc, (void)result_desc;
	return atomic_vectors(fid, VARIANT_COMPARE, ioc, count, compare, compares, result, results,
			      &place, context, usual(fid));
}

static ssize_t atomic_compwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *m,
				   const struct fi_ioc *compare, void **compare_desc,
				   size_t compares, struct fi_ioc *result, void **result_desc,
				   size_t results, uint64_t flags)
{
	(void)compare_desc, (void)result_desc;
	return atomic_message(fid, VARIANT_COMPARE, m, compare, compares, result, results, flags);
}

/* How many elements an atomic can have. */
static int valid(enum variant variant, enum fi_datatype type, enum fi_op op, size_t *count)
{
	if (!exists(variant, type, op))
		return -FI_EOPNOTSUPP;
	*count = OPERANDS / dfi_element_bytes(type);
	return 0;
}

static int atomic_writevalid(struct fid_ep *fid, enum fi_datatype type, enum fi_op op,
			     size_t *count)
{
	(void)fid;
	return valid(VARIANT_WRITE, type, op, count);
}

static int atomic_readwritevalid(struct fid_ep *fid, enum fi_datatype type, enum fi_op op,
				 size_t *count)
{
	(void)fid;
	return valid(VARIANT_FETCH, type, op, count);
}

static int atomic_compwritevalid(struct fid_ep *fid, enum fi_datatype type, enum fi_op op,
				 size_t *count)
{
	(void)fid;
	return valid(VARIANT_COMPARE, type, op, count);
}

int dfi_atomic_query(struct fid_domain *domain, enum fi_datatype type, enum fi_op op,
		     struct fi_atomic_attr *attr, uint64_t flags)
{
	enum variant variant = flags & FI_COMPARE_ATOMIC ? VARIANT_COMPARE
			       : flags & FI_FETCH_ATOMIC ? VARIANT_FETCH
							 : VARIANT_WRITE;

	(void)domain;
	attr->size = dfi_element_bytes(type);
	return valid(variant, type, op, &attr->count);
}

struct fi_ops_atomic dfi_atomic_ops = {
	.size = sizeof(dfi_atomic_ops),
	.write = atomic_write,
	.writev = atomic_writev,
	.writemsg = atomic_writemsg,
	.inject = atomic_inject,
	.readwrite = atomic_readwrite,
	.readwritev = atomic_readwritev,
	.readwritemsg = atomic_readwritemsg,
	.compwrite = atomic_compwrite,
	.compwritev = atomic_compwritev,
	.compwritemsg = atomic_compwritemsg,
	.writevalid = atomic_writevalid,
	.readwritevalid = atomic_readwritevalid,
	.compwritevalid = atomic_compwritevalid,
};
