/*
 * The state of a vfio-user connection, which several files share.
 *
 * Several threads use the socket. A thread that waits for an answer while no other thread reads
 * becomes the reader. It hands other threads their answers, and serves the card's own requests
 * to memory, until its own answer has come. A helper thread does this while the program waits
 * elsewhere. It is started with the first mapping that the card can reach by message only.
 *
 * The server is expected to read its socket at all times, so sending may block.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_VFIO_USER_CLIENT_H
#define DIBBER_VFIO_USER_CLIENT_H

#include <pthread.h>

#include "transport.h"
#include "vfio_user.h"

#define MAX_TRANSFER (1u << 20) /* bytes of one DMA message, announced in VERSION */
#define MAX_PAYLOAD  (MAX_TRANSFER + 4096u)

/* An answer that a thread waits for. It lives on the thread's stack. */
struct waiter {
	struct waiter *next;
	uint16_t id;
	uint16_t command;
	bool done;
	uint32_t error; /* errno in the answer */
	void *data;	/* destination of the payload */
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
	uint8_t *payload; /* of the message that the reader handles */
	int payload_fd;	  /* the same memory as a file */

	pthread_mutex_t map_lock;
	struct dib_mapping *maps;
	size_t map_count, map_room;

	pthread_t helper;
	bool helper_runs, helper_ends;
	unsigned int inside; /* threads that wait for an answer; the helper stays away meanwhile */
	int helper_wake;     /* eventfd */
};

#define OBSERVERS \
	".admin" /* appended to the path of a card's socket: the socket of its observers */

#endif
