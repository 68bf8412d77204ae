/* What an errno of the Linux driver dibber.ko means. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_DRIVER_ERROR_H
#define DIBBER_DRIVER_ERROR_H

/* Keep the reason of `errno` after a call of the driver; `what` was tried. Returns DIB_ERR_*. */
int dib_driver_error(const char *what);

#endif
