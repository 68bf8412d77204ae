/* A vfio-user connection: receiving, and giving each answer to the thread that asked. */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "descriptors.h"
#include "error.h"
#include "vfio_user.h"
#include "vfio_user_client.h"
#include "vfio_user_clock.h"
#include "vfio_user_connection.h"
#include "vfio_user_memory.h"
#include "vfio_user_socket.h"

#define GUARD 4096u /* bytes; MAX_PAYLOAD is a multiple */

/* A file in memory, mapped between two pages without access. */
static int make_payload(struct vfio_user *v)
{
	uint8_t *memory = MAP_FAILED;

	v->payload_fd = memfd_create("dibber message", MFD_CLOEXEC);
	if (v->payload_fd >= 0 && ftruncate(v->payload_fd, MAX_PAYLOAD) == 0)
		memory = mmap(NULL, MAX_PAYLOAD + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			      -1, 0);
	if (memory != MAP_FAILED && mmap(memory + GUARD, MAX_PAYLOAD, PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_FIXED, v->payload_fd, 0) == MAP_FAILED) {
		munmap(memory, MAX_PAYLOAD + 2 * GUARD);
		memory = MAP_FAILED;
	}
	if (memory == MAP_FAILED) {
		if (v->payload_fd >= 0)
			close(v->payload_fd);
		return dib_fail(DIB_ERR_NO_MEMORY, "no memory for a message");
	}
	v->payload = memory + GUARD;
	return 0;
}

int dib_vfio_init(struct vfio_user *v)
{
	int rc = make_payload(v);

	if (rc)
		return rc;
	v->helper_wake = -1;
	pthread_mutex_init(&v->send_lock, NULL);
	pthread_mutex_init(&v->lock, NULL);
	pthread_mutex_init(&v->map_lock, NULL);
	pthread_cond_init(&v->changed, NULL);
	return 0;
}

void dib_vfio_fini(struct vfio_user *v)
{
	if (v->socket >= 0) {
		/* A child of raw clone(2) may still have the descriptor: this ends the connection
		 * anyway. */
		shutdown(v->socket, SHUT_RDWR);
		dib_fd_close(v->socket);
	}
	pthread_mutex_destroy(&v->send_lock);
	pthread_mutex_destroy(&v->lock);
	pthread_mutex_destroy(&v->map_lock);
	pthread_cond_destroy(&v->changed);
	free(v->maps);
	munmap(v->payload - GUARD, MAX_PAYLOAD + 2 * GUARD);
	close(v->payload_fd);
}

/* Receiving ------------------------------------------------------------------------------------ */

/* Only the reader calls this. */
static int receive(struct vfio_user *v, void *data, size_t length)
{
	uint8_t *p = data;

	while (length > 0) {
		ssize_t n = recv(v->socket, p, length, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			dib_vfio_say_why(v);
			continue;
		}
		if (n <= 0)
			return dib_vfio_lose(v, DIB_ERR_LOST,
					     "the simulator closed the connection");
		p += n;
		length -= (size_t)n;
	}
	return 0;
}

static int hand_over(struct vfio_user *v, const struct vfio_user_header *header, size_t length)
{
	struct waiter **link, *w;

	pthread_mutex_lock(&v->lock);
	for (link = &v->waiters; (w = *link) != NULL; link = &w->next) {
		if (w->id == header->id && w->command == header->command)
			break;
	}
	if (w) {
		*link = w->next;
		w->error = header->flags & VFIO_USER_ERROR ? header->error : 0;
		if (header->flags & VFIO_USER_ERROR && !w->error)
			w->error = EIO;
		w->length = length < w->room ? length : w->room;
		if (w->length > 0)
			memcpy(w->data, v->payload, w->length);
		w->done = true;
		pthread_cond_broadcast(&v->changed);
	}
	pthread_mutex_unlock(&v->lock);
	if (!w)
		return dib_vfio_lose(v, DIB_ERR_PROTOCOL,
				     "the simulator sent an answer to no request");
	return 0;
}

int dib_vfio_handle_one(struct vfio_user *v)
{
	struct vfio_user_header header;
	size_t length;
	int rc;

	rc = receive(v, &header, sizeof(header));
	if (rc)
		return rc;
	if (header.size < sizeof(header) || header.size - sizeof(header) > MAX_PAYLOAD)
		return dib_vfio_lose(v, DIB_ERR_PROTOCOL,
				     "the simulator sent a message of impossible size");
	length = header.size - sizeof(header);
	rc = receive(v, v->payload, length);
	if (rc)
		return rc;
	switch (header.flags & VFIO_USER_TYPE_MASK) {
	case 0:
		return dib_vfio_serve_request(v, &header, length);
	case VFIO_USER_REPLY:
		return hand_over(v, &header, length);
	}
	return dib_vfio_lose(v, DIB_ERR_PROTOCOL,
			     "the simulator sent a message that is neither request nor reply");
}

int dib_vfio_ask(struct vfio_user *v, uint16_t command, const void *head, size_t head_length,
		 const void *data, size_t data_length, int fd, struct waiter *w)
{
	int rc;

	pthread_mutex_lock(&v->lock);
	if (v->lost) {
		rc = dib_fail(v->lost, "%s", v->reason);
		pthread_mutex_unlock(&v->lock);
		return rc;
	}
	w->id = v->next_id++;
	w->command = command;
	w->done = false;
	w->next = v->waiters;
	v->waiters = w;
	v->inside++;
	pthread_mutex_unlock(&v->lock);

	rc = dib_vfio_send(v, w->id, command, 0, 0, head, head_length, data, data_length, fd);

	pthread_mutex_lock(&v->lock);
	while (!w->done && !v->lost) {
		if (v->reading) {
			pthread_cond_wait(&v->changed, &v->lock);
			continue;
		}
		v->reading = true;
		pthread_mutex_unlock(&v->lock);
		dib_vfio_handle_one(v);
		pthread_mutex_lock(&v->lock);
		v->reading = false;
		pthread_cond_broadcast(&v->changed);
	}
	rc = 0;
	if (!w->done) {
		for (struct waiter **link = &v->waiters; *link; link = &(*link)->next) {
			if (*link == w) {
				*link = w->next;
				break;
			}
		}
		rc = dib_fail(v->lost, "%s", v->reason);
	}
	v->inside--;
	if (v->inside == 0 && v->helper_runs)
		pthread_cond_broadcast(&v->changed);
	pthread_mutex_unlock(&v->lock);
	return rc;
}
