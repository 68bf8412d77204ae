/* A connection of an exchange, with its bytes on both ways, none of which ever blocks. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_EXCHANGE_LINK_H
#define DIBBER_EXCHANGE_LINK_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* On the wire all numbers are little-endian, as on the hosts (docs/two-hosts.md). */
#define DIB_HELLO_MAGIC	  0x58424944u /* "DIBX" */
#define DIB_HELLO_VERSION 1u

struct dib_hello {
	uint32_t magic, version, party, parties;
	char token[64];
};

struct dib_hello_reply {
	uint32_t magic, version, error; /* enum dib_refusal */
	char reason[116];
};

enum dib_refusal {
	DIB_REFUSAL_NONE,
	DIB_REFUSAL_VERSION,
	DIB_REFUSAL_DENIED,
	DIB_REFUSAL_ARGUMENT,
	DIB_REFUSAL_IN_USE,
	DIB_REFUSALS,
};

enum dib_frame_kind {
	DIB_FRAME_PUBLISH = 1,
	DIB_FRAME_ARRIVED,
	DIB_FRAME_RELEASED,
	DIB_FRAME_GONE,
};

struct dib_frame {
	uint32_t kind, party, name_bytes, data_bytes; /* then the name and the data */
};

struct dib_bytes {
	uint8_t *at;
	size_t begin, end, room;
};

struct dib_link {
	int fd;		/* -1: no connection */
	char lost[160]; /* why it is gone, or "" */
	struct dib_bytes in, out;
};

/* Take over a connected descriptor of the library. */
void dib_link_begin(struct dib_link *link, int fd);
void dib_link_end(struct dib_link *link);
void dib_link_lose(struct dib_link *link, const char *why);

/* Send and receive what goes without waiting. */
void dib_link_move(struct dib_link *link);
/* Append bytes to those that are to be sent. Without memory the link is lost. */
void dib_link_push(struct dib_link *link, const void *data, size_t bytes);
bool dib_link_unsent(const struct dib_link *link);
/* Take the first bytes that came; false when there are fewer. */
bool dib_link_take(struct dib_link *link, void *data, size_t bytes);
/* The next whole message, or NULL. It stays valid until the link's next call. Bytes that are
 * no message of an exchange lose the link. */
const struct dib_frame *dib_link_frame(struct dib_link *link);
void dib_link_send(struct dib_link *link, const struct dib_frame *head, const void *name,
		   const void *data);

/* What poll(2) waits for on this link. */
struct pollfd dib_link_poll(const struct dib_link *link);

/* Nanoseconds of the monotonic clock; and that time in so many nanoseconds, at most UINT64_MAX. */
uint64_t dib_link_now(void);
uint64_t dib_link_after(uint64_t nanoseconds);
/* Sleep until poll(2) finds something, or until a time, for half a second at most. */
void dib_link_sleep(struct pollfd *list, size_t count, uint64_t until);

#endif
