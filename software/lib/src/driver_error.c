/* What an errno of the Linux driver dibber.ko means. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "driver_error.h"

#include <errno.h>
#include <string.h>

#include "error.h"

/* The table is in docs/driver.md. */
int dib_driver_error(const char *what)
{
	int why = errno;

	switch (why) {
	case EINVAL:
	case EFAULT:
	case ENOENT:
		return dib_fail(DIB_ERR_ARGUMENT, "%s: the driver says '%s'", what, strerror(why));
	case EPERM:
		return dib_fail(DIB_ERR_FORKED, "%s: another process opened the endpoint", what);
	case EBUSY:
		return dib_fail(DIB_ERR_IN_USE, "%s: another open file has it", what);
	case ENOSPC:
		return dib_fail(DIB_ERR_LIMIT, "%s: all of the card's are in use", what);
	case EDQUOT:
		return dib_fail(DIB_ERR_LIMIT, "%s: above the driver's quota for this user", what);
	case ENOMEM:
		return dib_fail(DIB_ERR_NO_MEMORY, "%s: the system pins no more: see 'ulimit -l'",
				what);
	case ESHUTDOWN:
		return dib_fail(DIB_ERR_HALTED, "%s: the control program was halted", what);
	case EOPNOTSUPP:
		return dib_fail(DIB_ERR_NOT_FOUND, "%s: the driver has found no remote window",
				what);
	case ENODEV:
		return dib_fail(DIB_ERR_LOST, "%s: the driver does not have the card any more",
				what);
	case ETIMEDOUT:
		return dib_fail(DIB_ERR_TIMEOUT, "%s: no answer from the control program", what);
	case EPROTO:
		return dib_fail(DIB_ERR_PROTOCOL, "%s: a wrong answer from the control program",
				what);
	case EIO:
		return dib_fail(DIB_ERR_COMMAND,
				"%s: the control program refused; the kernel's log has its status",
				what);
	default:
		return dib_fail(DIB_ERR_SYSTEM, "%s: %s", what, strerror(why));
	}
}
