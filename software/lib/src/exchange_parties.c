/* What the messages of an exchange do. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "exchange_parties.h"

struct dib_parties *dib_parties_new(uint32_t own, uint32_t count)
{
	struct dib_parties *all = calloc(1, sizeof(*all));

	if (!all)
		return NULL;
	all->own = own;
	all->count = count;
	for (uint32_t party = 0; party < DIB_EXCHANGE_PARTIES; party++)
		all->party[party].link.fd = -1;
	return all;
}

void dib_parties_end(struct dib_parties *all)
{
	for (uint32_t party = 0; party < DIB_EXCHANGE_PARTIES; party++)
		dib_link_end(&all->party[party].link);
	for (size_t i = 0; i < all->value_count; i++)
		free(all->values[i]);
	free(all->values);
	free(all);
}

/* Values --------------------------------------------------------------------------------------- */

const struct dib_value *dib_parties_find(const struct dib_parties *all, uint32_t party,
					 const char *name, size_t name_bytes)
{
	for (size_t i = 0; i < all->value_count; i++) {
		const struct dib_value *value = all->values[i];

		if (value->party == party && value->name_bytes == name_bytes &&
		    memcmp(value->bytes, name, name_bytes) == 0)
			return value;
	}
	return NULL;
}

/* Keep a copy. NO_MEMORY. */
static int keep(struct dib_parties *all, uint32_t party, const void *name, size_t name_bytes,
		const void *data, size_t data_bytes)
{
	struct dib_value *value = malloc(sizeof(*value) + name_bytes + data_bytes);

	if (value && all->value_count == all->value_room) {
		size_t room = 2 * all->value_room + 16;
		struct dib_value **moved = realloc(all->values, room * sizeof(*moved));

		if (moved) {
			all->values = moved;
			all->value_room = room;
		} else {
			free(value);
			value = NULL;
		}
	}
	if (!value)
		return dib_fail(DIB_ERR_NO_MEMORY, "no memory for a value of %zu bytes",
				data_bytes);
	*value = (struct dib_value){ .party = party,
				     .name_bytes = (uint32_t)name_bytes,
				     .data_bytes = (uint32_t)data_bytes };
	memcpy(value->bytes, name, name_bytes);
	if (data_bytes)
		memcpy(value->bytes + name_bytes, data, data_bytes);
	all->values[all->value_count++] = value;
	all->party[party].values++;
	return 0;
}

/* Messages ------------------------------------------------------------------------------------- */

/* Send a message about `party` to all but `except`, over all links. */
static void send_to_all(struct dib_parties *all, uint32_t except, enum dib_frame_kind kind,
			uint32_t party, const void *name, size_t name_bytes, const void *data,
			size_t data_bytes)
{
	struct dib_frame head = { kind, party, (uint32_t)name_bytes, (uint32_t)data_bytes };

	for (uint32_t other = 0; other < all->count; other++)
		if (other != except && !all->party[other].gone)
			dib_link_send(&all->party[other].link, &head, name, data);
}

static void mark_gone(struct dib_parties *all, uint32_t party, const char *why, size_t length)
{
	struct dib_party *one = &all->party[party];

	if (one->gone)
		return;
	one->gone = true;
	snprintf(one->why, sizeof(one->why), "%.*s", (int)length, why);
}

/* Party 0: end the barriers that all have come to. */
static void release(struct dib_parties *all)
{
	for (;;) {
		for (uint32_t party = 0; party < all->count; party++)
			if (all->party[party].arrived <= all->released)
				return;
		all->released++;
		send_to_all(all, all->own, DIB_FRAME_RELEASED, 0, NULL, 0, NULL, 0);
	}
}

static void take_value(struct dib_parties *all, struct dib_link *link, const struct dib_frame *head)
{
	const char *name = (const char *)(head + 1);

	if (all->party[head->party].values == DIB_EXCHANGE_VALUES || !head->name_bytes ||
	    dib_parties_find(all, head->party, name, head->name_bytes)) {
		dib_link_lose(link, "it published too much, or a name twice");
		return;
	}
	if (keep(all, head->party, name, head->name_bytes, name + head->name_bytes,
		 head->data_bytes)) {
		dib_link_lose(link, "no memory");
		return;
	}
	if (all->own == 0)
		send_to_all(all, head->party, DIB_FRAME_PUBLISH, head->party, name,
			    head->name_bytes, name + head->name_bytes, head->data_bytes);
}

/* A message that came over the link to `sender`. */
static void take(struct dib_parties *all, uint32_t sender, const struct dib_frame *head)
{
	struct dib_party *one = &all->party[sender];

	if (head->party >= all->count || (all->own == 0 && head->party != sender)) {
		dib_link_lose(&one->link, "it spoke for another party");
	} else if (head->kind == DIB_FRAME_PUBLISH && head->party != all->own) {
		take_value(all, &one->link, head);
	} else if (head->kind == DIB_FRAME_ARRIVED && all->own == 0) {
		if (++one->arrived > all->released + 1)
			dib_link_lose(&one->link, "it came to a barrier twice");
		else
			release(all);
	} else if (head->kind == DIB_FRAME_RELEASED && all->own != 0) {
		all->released++;
	} else if (head->kind == DIB_FRAME_GONE && all->own != 0) {
		mark_gone(all, head->party, (const char *)(head + 1) + head->name_bytes,
			  head->data_bytes);
	} else {
		dib_link_lose(&one->link, "it sent a message that makes no sense");
	}
}

static void lose(struct dib_parties *all, uint32_t party)
{
	struct dib_party *one = &all->party[party];
	char why[sizeof(one->link.lost)];

	snprintf(why, sizeof(why), "%s", one->link.lost);
	dib_link_end(&one->link);
	mark_gone(all, party, why, sizeof(why));
	if (all->own == 0)
		send_to_all(all, party, DIB_FRAME_GONE, party, NULL, 0, one->why, strlen(one->why));
}

void dib_parties_handle(struct dib_parties *all)
{
	for (uint32_t party = 0; party < all->count; party++) {
		struct dib_link *link = &all->party[party].link;
		const struct dib_frame *head;
		bool closed;

		if (link->fd < 0)
			continue;
		dib_link_move(link);
		/* What came before the end still counts. */
		closed = link->lost[0];
		while ((closed || !link->lost[0]) && (head = dib_link_frame(link)) != NULL)
			take(all, party, head);
		if (link->lost[0])
			lose(all, party);
	}
}

void dib_parties_sleep(struct dib_parties *all, uint64_t until)
{
	struct pollfd list[DIB_EXCHANGE_PARTIES];

	for (uint32_t party = 0; party < all->count; party++)
		list[party] = dib_link_poll(&all->party[party].link);
	dib_link_sleep(list, all->count, until);
}

bool dib_parties_unsent(const struct dib_parties *all)
{
	for (uint32_t party = 0; party < all->count; party++)
		if (dib_link_unsent(&all->party[party].link))
			return true;
	return false;
}

/* Calls ---------------------------------------------------------------------------------------- */

int dib_parties_publish(struct dib_parties *all, const char *name, size_t name_bytes,
			const void *data, size_t data_bytes)
{
	int rc = keep(all, all->own, name, name_bytes, data, data_bytes);

	if (!rc)
		send_to_all(all, all->own, DIB_FRAME_PUBLISH, all->own, name, name_bytes, data,
			    data_bytes);
	return rc;
}

uint64_t dib_parties_arrive(struct dib_parties *all)
{
	uint64_t number = ++all->party[all->own].arrived;

	if (all->own == 0)
		release(all);
	else
		send_to_all(all, all->own, DIB_FRAME_ARRIVED, all->own, NULL, 0, NULL, 0);
	return number;
}

uint32_t dib_parties_lost(const struct dib_parties *all, uint32_t party)
{
	if (all->own != 0 && all->party[0].gone)
		return 0;
	if (party < all->count)
		return all->party[party].gone ? party : all->count;
	for (party = 0; party < all->count; party++)
		if (all->party[party].gone)
			break;
	return party;
}
