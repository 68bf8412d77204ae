/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_ERROR_H
#define DIBBER_ERROR_H

#include <dibber/dibber.h>

/* Keep the reason for dib_last_reason(). */
__attribute__((format(printf, 1, 2))) void dib_keep_reason(const char *format, ...);

/* Keep a reason and evaluate to an error: `return dib_fail(DIB_ERR_…, "…", …)`. A macro, so that
 * the compiler sees that the value is not 0. */
#define dib_fail(error, ...) (dib_keep_reason(__VA_ARGS__), (error))

#endif
