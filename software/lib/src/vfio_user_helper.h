/* Serving the card while no thread waits for an answer. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_VFIO_USER_HELPER_H
#define DIBBER_VFIO_USER_HELPER_H

#include "vfio_user_client.h"

/* Handle messages that are there, or come within `timeout_ms`, unless another thread does. */
int dib_vfio_serve(struct vfio_user *v, int timeout_ms);

/* Start and end the thread that serves the card while the program is outside the library. */
int dib_vfio_start_helper(struct vfio_user *v);
void dib_vfio_end_helper(struct vfio_user *v);

#endif
