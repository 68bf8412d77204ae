/* Errors of libdibber and of commands as numbers of libfabric. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_ERRORS_H
#define DFI_ERRORS_H

#include <rdma/fi_errno.h>

/* The negative FI_ number of an enum dib_error. */
int dfi_error(int error);

/* The positive FI_ number of an enum dibber_status; 0 for OK. */
int dfi_status_error(unsigned int status);

#endif
