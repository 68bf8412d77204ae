/* Addresses, listeners and rendezvous files of exchanges. */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "descriptors.h"
#include "error.h"
#include "exchange_link.h"
#include "exchange_where.h"

#define MOST_PORT   65535ul
#define FILE_BYTES  4096
#define LISTEN_KIND (SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC)

const char *dib_where_path(const char *where)
{
	return strncmp(where, "file:", 5) == 0 ? where + 5 : NULL;
}

int dib_where_place(const char *where, bool listens, struct dib_place *place)
{
	const char *colon = strrchr(where, ':');
	const char *port = colon ? colon + 1 : where, *host = where;
	size_t length = colon ? (size_t)(colon - where) : 0, digits = strlen(port);
	bool bracketed = length >= 2 && host[0] == '[' && host[length - 1] == ']';

	if (bracketed) {
		host++;
		length -= 2;
	}
	if (!bracketed && memchr(host, ':', length))
		return dib_fail(DIB_ERR_ARGUMENT, "'%s': write an IPv6 address as [ADDRESS]:PORT",
				where);
	if (digits == 0 || digits > 5 || strspn(port, "0123456789") != digits ||
	    strtoul(port, NULL, 10) > MOST_PORT || length >= sizeof(place->host) ||
	    !(length || listens))
		return dib_fail(DIB_ERR_ARGUMENT, "'%s' is no %sHOST:PORT, and no file:PATH", where,
				listens ? "PORT or " : "");
	memcpy(place->host, host, length);
	place->host[length] = 0;
	strcpy(place->port, port);
	return 0;
}

/* Listeners ------------------------------------------------------------------------------------ */

static int refuse_listening(const struct dib_place *place, unsigned int port, const char *why)
{
	return dib_fail(errno == EADDRINUSE					? DIB_ERR_IN_USE
			: errno == EMFILE || errno == ENFILE || errno == ENOMEM ? DIB_ERR_NO_MEMORY
										: DIB_ERR_ARGUMENT,
			"cannot listen at %s, port %u: %s",
			place->host[0] ? place->host : "all addresses", port, why);
}

static unsigned int port_of(const struct sockaddr_storage *address)
{
	return ntohs(address->ss_family == AF_INET6
			     ? ((const struct sockaddr_in6 *)address)->sin6_port
			     : ((const struct sockaddr_in *)address)->sin_port);
}

/* A listener at one address; -1 with errno set. `port` 0 takes a free one, and is set to it. */
static int listen_at(const struct addrinfo *found, unsigned int *port)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	int on = 1, fd = dib_fd(socket(found->ai_family, LISTEN_KIND, found->ai_protocol));

	if (fd < 0)
		return -1;
	memcpy(&address, found->ai_addr, found->ai_addrlen);
	if (found->ai_family == AF_INET6) {
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
		((struct sockaddr_in6 *)&address)->sin6_port = htons((uint16_t)*port);
	} else {
		((struct sockaddr_in *)&address)->sin_port = htons((uint16_t)*port);
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&address, found->ai_addrlen) < 0 || listen(fd, 64) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &length) < 0) {
		int why = errno;

		dib_fd_close(fd);
		errno = why;
		return -1;
	}
	*port = port_of(&address);
	return fd;
}

/* The first address must be free. Others are used if they can be. */
int dib_where_listen(const struct dib_place *place, struct dib_listeners *listeners)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *all;
	unsigned int port = (unsigned int)strtoul(place->port, NULL, 10);
	int rc = getaddrinfo(place->host[0] ? place->host : NULL, place->port, &hints, &all);

	*listeners = (struct dib_listeners){ .count = 0 };
	if (rc) {
		errno = rc == EAI_MEMORY ? ENOMEM : 0;
		return refuse_listening(place, port, gai_strerror(rc));
	}
	rc = 0;
	for (struct addrinfo *one = all; one && listeners->count < DIB_WHERE_LISTENERS && !rc;
	     one = one->ai_next) {
		int fd = listen_at(one, &port);

		if (fd >= 0)
			listeners->fds[listeners->count++] = fd;
		else if (!listeners->count)
			rc = refuse_listening(place, port, strerror(errno));
	}
	freeaddrinfo(all);
	listeners->port = port;
	return rc;
}

void dib_where_close(struct dib_listeners *listeners)
{
	while (listeners->count)
		dib_fd_close(listeners->fds[--listeners->count]);
}

/* Connections ---------------------------------------------------------------------------------- */

/* Whether a connection that has begun is there by then; errno says why not. */
static bool is_connected(int fd, uint64_t until)
{
	struct pollfd wait = { .fd = fd, .events = POLLOUT };
	socklen_t length = sizeof(int);
	int error = 0;

	do {
		dib_link_sleep(&wait, 1, until);
	} while (!wait.revents && dib_link_now() < until);
	if (!wait.revents)
		error = ETIMEDOUT;
	else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
		error = errno;
	errno = error;
	return error == 0;
}

int dib_where_connect(const struct dib_place *place, uint64_t until, char *why, size_t room)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *all;
	int rc = getaddrinfo(place->host, place->port, &hints, &all);

	if (rc) {
		snprintf(why, room, "%s:%s: %s", place->host, place->port, gai_strerror(rc));
		return -1;
	}
	rc = -1;
	for (struct addrinfo *one = all; one; one = one->ai_next) {
		int fd = dib_fd(socket(one->ai_family, LISTEN_KIND, one->ai_protocol));

		if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) {
			rc = -2;
			break;
		}
		if (fd >= 0 && (connect(fd, one->ai_addr, one->ai_addrlen) == 0 ||
				(errno == EINPROGRESS && is_connected(fd, until)))) {
			rc = fd;
			break;
		}
		snprintf(why, room, "%s:%s: %s", place->host, place->port, strerror(errno));
		if (fd >= 0)
			dib_fd_close(fd);
	}
	freeaddrinfo(all);
	return rc;
}

/* Rendezvous file ------------------------------------------------------------------------------ */

static bool is_local(const struct sockaddr *address)
{
	return address->sa_family == AF_INET &&
	       ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
}

/* The addresses of this machine, a line each, those that others can reach first. */
static void write_addresses(FILE *file, unsigned int port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *all = NULL;
	char name[DIB_WHERE_HOST] = "localhost", host[DIB_WHERE_HOST];

	gethostname(name, sizeof(name) - 1);
	fprintf(file, "%s:%u\n", name, port);
	if (getaddrinfo(name, NULL, &hints, &all))
		all = NULL;
	for (struct addrinfo *one = all; one; one = one->ai_next)
		if (!is_local(one->ai_addr) && !getnameinfo(one->ai_addr, one->ai_addrlen, host,
							    sizeof(host), NULL, 0, NI_NUMERICHOST))
			fprintf(file, strchr(host, ':') ? "[%s]:%u\n" : "%s:%u\n", host, port);
	if (all)
		freeaddrinfo(all);
	fprintf(file, "127.0.0.1:%u\n", port);
}

int dib_where_write(const char *path, unsigned int port, const char *token)
{
	char partial[FILE_BYTES];
	FILE *file = NULL;
	int fd;

	if ((size_t)snprintf(partial, sizeof(partial), "%s.%ld", path, (long)getpid()) >=
	    sizeof(partial))
		return dib_fail(DIB_ERR_ARGUMENT, "the path of the rendezvous file is too long");
	fd = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0)
		file = fdopen(fd, "w");
	if (file) {
		fprintf(file, "%s\n", token);
		write_addresses(file, port);
		if (fclose(file) == 0 && rename(partial, path) == 0)
			return 0;
	}
	dib_keep_reason("%s cannot be made: %s", path, strerror(errno));
	if (fd >= 0 && !file)
		close(fd);
	if (fd >= 0)
		unlink(partial);
	return DIB_ERR_ARGUMENT;
}

int dib_where_read(const char *path, struct dib_rendezvous *found)
{
	char text[FILE_BYTES], *line, *rest = text;
	/* Without O_NONBLOCK a FIFO of this name would stop the program. */
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t length;

	if (fd < 0 && errno == ENOENT)
		return 0;
	length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (length < 0)
		return dib_fail(DIB_ERR_ARGUMENT, "%s cannot be read: %s", path, strerror(errno));
	text[length] = 0;
	*found = (struct dib_rendezvous){ .count = 0 };
	line = strsep(&rest, "\n");
	if (strlen(line) >= sizeof(found->token))
		return dib_fail(DIB_ERR_ARGUMENT, "%s is no rendezvous file", path);
	strcpy(found->token, line);
	while (found->count < DIB_WHERE_PLACES && (line = strsep(&rest, "\n")) != NULL && *line) {
		int rc = dib_where_place(line, false, &found->places[found->count]);

		if (rc)
			return rc;
		found->count++;
	}
	return 1;
}
