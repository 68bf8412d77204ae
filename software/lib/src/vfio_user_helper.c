/* Serving the card while no thread waits for an answer of its own. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "descriptors.h"
#include "error.h"
#include "vfio_user_client.h"
#include "vfio_user_connection.h"
#include "vfio_user_helper.h"

int dib_vfio_serve(struct vfio_user *v, int timeout_ms)
{
	struct pollfd p = { .fd = v->socket, .events = POLLIN };
	int rc = 0;

	pthread_mutex_lock(&v->lock);
	if (v->reading || v->lost) {
		if (v->lost)
			rc = dib_fail(v->lost, "%s", v->reason);
		pthread_mutex_unlock(&v->lock);
		if (!rc && timeout_ms > 0)
			poll(NULL, 0, timeout_ms);
		return rc;
	}
	v->reading = true;
	pthread_mutex_unlock(&v->lock);
	while (!rc && poll(&p, 1, timeout_ms) > 0) {
		rc = dib_vfio_handle_one(v);
		timeout_ms = 0;
	}
	pthread_mutex_lock(&v->lock);
	v->reading = false;
	pthread_cond_broadcast(&v->changed);
	pthread_mutex_unlock(&v->lock);
	return rc;
}

/* While no thread waits for an answer, serve the card's requests. */
static void *helper(void *argument)
{
	struct vfio_user *v = argument;
	struct pollfd p[2] = {
		{ .fd = v->socket, .events = POLLIN },
		{ .fd = v->helper_wake, .events = POLLIN },
	};

	pthread_mutex_lock(&v->lock);
	while (!v->helper_ends && !v->lost) {
		if (v->inside > 0 || v->reading) {
			pthread_cond_wait(&v->changed, &v->lock);
			continue;
		}
		pthread_mutex_unlock(&v->lock);
		poll(p, 2, -1);
		pthread_mutex_lock(&v->lock);
		if (!(p[0].revents & (POLLIN | POLLHUP)) || v->inside > 0 || v->reading)
			continue;
		v->reading = true;
		pthread_mutex_unlock(&v->lock);
		/* No other thread reads now, so the message that poll() saw is still there. */
		if (poll(p, 1, 0) > 0)
			dib_vfio_handle_one(v);
		pthread_mutex_lock(&v->lock);
		v->reading = false;
		pthread_cond_broadcast(&v->changed);
	}
	pthread_mutex_unlock(&v->lock);
	return NULL;
}

int dib_vfio_start_helper(struct vfio_user *v)
{
	int rc = 0;

	pthread_mutex_lock(&v->lock);
	if (!v->helper_runs) {
		v->helper_wake = dib_fd(eventfd(0, EFD_CLOEXEC));
		if (v->helper_wake >= 0 && pthread_create(&v->helper, NULL, helper, v) == 0) {
			v->helper_runs = true;
		} else {
			rc = dib_fail(DIB_ERR_NO_MEMORY, "no thread to serve the card's reads");
			if (v->helper_wake >= 0)
				dib_fd_close(v->helper_wake);
			v->helper_wake = -1;
		}
	}
	pthread_mutex_unlock(&v->lock);
	return rc;
}

void dib_vfio_end_helper(struct vfio_user *v)
{
	uint64_t one = 1;

	pthread_mutex_lock(&v->lock);
	v->helper_ends = true;
	pthread_cond_broadcast(&v->changed);
	pthread_mutex_unlock(&v->lock);
	if (v->helper_runs && write(v->helper_wake, &one, sizeof(one)) == sizeof(one))
		pthread_join(v->helper, NULL);
	if (v->helper_wake >= 0)
		dib_fd_close(v->helper_wake);
}
