/* A vfio-user connection: receiving, and requests that are answered. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_VFIO_USER_CONNECTION_H
#define DIBBER_VFIO_USER_CONNECTION_H

#include "vfio_user_client.h"

/* Prepare all but the socket. Fails with DIB_ERR_NO_MEMORY. */
int dib_vfio_init(struct vfio_user *v);
/* Close the socket and release what dib_vfio_init() took. The helper thread has ended. */
void dib_vfio_fini(struct vfio_user *v);

/* Send a request and wait for its answer. */
int dib_vfio_ask(struct vfio_user *v, uint16_t command, const void *head, size_t head_length,
		 const void *data, size_t data_length, int fd, struct waiter *w);

/* Receive one message and do what it says. Only the reader calls this, without the lock. */
int dib_vfio_handle_one(struct vfio_user *v);

#endif
