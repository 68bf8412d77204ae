/* The sending side of a vfio-user connection, and its end. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_VFIO_USER_SOCKET_H
#define DIBBER_VFIO_USER_SOCKET_H

#include "vfio_user_client.h"

/* Connect to a socket. Fails with DIB_ERR_ARGUMENT, DIB_ERR_NO_MEMORY or DIB_ERR_NOT_FOUND. */
int dib_vfio_connect(const char *path, int *out);

/* End the connection: keep the reason, and wake all threads. Returns the error that ended it first.
 */
int dib_vfio_lose(struct vfio_user *v, int error, const char *reason);

/* Send whole messages as they stand. */
int dib_vfio_send_bytes(struct vfio_user *v, const void *data, size_t length);

/* Send one message. `fd` goes along unless it is -1. */
int dib_vfio_send(struct vfio_user *v, uint16_t id, uint16_t command, uint32_t flags,
		  uint32_t error, const void *head, size_t head_length, const void *data,
		  size_t data_length, int fd);

/* Send a request without an answer. */
int dib_vfio_post(struct vfio_user *v, uint16_t command, const void *head, size_t head_length,
		  const void *data, size_t data_length);

#endif
