/* The coalescer: short transfers at a constant distance become one strided command. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>
#include <string.h>

#include "charge.h"
#include "coalesce.h"
#include "command.h"
#include "domain.h"
#include "endpoint.h"
#include "errors.h"

/* Longer blocks fill packets by themselves. At least eight of this length share a buffer. */
#define BLOCK 512u

/* Operations that go by one command. */
struct batch {
	struct list ops;
	struct peer *peer;
	uint32_t key, block, count;
	uint64_t offset; /* of the first block */
	int64_t stride;
	bool writes;
	void (*again)(struct op *op);
	uint8_t bytes[BUFFER_BYTES]; /* of all blocks, one behind the other */
};

struct coalescer {
	/* What came last, alone or in a batch. */
	const struct peer *peer;
	uint32_t key, block;
	uint64_t offset;
	int64_t stride;
	bool writes;
	struct batch *held;
	bool grew; /* since progress was made */
};

/* Ends of batches ------------------------------------------------------------------------------ */

static bool begins_again(struct domain *domain, const struct op *op, int error)
{
	return error == FI_ENOKEY && domain->user_keys && !op->retried;
}

static void end_batch(struct domain *domain, struct batch *batch, int error)
{
	uint32_t place = 0;

	while (!list_empty(&batch->ops)) {
		struct op *op = member_of(batch->ops.next, struct op, place);

		list_remove(&op->place);
		if (!error && !batch->writes)
			dfi_scatter(&op->pieces, 0, batch->bytes + place, batch->block);
		place += batch->block;
		if (begins_again(domain, op, error))
			batch->again(op);
		else
			dfi_op_end(op, op->pieces.length, error);
		dfi_op_put(op);
	}
	free(batch);
}

static void ended(struct domain *domain, struct command *command, int status)
{
	struct batch *batch = command->owner;
	int error = status < 0 ? -status : dfi_status_error((unsigned int)status);

	if (error == FI_ETIMEDOUT || error == FI_ECONNRESET)
		dfi_peer_lost(domain, batch->peer, error);
	if (!error && !batch->writes) {
		memcpy(batch->bytes, domain->staging + command->local_offset, command->length);
		dfi_charge_copy(command->length);
	}
	end_batch(domain, batch, error);
}

/* Batches -------------------------------------------------------------------------------------- */

static void issue(struct domain *domain, struct batch *batch)
{
	const struct dib_walk there = {
		.key = batch->key,
		.block = batch->block,
		.offset = batch->offset,
		.levels = 1,
		.count = { batch->count },
		.stride = { batch->stride },
	};
	struct command *command = dfi_command_new(batch->writes ? COMMAND_PUT : COMMAND_GET,
						  batch->peer, ended, batch);

	if (!command)
		return end_batch(domain, batch, FI_ENOMEM);
	if (dfi_command_scatter(command, batch->writes ? batch->bytes : NULL,
				batch->block * batch->count, &there))
		return end_batch(domain, batch, FI_ENOMEM);
	dfi_command_issue(domain, command);
}

void dfi_coalesce_flush(struct domain *domain)
{
	struct batch *batch = domain->coalescer ? domain->coalescer->held : NULL;

	if (!batch)
		return;
	domain->coalescer->held = NULL;
	if (domain->broken)
		end_batch(domain, batch, domain->broken);
	else if (batch->peer->error)
		end_batch(domain, batch, batch->peer->error);
	else
		issue(domain, batch);
}

bool dfi_coalesce_progress(struct domain *domain)
{
	struct coalescer *coalescer = domain->coalescer;

	if (!coalescer || !coalescer->held)
		return false;
	if (coalescer->grew && !domain->broken) {
		coalescer->grew = false;
		return true;
	}
	dfi_coalesce_flush(domain);
	return false;
}

static void add(struct coalescer *coalescer, struct batch *batch, struct op *op)
{
	if (batch->writes)
		dfi_gather(batch->bytes + (size_t)batch->block * batch->count, &op->pieces);
	batch->count++;
	op->refs++;
	list_append(&batch->ops, &op->place);
	coalescer->grew = true;
}

/* Whether a transfer lies behind the last one as that lay behind the one before. */
static bool continues(const struct coalescer *coalescer, const struct op *op, uint32_t key)
{
	return coalescer->peer == op->peer && coalescer->key == key &&
	       coalescer->writes == op->writes && coalescer->block == op->pieces.length &&
	       coalescer->stride &&
	       op->remote_offset - coalescer->offset == (uint64_t)coalescer->stride;
}

static void remember(struct coalescer *coalescer, const struct op *op, uint32_t key)
{
	bool alike = coalescer->peer == op->peer && coalescer->key == key &&
		     coalescer->writes == op->writes && coalescer->block == op->pieces.length;
	int64_t distance = (int64_t)(op->remote_offset - coalescer->offset);

	/* Blocks that overlap would be written in no order. */
	if (!alike || (distance < 0 ? -distance : distance) < (int64_t)op->pieces.length)
		distance = 0;
	coalescer->peer = op->peer;
	coalescer->key = key;
	coalescer->writes = op->writes;
	coalescer->block = (uint32_t)op->pieces.length;
	coalescer->offset = op->remote_offset;
	coalescer->stride = distance;
}

bool dfi_coalesce(struct op *op, uint32_t card_key, void (*again)(struct op *op))
{
	struct domain *domain = op->ep->domain;
	struct coalescer *coalescer = domain->coalescer;
	struct batch *batch;
	bool fits;

	if (!coalescer)
		return false;
	if (op->pieces.length > BLOCK || op->has_data || op->retried) {
		dfi_coalesce_flush(domain);
		coalescer->peer = NULL;
		return false;
	}
	fits = continues(coalescer, op, card_key);
	remember(coalescer, op, card_key);
	if (!fits) {
		dfi_coalesce_flush(domain);
		return false;
	}
	batch = coalescer->held;
	if (batch && (batch->count + 1) * batch->block > BUFFER_BYTES)
		dfi_coalesce_flush(domain);
	if (!coalescer->held) {
		batch = malloc(sizeof(*batch));
		if (!batch)
			return false;
		*batch = (struct batch){
			.peer = op->peer,
			.key = card_key,
			.block = (uint32_t)op->pieces.length,
			.offset = op->remote_offset,
			.stride = coalescer->stride,
			.writes = op->writes,
			.again = again,
		};
		list_init(&batch->ops);
		coalescer->held = batch;
	}
	add(coalescer, batch, op);
	return true;
}

/* Begin and end -------------------------------------------------------------------------------- */

int dfi_coalesce_begin(struct domain *domain)
{
	int wanted = 1;

	fi_param_get_bool(&dfi_provider, "coalesce", &wanted);
	if (!wanted)
		return 0;
	domain->coalescer = calloc(1, sizeof(*domain->coalescer));
	return domain->coalescer ? 0 : -FI_ENOMEM;
}

void dfi_coalesce_end(struct domain *domain)
{
	free(domain->coalescer);
	domain->coalescer = NULL;
}
