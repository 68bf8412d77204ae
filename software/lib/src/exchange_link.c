/* Bytes and messages of a connection of an exchange. */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <dibber/exchange.h>

#include "descriptors.h"
#include "exchange_link.h"

#define STEP_BYTES  (64u << 10)
#define MOST_WAITS  (4 * (size_t)DIB_EXCHANGE_DATA) /* bytes that are received ahead */
#define MOST_SLEEP  500000000ull /* nanoseconds: another descriptor may have become ready */
#define SECOND	    1000000000ull
#define MILLISECOND 1000000ull

_Static_assert(sizeof(struct dib_hello) == 80 && sizeof(struct dib_hello_reply) == 128 &&
		       sizeof(struct dib_frame) == 16,
	       "layouts on the wire");

void dib_link_begin(struct dib_link *link, int fd)
{
	int on = 1;

	*link = (struct dib_link){ .fd = fd };
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

void dib_link_end(struct dib_link *link)
{
	if (link->fd >= 0)
		dib_fd_close(link->fd);
	free(link->in.at);
	free(link->out.at);
	*link = (struct dib_link){ .fd = -1 };
}

/* The first reason counts. */
void dib_link_lose(struct dib_link *link, const char *why)
{
	if (!link->lost[0])
		snprintf(link->lost, sizeof(link->lost), "%s", why);
}

/* Bytes ---------------------------------------------------------------------------------------- */

/* Room for more bytes behind `end`. */
static bool make_room(struct dib_bytes *bytes, size_t more)
{
	size_t held = bytes->end - bytes->begin;
	uint8_t *moved;

	if (bytes->room - bytes->end >= more)
		return true;
	if (bytes->begin) {
		memmove(bytes->at, bytes->at + bytes->begin, held);
		bytes->begin = 0;
		bytes->end = held;
	}
	if (bytes->room - bytes->end >= more)
		return true;
	moved = realloc(bytes->at, 2 * held + more);
	if (!moved)
		return false;
	bytes->at = moved;
	bytes->room = 2 * held + more;
	return true;
}

static bool would_wait(int error)
{
	return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

static void send_some(struct dib_link *link)
{
	struct dib_bytes *out = &link->out;

	while (out->begin < out->end) {
		ssize_t sent = send(link->fd, out->at + out->begin, out->end - out->begin,
				    MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0) {
			if (!would_wait(errno))
				dib_link_lose(link, strerror(errno));
			return;
		}
		out->begin += (size_t)sent;
	}
}

static void receive_some(struct dib_link *link)
{
	struct dib_bytes *in = &link->in;

	while (in->end - in->begin <= MOST_WAITS) {
		ssize_t came;

		if (!make_room(in, STEP_BYTES)) {
			dib_link_lose(link, "no memory");
			return;
		}
		came = recv(link->fd, in->at + in->end, in->room - in->end, MSG_DONTWAIT);
		if (came < 0) {
			if (!would_wait(errno))
				dib_link_lose(link, strerror(errno));
			return;
		}
		if (came == 0) {
			dib_link_lose(link, "it closed the connection");
			return;
		}
		in->end += (size_t)came;
	}
}

void dib_link_move(struct dib_link *link)
{
	if (link->fd < 0)
		return;
	send_some(link);
	receive_some(link);
}

void dib_link_push(struct dib_link *link, const void *data, size_t bytes)
{
	if (!bytes)
		return;
	if (!make_room(&link->out, bytes)) {
		dib_link_lose(link, "no memory");
		return;
	}
	memcpy(link->out.at + link->out.end, data, bytes);
	link->out.end += bytes;
}

bool dib_link_unsent(const struct dib_link *link)
{
	return link->fd >= 0 && !link->lost[0] && link->out.begin < link->out.end;
}

bool dib_link_take(struct dib_link *link, void *data, size_t bytes)
{
	if (link->in.end - link->in.begin < bytes)
		return false;
	memcpy(data, link->in.at + link->in.begin, bytes);
	link->in.begin += bytes;
	return true;
}

/* Messages ------------------------------------------------------------------------------------- */

const struct dib_frame *dib_link_frame(struct dib_link *link)
{
	struct dib_bytes *in = &link->in;
	struct dib_frame head;
	size_t bytes, shift;
	uint8_t *at;

	if (in->end - in->begin < sizeof(head))
		return NULL;
	memcpy(&head, in->at + in->begin, sizeof(head));
	if (head.kind < DIB_FRAME_PUBLISH || head.kind > DIB_FRAME_GONE ||
	    head.name_bytes > DIB_EXCHANGE_NAME || head.data_bytes > DIB_EXCHANGE_DATA) {
		dib_link_lose(link, "it sent no message of an exchange");
		return NULL;
	}
	bytes = sizeof(head) + head.name_bytes + head.data_bytes;
	if (in->end - in->begin < bytes)
		return NULL;
	/* Messages have any length, so one behind another need not be aligned. Such a message moves
	 * over the last bytes of the message before it. */
	at = in->at + in->begin;
	shift = (uintptr_t)at % _Alignof(struct dib_frame);
	if (shift)
		memmove(at - shift, at, bytes);
	in->begin += bytes;
	return (const void *)(at - shift);
}

void dib_link_send(struct dib_link *link, const struct dib_frame *head, const void *name,
		   const void *data)
{
	if (link->fd < 0 || link->lost[0])
		return;
	dib_link_push(link, head, sizeof(*head));
	dib_link_push(link, name, head->name_bytes);
	dib_link_push(link, data, head->data_bytes);
	send_some(link);
}

/* Waiting -------------------------------------------------------------------------------------- */

struct pollfd dib_link_poll(const struct dib_link *link)
{
	return (struct pollfd){
		.fd = link->lost[0] ? -1 : link->fd,
		.events = (short)(POLLIN | (dib_link_unsent(link) ? POLLOUT : 0)),
	};
}

uint64_t dib_link_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

uint64_t dib_link_after(uint64_t nanoseconds)
{
	uint64_t now = dib_link_now();

	return nanoseconds > UINT64_MAX - now ? UINT64_MAX : now + nanoseconds;
}

void dib_link_sleep(struct pollfd *list, size_t count, uint64_t until)
{
	uint64_t now = dib_link_now(), left = until > now ? until - now : 0;

	if (left > MOST_SLEEP)
		left = MOST_SLEEP;
	/* EINTR and errors of a descriptor show when the caller moves its bytes. */
	poll(list, count, (int)((left + MILLISECOND - 1) / MILLISECOND));
}
