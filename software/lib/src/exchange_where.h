/* Where the parties of an exchange meet: a host and port, or a rendezvous file. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_EXCHANGE_WHERE_H
#define DIBBER_EXCHANGE_WHERE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIB_WHERE_HOST	    256 /* characters of a host's name, with the end */
#define DIB_WHERE_LISTENERS 16
#define DIB_WHERE_PLACES    16

struct dib_place {
	char host[DIB_WHERE_HOST];
	char port[8];
};

/* What a rendezvous file says. */
struct dib_rendezvous {
	char token[65];
	size_t count;
	struct dib_place places[DIB_WHERE_PLACES];
};

struct dib_listeners {
	size_t count;
	int fds[DIB_WHERE_LISTENERS];
	unsigned int port;
};

/* The path of "file:PATH", or NULL. */
const char *dib_where_path(const char *where);
/* Read "HOST:PORT" or "[IPv6]:PORT"; if `listens`, also "PORT" and ":PORT". ARGUMENT. */
int dib_where_place(const char *where, bool listens, struct dib_place *place);

/* Listen at all addresses of a host, or of this machine. ARGUMENT, IN_USE, NO_MEMORY. */
int dib_where_listen(const struct dib_place *place, struct dib_listeners *listeners);
void dib_where_close(struct dib_listeners *listeners);
/* A connected descriptor, or -1 with the reason in `why`; -2 if there are no descriptors. */
int dib_where_connect(const struct dib_place *place, uint64_t until, char *why, size_t room);

/* Make the file, for this user alone, so that it appears whole. ARGUMENT. */
int dib_where_write(const char *path, unsigned int port, const char *token);
/* Read it. 1: it is there; 0: not yet; ARGUMENT. */
int dib_where_read(const char *path, struct dib_rendezvous *found);

#endif
