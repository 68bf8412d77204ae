/* Descriptors of the library, which a child of fork() must not keep. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_DESCRIPTORS_H
#define DIBBER_DESCRIPTORS_H

/* `call` opens a descriptor: dib_fd(socket(…)). -1 with errno set when it fails. */
#define dib_fd(call) dib_fd_entered((dib_fd_enter(), (call)))
void dib_fd_enter(void);
int dib_fd_entered(int fd);
void dib_fd_close(int fd);
/* Make an eventfd readable for a thread that sleeps there. Close it when DIB_FD_RETIRED more
 * descriptors were retired. */
void dib_fd_retire(int fd);
#define DIB_FD_RETIRED 8u

#endif
