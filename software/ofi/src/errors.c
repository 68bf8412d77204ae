/* Errors of libdibber and of commands as numbers of libfabric. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <dibber/dibber.h>

#include "errors.h"

int dfi_error(int error)
{
	switch (error) {
	case 0:
		return 0;
	case DIB_ERR_ARGUMENT:
		return -FI_EINVAL;
	case DIB_ERR_NOT_FOUND:
	case DIB_ERR_IDENTITY:
	case DIB_ERR_LOST:
		return -FI_ENODEV;
	case DIB_ERR_AGAIN:
		return -FI_EAGAIN;
	case DIB_ERR_TIMEOUT:
		return -FI_ETIMEDOUT;
	case DIB_ERR_NO_MEMORY:
	case DIB_ERR_LIMIT:
		return -FI_ENOMEM;
	case DIB_ERR_IN_USE:
		return -FI_EBUSY;
	default:
		return -FI_EOTHER;
	}
}

int dfi_status_error(unsigned int status)
{
	switch (status) {
	case DIBBER_STATUS_OK:
		return 0;
	case DIBBER_STATUS_TIMEOUT:
		return FI_ETIMEDOUT;
	case DIBBER_STATUS_PEER_RESTARTED:
		return FI_ECONNRESET;
	case DIBBER_STATUS_BAD_NODE:
		return FI_EHOSTUNREACH;
	case DIBBER_STATUS_BAD_KEY:
	case DIBBER_STATUS_NOT_OWNER:
	case DIBBER_STATUS_REMOTE_BAD_KEY:
		return FI_ENOKEY;
	case DIBBER_STATUS_NOT_PERMITTED:
	case DIBBER_STATUS_REMOTE_NOT_PERMITTED:
		return FI_EACCES;
	case DIBBER_STATUS_BOUNDS:
	case DIBBER_STATUS_REMOTE_BOUNDS:
		return FI_EINVAL;
	case DIBBER_STATUS_FLUSHED:
	case DIBBER_STATUS_HALTED:
		return FI_ECANCELED;
	default:
		return FI_EIO;
	}
}
