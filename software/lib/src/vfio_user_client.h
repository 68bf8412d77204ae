/* A vfio-user connection as the library's files share it.
 *
 * Several threads use the socket. Whoever waits for an answer and finds nobody reading becomes the
 * reader: it hands other threads their answers and serves the card's own requests to memory until
 * its own answer has come. A program that waits elsewhere is represented by a helper thread, which
 * is started with the first mapping that the card can reach by message only.
 *
 * The server is expected to read its socket always, so sending may block.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_VFIO_USER_CLIENT_H
#define DIBBER_VFIO_USER_CLIENT_H

#include <pthread.h>

#include "error.h"
#include "handle.h"
#include "transport.h"
#include "vfio_user.h"

#define MAX_TRANSFER (1u << 20) /* bytes of one DMA message, announced in VERSION */
#define MAX_PAYLOAD  (MAX_TRANSFER + 4096u)

/* An answer that a thread waits for; lives on its stack. */
struct waiter {
	struct waiter *next;
	uint16_t id;
	uint16_t command;
	bool done;
	uint32_t error; /* errno in the answer */
	void *data;	/* where the payload goes */
	size_t room;
	size_t length; /* of the payload that came, cut to `room` */
};

struct vfio_user {
	struct dib_transport base;
	int socket;
	bool clock;
	char path[108]; /* of the socket; sun_path has no more */

	pthread_mutex_t send_lock;

	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed;
	struct waiter *waiters;
	uint16_t next_id;
	bool reading; /* a thread is at the socket's receiving end */
	int lost;     /* 0, or the error that ended the connection */
	char reason[256];
	uint8_t *payload; /* of the message being handled; the reader's … */
	int payload_fd;	  /* … and the same memory as a file */

	pthread_mutex_t map_lock;
	struct dib_mapping *maps;
	size_t map_count, map_room;

	pthread_t helper;
	bool helper_runs, helper_ends;
	unsigned int inside; /* threads that wait for an answer: the helper keeps away */
	int helper_wake;     /* eventfd */
};

#define OBSERVERS ".admin" /* behind the path of a card's socket: that of its observers */

/* transport_vfio_user.c */

/* Connect to a socket. Fails with DIB_ERR_ARGUMENT, DIB_ERR_NO_MEMORY or DIB_ERR_NOT_FOUND. */
int dib_vfio_connect(const char *path, int *out);

/* vfio_user_connection.c */

/* Prepare all but the socket. Fails with DIB_ERR_NO_MEMORY. */
int dib_vfio_init(struct vfio_user *v);
/* End the helper, close the socket, release what init took. */
void dib_vfio_fini(struct vfio_user *v);

/* The connection is over: remember why, and wake everybody. Returns the first such error. */
int dib_vfio_lose(struct vfio_user *v, int error, const char *reason);

/* Send whole messages as they stand. */
int dib_vfio_send_bytes(struct vfio_user *v, const void *data, size_t length);

/* Send one message; `fd` goes along unless it is -1. */
int dib_vfio_send(struct vfio_user *v, uint16_t id, uint16_t command, uint32_t flags,
		  uint32_t error, const void *head, size_t head_length, const void *data,
		  size_t data_length, int fd);

/* Send a request and wait for its answer. */
int dib_vfio_ask(struct vfio_user *v, uint16_t command, const void *head, size_t head_length,
		 const void *data, size_t data_length, int fd, struct waiter *w);

/* Send a request without an answer. */
int dib_vfio_post(struct vfio_user *v, uint16_t command, const void *head, size_t head_length,
		  const void *data, size_t data_length);

/* Receive one message and do what it says. Only the reader calls this, without the lock. */
int dib_vfio_handle_one(struct vfio_user *v);

/* vfio_user_clock.c */

/* The calling thread's number among all clients of a simulator, or that of the thread it acts for;
 * never 0. */
uint64_t dib_vfio_thread(void);

/* Have receive() look at the time after some seconds without a message (see dib_open():
 * DIBBER_CLOCK_NOTICE). */
void dib_vfio_set_patience(struct vfio_user *v);

/* So many seconds have passed without a message while a thread waits for an answer: say on stderr
 * why. */
void dib_vfio_say_why(struct vfio_user *v);

/* vfio_user_helper.c */

/* Handle messages that are there, or come within `timeout_ms`, unless another thread does. */
int dib_vfio_serve(struct vfio_user *v, int timeout_ms);

/* Have the card served while no thread of the program is in the library. */
int dib_vfio_start_helper(struct vfio_user *v);
void dib_vfio_end_helper(struct vfio_user *v);

/* vfio_user_memory.c */

int dib_vfio_enter_mapping(struct vfio_user *v, const struct dib_mapping *mapping);
void dib_vfio_remove_mapping(struct vfio_user *v, uint64_t iova);

/* Do and answer a request of the card, whose payload is in v->payload. Only the reader calls this.
 */
int dib_vfio_serve_request(struct vfio_user *v, const struct vfio_user_header *header,
			   size_t length);

#endif
