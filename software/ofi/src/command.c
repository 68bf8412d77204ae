/* Commands of libdibber that wait for a slot of the card, and their ends. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>
#include <string.h>

#include "charge.h"
#include "command.h"
#include "domain.h"
#include "errors.h"
#include "pool.h"

#define BATCH 16

static struct pool kept_commands;

struct command *dfi_command_new(enum command_kind kind, struct peer *peer,
				void (*done)(struct domain *, struct command *, int), void *owner)
{
	struct command *command = pool_get(&kept_commands, sizeof(*command));

	if (!command)
		return NULL;
	/* All but `data`, which is long. */
	command->kind = kind;
	command->peer = peer;
	command->flags = 0;
	command->notice = 0;
	command->length = 0;
	command->local_key = command->remote_key = 0;
	command->local_offset = command->remote_offset = 0;
	command->buffer = -1;
	command->copy = NULL;
	command->land = NULL;
	command->strided = NULL;
	command->done = done;
	command->owner = owner;
	list_init(&command->place);
	return command;
}

int dfi_command_copy(struct command *command, const void *data, uint32_t length)
{
	command->length = length;
	if (length <= DIBBER_INLINE_BYTES) {
		command->kind = COMMAND_INLINE;
		memcpy(command->data, data, length);
		return 0;
	}
	dfi_charge(CHARGE_LONG, 1);
	command->copy = malloc(length);
	if (!command->copy) {
		pool_put(&kept_commands, command);
		return -FI_ENOMEM;
	}
	memcpy(command->copy, data, length);
	dfi_charge_copy(length);
	return 0;
}

int dfi_command_stride(struct command *command, const struct dib_side *here,
		       const struct dib_side *there, uint32_t length)
{
	command->length = length;
	command->strided = malloc(sizeof(*command->strided));
	if (!command->strided) {
		free(command->copy);
		pool_put(&kept_commands, command);
		return -FI_ENOMEM;
	}
	command->strided->here = *here;
	command->strided->there = *there;
	return 0;
}

int dfi_command_scatter(struct command *command, const void *data, uint32_t length,
			const struct dib_walk *there)
{
	/* Key and offset are known when the command gets its buffer. */
	const struct dib_side here = { .walk = { .block = length } };
	const struct dib_side other = { .walk = *there };

	if (data) {
		command->copy = malloc(length);
		if (!command->copy) {
			pool_put(&kept_commands, command);
			return -FI_ENOMEM;
		}
		memcpy(command->copy, data, length);
		dfi_charge_copy(length);
	}
	return dfi_command_stride(command, &here, &other, length);
}

static void release(struct domain *domain, struct command *command)
{
	if (command->buffer >= 0)
		domain->staging_used &= ~(1u << command->buffer);
	free(command->copy);
	free(command->strided);
	pool_put(&kept_commands, command);
}

static void end(struct domain *domain, struct command *command, int status)
{
	list_remove(&command->place);
	if (command->land && status == DIBBER_STATUS_OK) {
		memcpy(command->land, domain->staging + command->local_offset, command->length);
		dfi_charge_copy(command->length);
	}
	command->done(domain, command, status);
	release(domain, command);
}

/* Give a command its buffer of staging, if it needs one. */
static bool get_buffer(struct domain *domain, struct command *command)
{
	bool wanted = command->copy || command->land ||
		      (command->strided && !command->strided->here.walk.key);

	if (!wanted || command->buffer >= 0)
		return true;
	if (domain->staging_used == UINT32_MAX)
		return false;
	command->buffer = __builtin_ctz(~domain->staging_used);
	domain->staging_used |= 1u << command->buffer;
	command->local_key = dib_key(domain->staging_region);
	command->local_offset = (uint64_t)command->buffer * BUFFER_BYTES;
	if (command->strided) {
		command->strided->here.walk.key = command->local_key;
		command->strided->here.walk.offset = command->local_offset;
	}
	if (command->copy) {
		memcpy(domain->staging + command->local_offset, command->copy, command->length);
		dfi_charge_copy(command->length);
	}
	free(command->copy);
	command->copy = NULL;
	/* From here on get_buffer() sees `buffer`. */
	return true;
}

static int send_strided(struct domain *domain, const struct command *command,
			const struct dib_delivery *delivery)
{
	const struct dib_side *here = &command->strided->here, *there = &command->strided->there;
	bool puts = command->kind == COMMAND_PUT;
	const struct dib_side *source = puts ? here : there, *target = puts ? there : here;

	if (here->list_key || there->list_key)
		return puts ? dib_put_indexed(domain->endpoint, delivery, source, target,
					      command->length)
			    : dib_get_indexed(domain->endpoint, delivery, source, target,
					      command->length);
	return puts ? dib_put_strided(domain->endpoint, delivery, &source->walk, &target->walk)
		    : dib_get_strided(domain->endpoint, delivery, &source->walk, &target->walk);
}

static int send(struct domain *domain, struct command *command)
{
	const struct dib_delivery delivery = {
		.tag = (uintptr_t)command,
		.node = command->peer->node,
		.endpoint = command->peer->endpoint,
		.flags = command->flags,
		.notice = command->notice,
	};

	if (command->strided)
		return send_strided(domain, command, &delivery);
	switch (command->kind) {
	case COMMAND_INLINE:
		return dib_put_inline(domain->endpoint, &delivery, command->data,
				      command->remote_key, command->remote_offset, command->length);
	case COMMAND_PUT:
		return dib_put(domain->endpoint, &delivery, command->local_key,
			       command->local_offset, command->remote_key, command->remote_offset,
			       command->length);
	default:
		return dib_get(domain->endpoint, &delivery, command->remote_key,
			       command->remote_offset, command->local_key, command->local_offset,
			       command->length);
	}
}

/* Returns false if the command has to wait. */
static bool try(struct domain *domain, struct command *command)
{
	int rc;

	if (!get_buffer(domain, command))
		return false;
	dfi_charge_pay(domain->endpoint);
	rc = send(domain, command);
	if (rc == DIB_ERR_AGAIN)
		return false;
	/* Any other failure is that of the endpoint: dfi_commands_drop() ends the command. */
	if (rc && !domain->broken)
		domain->broken = -dfi_error(rc);
	if (rc)
		return false;
	domain->under_way++;
	list_append(&domain->on_card, &command->place);
	return true;
}

void dfi_command_issue(struct domain *domain, struct command *command)
{
	if (!list_empty(&domain->waiting) || !try(domain, command))
		list_append(&domain->waiting, &command->place);
}

void dfi_commands_push(struct domain *domain)
{
	while (!list_empty(&domain->waiting)) {
		struct command *command = member_of(domain->waiting.next, struct command, place);

		list_remove(&command->place);
		if (try(domain, command))
			continue;
		/* Back to the head of the line. */
		list_append(domain->waiting.next, &command->place);
		return;
	}
}

int dfi_commands_poll(struct domain *domain)
{
	struct dib_completion done[BATCH];
	int total = 0, count;

	while (domain->under_way) {
		count = dib_poll(domain->endpoint, done, BATCH);
		if (count < 0)
			return count;
		dfi_charge(CHARGE_COMMAND, (unsigned int)count);
		for (int i = 0; i < count; i++) {
			domain->under_way--;
			end(domain, (struct command *)(uintptr_t)done[i].tag, done[i].status);
		}
		total += count;
		if (count < BATCH)
			break;
	}
	if (total)
		dfi_commands_push(domain);
	return total;
}

static void drop(struct domain *domain, struct list *commands)
{
	while (!list_empty(commands))
		end(domain, member_of(commands->next, struct command, place), -domain->broken);
}

void dfi_commands_drop(struct domain *domain)
{
	drop(domain, &domain->on_card);
	domain->under_way = 0;
	drop(domain, &domain->waiting);
}
