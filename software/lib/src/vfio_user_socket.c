/* The sending side of a vfio-user connection, and its end. */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "descriptors.h"
#include "error.h"
#include "vfio_user.h"
#include "vfio_user_client.h"
#include "vfio_user_socket.h"

int dib_vfio_connect(const char *path, int *out)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int s;

	if (strlen(path) >= sizeof(address.sun_path))
		return dib_fail(DIB_ERR_ARGUMENT,
				"the socket's path has more than %zu characters: %s",
				sizeof(address.sun_path) - 1, path);
	strcpy(address.sun_path, path);
	s = dib_fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	if (s < 0)
		return dib_fail(DIB_ERR_NO_MEMORY, "socket: %s", strerror(errno));
	if (connect(s, (struct sockaddr *)&address, sizeof(address)) < 0) {
		int why = errno;

		dib_fd_close(s);
		return dib_fail(DIB_ERR_NOT_FOUND, "no simulator at %s (%s)", path, strerror(why));
	}
	*out = s;
	return 0;
}

int dib_vfio_lose(struct vfio_user *v, int error, const char *reason)
{
	pthread_mutex_lock(&v->lock);
	if (!v->lost) {
		v->lost = error;
		strncpy(v->reason, reason, sizeof(v->reason) - 1);
		shutdown(v->socket, SHUT_RDWR);
	}
	error = v->lost;
	pthread_cond_broadcast(&v->changed);
	pthread_mutex_unlock(&v->lock);
	return dib_fail(error, "%s", v->reason);
}

int dib_vfio_send(struct vfio_user *v, uint16_t id, uint16_t command, uint32_t flags,
		  uint32_t error, const void *head, size_t head_length, const void *data,
		  size_t data_length, int fd)
{
	struct vfio_user_header header = {
		.id = id,
		.command = command,
		.flags = flags,
		.error = error,
		.size = (uint32_t)(sizeof(header) + head_length + data_length),
	};
	struct iovec parts[3] = {
		{ &header, sizeof(header) },
		{ (void *)head, head_length },
		{ (void *)data, data_length },
	};
	struct iovec *part = parts;
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 3 };
	ssize_t sent;

	if (fd >= 0) {
		struct cmsghdr *c;

		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		c = CMSG_FIRSTHDR(&message);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}

	pthread_mutex_lock(&v->send_lock);
	while (message.msg_iovlen > 0) {
		sent = sendmsg(v->socket, &message, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0) {
			pthread_mutex_unlock(&v->send_lock);
			return dib_vfio_lose(v, DIB_ERR_LOST,
					     "the simulator closed the connection");
		}
		message.msg_control = NULL;
		message.msg_controllen = 0;
		while (message.msg_iovlen > 0 && (size_t)sent >= part->iov_len) {
			sent -= (ssize_t)part->iov_len;
			message.msg_iov = ++part;
			message.msg_iovlen--;
		}
		if (message.msg_iovlen > 0) {
			part->iov_base = (char *)part->iov_base + sent;
			part->iov_len -= (size_t)sent;
		}
	}
	pthread_mutex_unlock(&v->send_lock);
	return 0;
}

int dib_vfio_send_bytes(struct vfio_user *v, const void *data, size_t length)
{
	const uint8_t *p = data;
	ssize_t sent;

	pthread_mutex_lock(&v->send_lock);
	do {
		sent = send(v->socket, p, length, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0) {
			pthread_mutex_unlock(&v->send_lock);
			return dib_vfio_lose(v, DIB_ERR_LOST,
					     "the simulator closed the connection");
		}
		p += sent;
		length -= (size_t)sent;
	} while (length > 0);
	pthread_mutex_unlock(&v->send_lock);
	return 0;
}

/* No answer comes, so any number serves as its id. When the connection is over, sending fails. */
int dib_vfio_post(struct vfio_user *v, uint16_t command, const void *head, size_t head_length,
		  const void *data, size_t data_length)
{
	return dib_vfio_send(v, 0, command, VFIO_USER_NO_REPLY, 0, head, head_length, data,
			     data_length, -1);
}
