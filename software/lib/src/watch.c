/* Waking a program that sleeps on a descriptor of dib_event_fd() when no interrupt will come any
 * more. If a descriptor of a card was asked for, a thread waits for the card's end. When the card
 * has ended, or an endpoint alone, the thread writes the endpoint's eventfd, and writes it again
 * after each read. So it stays readable until it is closed. */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "card.h"
#include "descriptors.h"
#include "endpoint.h"
#include "error.h"
#include "transport.h"
#include "watch.h"

#define LOOK_MS 100 /* pause between two looks at a card that may vanish without a message */
/* In place of an endpoint's number: the card's end, or the request to stop. */
#define OTHER DIBBER_ENDPOINTS

struct dib_watch {
	pthread_t thread;
	struct dib_transport *transport;
	int epoll, wake;

	pthread_mutex_t lock; /* guards what follows */
	bool stops;
	bool over;		   /* the card has ended */
	int fds[DIBBER_ENDPOINTS]; /* of the endpoints, or -1 */
	bool ended[DIBBER_ENDPOINTS];
};

static void raise_fd(int fd)
{
	uint64_t one = 1;

	/* A full counter is readable as well. */
	if (write(fd, &one, sizeof(one)) < 0)
		errno = 0;
}

static int listen_at(struct dib_watch *w, int fd, uint32_t events, uint32_t number)
{
	struct epoll_event event = { .events = events, .data.u32 = number };

	return epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &event);
}

/* The caller has the lock. An eventfd reports EPOLLOUT at each read, and once at first. */
static void end_endpoint(struct dib_watch *w, unsigned int number)
{
	if (w->ended[number] || w->fds[number] < 0)
		return;
	w->ended[number] = true;
	raise_fd(w->fds[number]);
	listen_at(w, w->fds[number], EPOLLOUT | EPOLLET, number);
}

/* The caller has the lock. */
static void look(struct dib_watch *w)
{
	if (w->over || !w->transport->ops->has_ended(w->transport))
		return;
	w->over = true;
	for (unsigned int i = 0; i < DIBBER_ENDPOINTS; i++)
		end_endpoint(w, i);
}

static void *watch(void *argument)
{
	struct dib_watch *w = argument;
	struct epoll_event events[OTHER + 1];
	bool stops = false;

	while (!stops) {
		int count = epoll_wait(w->epoll, events, OTHER + 1, w->over ? -1 : LOOK_MS);

		pthread_mutex_lock(&w->lock);
		stops = w->stops;
		if (!stops)
			look(w);
		for (int i = 0; i < count && !stops; i++) {
			uint32_t number = events[i].data.u32;

			if (number < OTHER && w->ended[number])
				raise_fd(w->fds[number]);
		}
		pthread_mutex_unlock(&w->lock);
	}
	return NULL;
}

/* The thread takes no signals: they are for the program's own threads. */
static int start_thread(struct dib_watch *w)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&w->thread, NULL, watch, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

static void free_watch(struct dib_watch *w)
{
	if (w->epoll >= 0)
		dib_fd_close(w->epoll);
	if (w->wake >= 0)
		dib_fd_close(w->wake);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

static int start(struct dib_card *card)
{
	struct dib_watch *w = calloc(1, sizeof(*w));
	uint32_t events[DIB_ENDS];
	int fds[DIB_ENDS];
	unsigned int count;

	if (!w)
		return dib_fail(DIB_ERR_SYSTEM, "no memory for a thread that watches the card");
	pthread_mutex_init(&w->lock, NULL);
	w->transport = card->transport;
	for (unsigned int i = 0; i < DIBBER_ENDPOINTS; i++)
		w->fds[i] = -1;
	w->wake = -1;
	w->epoll = dib_fd(epoll_create1(EPOLL_CLOEXEC));
	if (w->epoll >= 0)
		w->wake = dib_fd(eventfd(0, EFD_CLOEXEC));
	if (w->wake < 0 || listen_at(w, w->wake, EPOLLIN, OTHER) < 0)
		goto failed;
	count = card->transport->ops->ends(card->transport, fds, events);
	for (unsigned int i = 0; i < count; i++) {
		if (listen_at(w, fds[i], events[i] | EPOLLET, OTHER) < 0)
			goto failed;
	}
	if (start_thread(w)) {
		free_watch(w);
		return dib_fail(DIB_ERR_SYSTEM, "no thread to watch the card");
	}
	card->watch = w;
	return 0;

failed:
	free_watch(w);
	return dib_fail(DIB_ERR_SYSTEM, "watching the card: %s", strerror(errno));
}

int dib_watch_add(struct dib_card *card, struct dib_endpoint *endpoint)
{
	struct dib_watch *w;
	int rc = card->watch ? 0 : start(card);

	if (rc)
		return rc;
	w = card->watch;
	pthread_mutex_lock(&w->lock);
	w->fds[endpoint->number] = endpoint->event_fd;
	w->ended[endpoint->number] = false;
	if (w->over || endpoint->halted)
		end_endpoint(w, endpoint->number);
	pthread_mutex_unlock(&w->lock);
	return 0;
}

void dib_watch_ended(struct dib_endpoint *endpoint)
{
	struct dib_watch *w;

	/* An endpoint with a descriptor has a thread: both were made with the card locked. */
	if (endpoint->event_fd < 0)
		return;
	w = endpoint->card->watch;
	pthread_mutex_lock(&w->lock);
	end_endpoint(w, endpoint->number);
	pthread_mutex_unlock(&w->lock);
}

void dib_watch_remove(struct dib_card *card, struct dib_endpoint *endpoint)
{
	struct dib_watch *w = card->watch;

	if (!w || endpoint->event_fd < 0)
		return;
	pthread_mutex_lock(&w->lock);
	if (w->ended[endpoint->number])
		epoll_ctl(w->epoll, EPOLL_CTL_DEL, endpoint->event_fd, NULL);
	w->fds[endpoint->number] = -1;
	w->ended[endpoint->number] = false;
	pthread_mutex_unlock(&w->lock);
}

void dib_watch_stop(struct dib_card *card)
{
	struct dib_watch *w = card->watch;

	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stops = true;
	pthread_mutex_unlock(&w->lock);
	raise_fd(w->wake);
	pthread_join(w->thread, NULL);
	card->watch = NULL;
	free_watch(w);
}
