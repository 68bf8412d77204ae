/* Greetings of an exchange. */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "descriptors.h"
#include "error.h"
#include "exchange_meet.h"

#define SECOND	       1000000000ull
#define GREETING_NS    (5 * SECOND) /* until a connection has sent its greeting */
#define RETRY_NS       (SECOND / 10)
#define MOST_GREETINGS 80u /* all parties at once, and some strangers */

int dib_meet_token(const char *text, char token[64])
{
	size_t length = text ? strlen(text) : 0;

	if (length > DIB_EXCHANGE_TOKEN)
		return dib_fail(DIB_ERR_ARGUMENT, "a token has at most %u bytes",
				DIB_EXCHANGE_TOKEN);
	memset(token, 0, DIB_EXCHANGE_TOKEN);
	if (length)
		memcpy(token, text, length);
	return 0;
}

/* Party 0 -------------------------------------------------------------------------------------- */

struct greetings {
	uint32_t count;
	struct greeting {
		struct dib_link link;
		uint64_t until;
	} of[MOST_GREETINGS];
	uint32_t refused;
	char last[160]; /* why the last connection was refused */
};

/* The time does not depend on the place of the first difference. */
static bool same_token(const char *one, const char *other)
{
	unsigned char difference = 0;

	for (unsigned int i = 0; i < DIB_EXCHANGE_TOKEN; i++)
		difference |= (unsigned char)(one[i] ^ other[i]);
	return difference == 0;
}

/* Why a connection that has said `hello` is refused. */
static enum dib_refusal judge(const struct dib_parties *all, const struct dib_hello *hello,
			      const char *token, char *why, size_t room)
{
	why[0] = 0;
	if (hello->version != DIB_HELLO_VERSION) {
		snprintf(why, room, "it speaks version %u, this side %u", hello->version,
			 DIB_HELLO_VERSION);
		return DIB_REFUSAL_VERSION;
	}
	if (!same_token(hello->token, token)) {
		snprintf(why, room, "wrong token");
		return DIB_REFUSAL_DENIED;
	}
	if (hello->parties != all->count || hello->party == 0 || hello->party >= all->count) {
		snprintf(why, room, "party %u of %u: there are %u parties", hello->party,
			 hello->parties, all->count);
		return DIB_REFUSAL_ARGUMENT;
	}
	if (all->party[hello->party].link.fd >= 0) {
		snprintf(why, room, "party %u is there already", hello->party);
		return DIB_REFUSAL_IN_USE;
	}
	return DIB_REFUSAL_NONE;
}

/* Take a connection as a party, or turn it away. Its greeting is over in both cases. */
static void settle(struct dib_parties *all, struct greetings *greetings, struct greeting *one,
		   const struct dib_hello *hello, const char *token)
{
	struct dib_hello_reply reply = { .magic = DIB_HELLO_MAGIC, .version = DIB_HELLO_VERSION };
	char why[sizeof(reply.reason)] = "it is no party of an exchange";

	if (hello && hello->magic == DIB_HELLO_MAGIC) {
		reply.error = judge(all, hello, token, why, sizeof(why));
		memcpy(reply.reason, why, strlen(why));
		dib_link_push(&one->link, &reply, sizeof(reply));
		dib_link_move(&one->link);
		if (reply.error == DIB_REFUSAL_NONE) {
			all->party[hello->party].link = one->link;
			one->link.fd = -1;
			return;
		}
	}
	greetings->refused++;
	snprintf(greetings->last, sizeof(greetings->last), "%s", why);
	dib_link_end(&one->link);
}

static void accept_from(int listener, struct greetings *greetings)
{
	int fd = dib_fd(accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));

	if (fd < 0)
		return;
	dib_link_begin(&greetings->of[greetings->count].link, fd);
	greetings->of[greetings->count++].until = dib_link_after(GREETING_NS);
}

static void greet_all(struct dib_parties *all, struct greetings *greetings, const char *token)
{
	for (uint32_t i = 0; i < greetings->count;) {
		struct greeting *one = &greetings->of[i];
		struct dib_hello hello;
		bool came;

		dib_link_move(&one->link);
		came = dib_link_take(&one->link, &hello, sizeof(hello));
		if (!came && !one->link.lost[0] && dib_link_now() < one->until) {
			i++;
			continue;
		}
		settle(all, greetings, one, came ? &hello : NULL, token);
		*one = greetings->of[--greetings->count];
	}
}

/* The first party without a link; the count of parties if all are there. */
static uint32_t first_missing(const struct dib_parties *all)
{
	uint32_t party = 1;

	while (party < all->count && all->party[party].link.fd >= 0)
		party++;
	return party;
}

static void sleep_on_all(const struct dib_listeners *listeners, const struct greetings *greetings,
			 uint64_t until)
{
	struct pollfd list[DIB_WHERE_LISTENERS + MOST_GREETINGS];
	size_t count = 0;

	for (size_t i = 0; i < listeners->count && greetings->count < MOST_GREETINGS; i++)
		list[count++] = (struct pollfd){ .fd = listeners->fds[i], .events = POLLIN };
	for (uint32_t i = 0; i < greetings->count; i++) {
		list[count++] = dib_link_poll(&greetings->of[i].link);
		if (greetings->of[i].until < until)
			until = greetings->of[i].until;
	}
	dib_link_sleep(list, count, until);
}

int dib_meet_gather(struct dib_parties *all, const struct dib_listeners *listeners,
		    const char token[64], uint64_t timeout_ns)
{
	uint64_t end = dib_link_after(timeout_ns);
	struct greetings greetings = { .count = 0 };
	int rc = 0;

	while (first_missing(all) < all->count && !rc) {
		if (dib_link_now() >= end) {
			char others[240] = "";

			if (greetings.refused)
				snprintf(others, sizeof(others),
					 "; %u connections were refused, the last: %s",
					 greetings.refused, greetings.last);
			rc = dib_fail(DIB_ERR_TIMEOUT,
				      "party %u did not connect to port %u in %llu ms%s",
				      first_missing(all), listeners->port,
				      (unsigned long long)(timeout_ns / 1000000), others);
			break;
		}
		sleep_on_all(listeners, &greetings, end);
		/* Connections for which there is no room wait in the listener's queue. */
		for (size_t i = 0; i < listeners->count && greetings.count < MOST_GREETINGS; i++)
			accept_from(listeners->fds[i], &greetings);
		greet_all(all, &greetings, token);
	}
	while (greetings.count)
		dib_link_end(&greetings.of[--greetings.count].link);
	return rc;
}

/* Other parties -------------------------------------------------------------------------------- */

static const int errors[DIB_REFUSALS] = {
	[DIB_REFUSAL_VERSION] = DIB_ERR_VERSION,
	[DIB_REFUSAL_DENIED] = DIB_ERR_DENIED,
	[DIB_REFUSAL_ARGUMENT] = DIB_ERR_ARGUMENT,
	[DIB_REFUSAL_IN_USE] = DIB_ERR_IN_USE,
};

/* Have party 0 take this party. */
static int greet(struct dib_parties *all, const struct dib_place *place, const char *token,
		 uint64_t end)
{
	struct dib_hello hello = { DIB_HELLO_MAGIC, DIB_HELLO_VERSION, all->own, all->count, "" };
	struct dib_link *link = &all->party[0].link;
	uint64_t until = dib_link_after(GREETING_NS);
	struct dib_hello_reply reply;

	if (until > end)
		until = end;
	memcpy(hello.token, token, sizeof(hello.token));
	dib_link_push(link, &hello, sizeof(hello));
	for (;;) {
		struct pollfd wait;

		dib_link_move(link);
		if (dib_link_take(link, &reply, sizeof(reply)))
			break;
		if (link->lost[0] || dib_link_now() >= until)
			return dib_fail(DIB_ERR_PROTOCOL,
					"%s:%s does not answer as an exchange: %s", place->host,
					place->port, link->lost[0] ? link->lost : "no reply");
		wait = dib_link_poll(link);
		dib_link_sleep(&wait, 1, until);
	}
	reply.reason[sizeof(reply.reason) - 1] = 0;
	if (reply.magic != DIB_HELLO_MAGIC || reply.error >= DIB_REFUSALS)
		return dib_fail(DIB_ERR_PROTOCOL, "%s:%s is no exchange", place->host, place->port);
	if (reply.error == DIB_REFUSAL_VERSION)
		return dib_fail(DIB_ERR_VERSION,
				"%s:%s refused: it speaks version %u, this side %u", place->host,
				place->port, reply.version, DIB_HELLO_VERSION);
	if (reply.error)
		return dib_fail(errors[reply.error], "%s:%s refused: %s", place->host, place->port,
				reply.reason);
	return 0;
}

/* Try all places once. 0: connected; 1: nobody listens yet, with the reason in `why`. */
static int try_places(struct dib_parties *all, const struct dib_rendezvous *found,
		      const char *token, uint64_t end, char *why, size_t room)
{
	for (size_t i = 0; i < found->count; i++) {
		uint64_t until = dib_link_after(GREETING_NS);
		int fd = dib_where_connect(&found->places[i], until < end ? until : end, why, room);
		int rc;

		if (fd == -2)
			return dib_fail(DIB_ERR_NO_MEMORY, "socket: %s", strerror(errno));
		if (fd < 0)
			continue;
		dib_link_begin(&all->party[0].link, fd);
		rc = greet(all, &found->places[i], token, end);
		if (rc)
			dib_link_end(&all->party[0].link);
		return rc;
	}
	return 1;
}

int dib_meet_reach(struct dib_parties *all, const char *where, const char *path, const char *token,
		   uint64_t timeout_ns)
{
	uint64_t end = dib_link_after(timeout_ns);
	struct dib_rendezvous found = { .count = 0 };
	char why[512] = "there is no such file";
	char padded[64];
	int rc;

	if (!path) {
		rc = dib_where_place(where, false, &found.places[0]);
		if (rc)
			return rc;
		found.count = 1;
	}
	for (;;) {
		rc = path ? dib_where_read(path, &found) : 1;
		if (rc < 0)
			return rc;
		if (rc > 0) {
			rc = dib_meet_token(token && *token ? token : found.token, padded);
			if (!rc)
				rc = try_places(all, &found, padded, end, why, sizeof(why));
			if (rc <= 0)
				return rc;
		}
		if (dib_link_now() >= end)
			return dib_fail(DIB_ERR_TIMEOUT, "nobody listens at %s after %llu ms (%s)",
					where, (unsigned long long)(timeout_ns / 1000000), why);
		uint64_t again = dib_link_after(RETRY_NS);

		dib_link_sleep(NULL, 0, again < end ? again : end);
	}
}
