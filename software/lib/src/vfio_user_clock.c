/* The simulator's clock: which thread calls, and why an answer does not come. */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <dibber/dibber.h>

#include "descriptors.h"
#include "vfio_user.h"
#include "vfio_user_client.h"
#include "vfio_user_clock.h"
#include "vfio_user_socket.h"

#define NOTICE_SECONDS 10 /* of the machine's time */
#define ANSWER_SECONDS 2  /* for the simulator to say which participant holds the clock */
#define TEXT_BYTES     1024

static _Thread_local pid_t acting_for;

static pthread_once_t process_once = PTHREAD_ONCE_INIT;
static uint32_t process_number;

/* Two containers may have threads of the same number. A random number for the process tells them
 * apart. */
static void draw_process_number(void)
{
	if (getrandom(&process_number, sizeof(process_number), GRND_NONBLOCK) !=
	    sizeof(process_number))
		process_number = (uint32_t)getpid();
}

/* A child of fork() has the process number of its parent. Its threads have other numbers. */
uint64_t dib_vfio_thread(void)
{
	uint32_t thread = (uint32_t)(acting_for ? acting_for : (pid_t)syscall(SYS_gettid));

	pthread_once(&process_once, draw_process_number);
	return (uint64_t)process_number << 32 | thread;
}

void dib_clock_act_for(int thread)
{
	acting_for = (pid_t)thread;
}

static long notice_seconds(void)
{
	const char *text = secure_getenv("DIBBER_CLOCK_NOTICE");
	char *end;
	long seconds;

	if (!text || !*text)
		return NOTICE_SECONDS;
	seconds = strtol(text, &end, 10);
	return *end || seconds < 0 || seconds > 1000000 ? NOTICE_SECONDS : seconds;
}

/* SO_RCVTIMEO costs nothing while messages come. */
static void set_timeout(int socket, long seconds)
{
	struct timeval limit = { .tv_sec = seconds };

	setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

void dib_vfio_set_patience(struct vfio_user *v)
{
	set_timeout(v->socket, notice_seconds());
}

static bool receive_all(int socket, void *data, size_t length)
{
	return recv(socket, data, length, MSG_WAITALL) == (ssize_t)length;
}

/* One request and the payload of its answer, cut to `room`. Returns its length, or -1. */
static ssize_t ask_once(int socket, uint16_t command, const void *payload, size_t length,
			void *answer, size_t room)
{
	struct vfio_user_header header = { .id = command, .command = command };
	uint8_t message[sizeof(header) + 64];
	size_t bytes;

	header.size = (uint32_t)(sizeof(header) + length);
	memcpy(message, &header, sizeof(header));
	if (length)
		memcpy(message + sizeof(header), payload, length);
	if (send(socket, message, header.size, MSG_NOSIGNAL) != (ssize_t)header.size ||
	    !receive_all(socket, &header, sizeof(header)) || header.size < sizeof(header) ||
	    header.flags & VFIO_USER_ERROR)
		return -1;
	bytes = header.size - sizeof(header);
	return bytes <= room && (bytes == 0 || receive_all(socket, answer, bytes)) ? (ssize_t)bytes
										   : -1;
}

/* Ask the simulator, as an observer, for the state of its clock. `text` is empty if it does not
 * answer. */
static void ask_for_state(const char *path, char text[TEXT_BYTES])
{
	struct vfio_user_version version = { .major = 0, .minor = 1 };
	char longer[sizeof(((struct vfio_user *)NULL)->path) + sizeof(OBSERVERS)];
	uint8_t ignored[TEXT_BYTES];
	ssize_t length = -1;
	int socket;

	text[0] = 0;
	strcat(strcpy(longer, path), OBSERVERS);
	if (dib_vfio_connect(longer, &socket))
		return;
	set_timeout(socket, ANSWER_SECONDS);
	if (ask_once(socket, VFIO_USER_VERSION, &version, sizeof(version), ignored,
		     sizeof(ignored)) >= 0)
		length = ask_once(socket, DIBBER_CLOCK_MESSAGE, NULL, 0, text, TEXT_BYTES - 1);
	dib_fd_close(socket);
	text[length < 0 ? 0 : length] = 0;
	for (char *c = text; *c; c++)
		*c = *c < ' ' || *c > '~' ? '?' : *c;
}

void dib_vfio_say_why(struct vfio_user *v)
{
	char text[TEXT_BYTES];
	bool waits;
	int error = errno;

	pthread_mutex_lock(&v->lock);
	waits = v->inside > 0;
	pthread_mutex_unlock(&v->lock);
	if (!waits)
		return;
	ask_for_state(v->path[0] ? v->path : "", text);
	/* A slow simulation is no reason for a notice. */
	if (strcmp(text, "time goes on") != 0) {
		fprintf(stderr, "dibber: %s has not answered for %ld s: %s%s\n", v->path,
			notice_seconds(), *text ? text : "it does not say why",
			strstr(text, "outside the library")
				? ". A program that waits for something else first leaves the clock: dib_clock_leave()"
				: "");
	}
	errno = error;
}
