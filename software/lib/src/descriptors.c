/*
 * Descriptors of the library, and what fork() does to it. The connection to a card, its clock and
 * its memory belong to the process that opened it. A child closes its copies of the descriptors.
 * So the end of its parent is the end of the connection, and nothing that the child does reaches
 * the card. handle.c refuses the handles in the child, memory.c forgets the library's own memory.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "descriptors.h"

static pthread_mutex_t fd_lock = PTHREAD_MUTEX_INITIALIZER;
static int *fds; /* open descriptors of the library */
static size_t fd_count, fd_room;
static int retired[DIB_FD_RETIRED]; /* descriptor plus 1; 0: no descriptor */
static unsigned int next_retired;

/* Around fork(): a child closes its copies, so that the end of its parent ends the connection. */

static void lock_fds(void)
{
	pthread_mutex_lock(&fd_lock);
}

static void unlock_fds(void)
{
	pthread_mutex_unlock(&fd_lock);
}

static void forget_fds(void)
{
	for (size_t i = 0; i < fd_count; i++)
		close(fds[i]);
	fd_count = 0;
	for (unsigned int i = 0; i < DIB_FD_RETIRED; i++)
		retired[i] = 0;
	unlock_fds();
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int unprepared; /* errno of pthread_atfork(), or 0 */

static void prepare(void)
{
	unprepared = pthread_atfork(lock_fds, unlock_fds, forget_fds);
}

/* The lock makes a fork() wait until the descriptor is entered. */
void dib_fd_enter(void)
{
	pthread_once(&once, prepare);
	pthread_mutex_lock(&fd_lock);
}

int dib_fd_entered(int fd)
{
	int why = errno;

	if (fd >= 0 && unprepared) {
		close(fd);
		fd = -1;
		why = unprepared;
	}
	if (fd >= 0 && fd_count == fd_room) {
		size_t room = fd_room ? 2 * fd_room : 16;
		int *more = realloc(fds, room * sizeof(*more));

		if (more) {
			fds = more;
			fd_room = room;
		} else {
			close(fd);
			fd = -1;
			why = ENOMEM;
		}
	}
	if (fd >= 0)
		fds[fd_count++] = fd;
	pthread_mutex_unlock(&fd_lock);
	errno = why;
	return fd;
}

void dib_fd_close(int fd)
{
	pthread_mutex_lock(&fd_lock);
	for (size_t i = 0; i < fd_count; i++) {
		if (fds[i] == fd) {
			fds[i] = fds[--fd_count];
			break;
		}
	}
	close(fd);
	pthread_mutex_unlock(&fd_lock);
}

/* If the descriptor were closed at once, epoll would forget it before the sleeper sees that it is
 * readable. */
void dib_fd_retire(int fd)
{
	uint64_t one = 1;
	int old;

	if (write(fd, &one, sizeof(one)) < 0)
		errno = 0; /* the counter is full, so it is readable */
	pthread_mutex_lock(&fd_lock);
	old = retired[next_retired];
	retired[next_retired] = fd + 1;
	next_retired = (next_retired + 1) % DIB_FD_RETIRED;
	pthread_mutex_unlock(&fd_lock);
	if (old > 0)
		dib_fd_close(old - 1);
}
