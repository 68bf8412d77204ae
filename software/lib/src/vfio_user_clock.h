/* The simulator's clock: which thread calls, and why an answer does not come. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_VFIO_USER_CLOCK_H
#define DIBBER_VFIO_USER_CLOCK_H

#include "vfio_user_client.h"

/* The number of the calling thread among all clients of a simulator, or of the thread that it acts
 * for. Never 0. */
uint64_t dib_vfio_thread(void);

/* Let receive() look at the time after some seconds without a message (see dib_open():
 * DIBBER_CLOCK_NOTICE). */
void dib_vfio_set_patience(struct vfio_user *v);

/* A thread waits for an answer, and those seconds have passed without a message: say why on stderr.
 */
void dib_vfio_say_why(struct vfio_user *v);

#endif
