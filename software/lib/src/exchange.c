/* Exchanges: the calls of <dibber/exchange.h>. */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <dibber/exchange.h>

#include "endpoint.h"
#include "error.h"
#include "exchange_meet.h"
#include "exchange_parties.h"
#include "exchange_state.h"
#include "exchange_where.h"
#include "handle.h"

#define DEFAULT_NS 60000000000ull

/* The clock ------------------------------------------------------------------------------------ */

/* A wait that several parties begin and end together leaves the clock; another one is a pause. */
static int leave_clock(struct dib_endpoint *endpoint, bool together)
{
	if (!endpoint)
		return 0;
	return together ? dib_clock_leave(endpoint) : dib_clock_pause(endpoint);
}

/* Come back; `rc` of the wait goes before an error of the clock. */
static int enter_clock(struct dib_endpoint *endpoint, int rc)
{
	char reason[256];
	int back;

	if (!endpoint)
		return rc;
	snprintf(reason, sizeof(reason), "%s", dib_last_reason());
	back = dib_clock_enter(endpoint);
	if (rc)
		dib_keep_reason("%s", reason);
	return rc ? rc : back;
}

/* Opening -------------------------------------------------------------------------------------- */

static int begin(const char *where, const struct dib_exchange_options *options, bool listens,
		 struct dib_exchange **out, struct dib_exchange **made)
{
	struct dib_exchange_options chosen =
		options ? *options : (struct dib_exchange_options){ 0 };
	uint32_t party = listens ? 0 : chosen.party ? chosen.party : 1;
	uint32_t parties = chosen.parties ? chosen.parties : 2;
	struct dib_exchange *exchange;
	char token[64];
	int rc;

	if (!where || !out)
		return dib_fail(DIB_ERR_ARGUMENT, "no %s given",
				where ? "place for the exchange" : "host and port");
	if (parties < 2 || parties > DIB_EXCHANGE_PARTIES || party >= parties ||
	    (listens && chosen.party))
		return dib_fail(DIB_ERR_ARGUMENT,
				"party %u of %u: there are 2 to %u parties, and party 0 listens",
				listens ? chosen.party : party, parties, DIB_EXCHANGE_PARTIES);
	if ((rc = dib_meet_token(chosen.token, token)) ||
	    (chosen.endpoint && (rc = dib_endpoint_check(chosen.endpoint))))
		return rc;
	exchange = dib_handle_new(DIB_KIND_EXCHANGE, sizeof(*exchange));
	if (!exchange)
		return DIB_ERR_NO_MEMORY;
	exchange->timeout_ns = chosen.timeout_ns ? chosen.timeout_ns : DEFAULT_NS;
	exchange->endpoint = chosen.endpoint;
	exchange->parties = dib_parties_new(party, parties);
	if (!exchange->parties) {
		dib_handle_end(exchange);
		return dib_fail(DIB_ERR_NO_MEMORY, "no memory for an exchange");
	}
	*made = exchange;
	return 0;
}

/* Give a new exchange to the program, or end it. */
static int finish(struct dib_exchange *exchange, int rc, struct dib_exchange **out)
{
	if (rc) {
		dib_parties_end(exchange->parties);
		dib_handle_end(exchange);
		return rc;
	}
	exchange->handle.life = DIB_LIFE_OPEN;
	*out = exchange;
	return 0;
}

/* A token for a rendezvous file: 32 hexadecimal digits. */
static int make_token(char *text)
{
	uint8_t bytes[16];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return dib_fail(DIB_ERR_NO_MEMORY, "getrandom: %s", strerror(errno));
	for (unsigned int i = 0; i < sizeof(bytes); i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

static int gather(struct dib_exchange *exchange, const char *where, const char *token)
{
	const char *path = dib_where_path(where);
	struct dib_place place = { .host = "", .port = "0" };
	struct dib_listeners listeners;
	char made[DIB_EXCHANGE_TOKEN + 1], padded[DIB_EXCHANGE_TOKEN];
	bool written = false;
	int rc = 0;

	snprintf(made, sizeof(made), "%s", token ? token : "");
	if (path && !made[0])
		rc = make_token(made);
	if (!path)
		rc = dib_where_place(where, true, &place);
	if (rc || (rc = dib_meet_token(made, padded)) ||
	    (rc = dib_where_listen(&place, &listeners)))
		return rc;
	if (path) {
		rc = dib_where_write(path, listeners.port, made);
		written = !rc;
	}
	if (!rc && !(rc = leave_clock(exchange->endpoint, true))) {
		rc = dib_meet_gather(exchange->parties, &listeners, padded, exchange->timeout_ns);
		rc = enter_clock(exchange->endpoint, rc);
	}
	if (written)
		unlink(path);
	dib_where_close(&listeners);
	return rc;
}

int dib_exchange_listen(const char *where, const struct dib_exchange_options *options,
			struct dib_exchange **out)
{
	struct dib_exchange *exchange;
	int rc = begin(where, options, true, out, &exchange);

	if (rc)
		return rc;
	return finish(exchange, gather(exchange, where, options ? options->token : NULL), out);
}

int dib_exchange_connect(const char *where, const struct dib_exchange_options *options,
			 struct dib_exchange **out)
{
	struct dib_exchange *exchange;
	int rc = begin(where, options, false, out, &exchange);

	if (rc)
		return rc;
	rc = leave_clock(exchange->endpoint, true);
	if (!rc) {
		rc = dib_meet_reach(exchange->parties, where, dib_where_path(where),
				    options ? options->token : NULL, exchange->timeout_ns);
		rc = enter_clock(exchange->endpoint, rc);
	}
	return finish(exchange, rc, out);
}

/* Waiting -------------------------------------------------------------------------------------- */

int dib_exchange_close(struct dib_exchange *exchange)
{
	uint64_t end;
	bool open;
	int rc = dib_handle_check_close(exchange, DIB_KIND_EXCHANGE, &open);

	if (rc || !open)
		return rc;
	end = dib_link_after(exchange->timeout_ns);
	dib_parties_handle(exchange->parties);
	if (dib_parties_unsent(exchange->parties) && !leave_clock(exchange->endpoint, false)) {
		while (dib_parties_unsent(exchange->parties) && dib_link_now() < end) {
			dib_parties_sleep(exchange->parties, end);
			dib_parties_handle(exchange->parties);
		}
		enter_clock(exchange->endpoint, 0);
	}
	dib_parties_end(exchange->parties);
	dib_handle_end(exchange);
	return 0;
}

int dib_exchange_publish(struct dib_exchange *exchange, const char *name, const void *data,
			 size_t length)
{
	int rc = dib_handle_check(exchange, DIB_KIND_EXCHANGE);
	size_t name_bytes = name ? strnlen(name, DIB_EXCHANGE_NAME + 1) : 0;
	struct dib_parties *all;

	if (rc)
		return rc;
	all = exchange->parties;
	if (name_bytes == 0 || name_bytes > DIB_EXCHANGE_NAME || length > DIB_EXCHANGE_DATA ||
	    (length && !data))
		return dib_fail(DIB_ERR_ARGUMENT,
				"a name has 1 to %u bytes, a value at most %u, not %zu",
				DIB_EXCHANGE_NAME, DIB_EXCHANGE_DATA, length);
	if (dib_parties_find(all, all->own, name, name_bytes))
		return dib_fail(DIB_ERR_IN_USE, "this party has published '%s' already", name);
	if (all->party[all->own].values == DIB_EXCHANGE_VALUES)
		return dib_fail(DIB_ERR_ARGUMENT, "a party publishes at most %u values",
				DIB_EXCHANGE_VALUES);
	return dib_parties_publish(all, name, name_bytes, data, length);
}

/* A party that is gone, so that the wait for `what` is over. */
static int report_lost(const struct dib_parties *all, uint32_t lost, const char *what)
{
	return dib_fail(DIB_ERR_LOST, "party %u has left (%s): %s", lost, all->party[lost].why,
			what);
}

/* Wait for a value outside the clock, if it is not here. */
static int await_value(struct dib_exchange *exchange, uint32_t party, const char *name,
		       size_t name_bytes, const struct dib_value **value)
{
	struct dib_parties *all = exchange->parties;
	uint64_t end = dib_link_after(exchange->timeout_ns);
	char what[120];

	snprintf(what, sizeof(what), "party %u has not published '%s'", party, name);
	for (;;) {
		uint32_t lost;

		dib_parties_handle(all);
		*value = dib_parties_find(all, party, name, name_bytes);
		if (*value)
			return 0;
		lost = dib_parties_lost(all, party);
		if (lost < all->count)
			return report_lost(all, lost, what);
		if (dib_link_now() >= end)
			return dib_fail(DIB_ERR_TIMEOUT, "%s after %llu ms", what,
					(unsigned long long)(exchange->timeout_ns / 1000000));
		dib_parties_sleep(all, end);
	}
}

int dib_exchange_look_up(struct dib_exchange *exchange, uint32_t party, const char *name,
			 void *data, size_t room, size_t *length)
{
	int rc = dib_handle_check(exchange, DIB_KIND_EXCHANGE);
	size_t name_bytes = name ? strnlen(name, DIB_EXCHANGE_NAME + 1) : 0;
	const struct dib_value *value;
	struct dib_parties *all;

	if (rc)
		return rc;
	all = exchange->parties;
	if (party >= all->count || !name_bytes || name_bytes > DIB_EXCHANGE_NAME || (room && !data))
		return dib_fail(DIB_ERR_ARGUMENT, "party %u of %u, a name of %zu bytes", party,
				all->count, name_bytes);
	dib_parties_handle(all);
	value = dib_parties_find(all, party, name, name_bytes);
	if (!value) {
		rc = leave_clock(exchange->endpoint, false);
		if (rc)
			return rc;
		rc = await_value(exchange, party, name, name_bytes, &value);
		rc = enter_clock(exchange->endpoint, rc);
		if (rc)
			return rc;
	}
	if (length)
		*length = value->data_bytes;
	if (value->data_bytes > room || (!length && value->data_bytes != room))
		return dib_fail(DIB_ERR_ARGUMENT, "'%s' of party %u has %u bytes, not %zu", name,
				party, value->data_bytes, room);
	if (value->data_bytes)
		memcpy(data, value->bytes + value->name_bytes, value->data_bytes);
	return 0;
}

static int await_barrier(struct dib_exchange *exchange)
{
	struct dib_parties *all = exchange->parties;
	uint64_t end = dib_link_after(exchange->timeout_ns), number = dib_parties_arrive(all);

	for (;;) {
		uint32_t lost;

		dib_parties_handle(all);
		if (all->released >= number)
			return 0;
		lost = dib_parties_lost(all, all->count);
		if (lost < all->count)
			return report_lost(all, lost, "it did not come to a barrier");
		if (dib_link_now() >= end)
			return dib_fail(DIB_ERR_TIMEOUT,
					"not all parties came to barrier %llu in %llu ms",
					(unsigned long long)number,
					(unsigned long long)(exchange->timeout_ns / 1000000));
		dib_parties_sleep(all, end);
	}
}

int dib_exchange_barrier(struct dib_exchange *exchange)
{
	int rc = dib_handle_check(exchange, DIB_KIND_EXCHANGE);

	if (!rc)
		rc = leave_clock(exchange->endpoint, true);
	if (rc)
		return rc;
	rc = await_barrier(exchange);
	return enter_clock(exchange->endpoint, rc);
}
