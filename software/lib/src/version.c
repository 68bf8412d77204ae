/* Which library and which interface this is. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <inttypes.h>
#include <stdio.h>

#include "dibber/dibber.h"

/* The longest is "255.255.255, interface 65535.65535, hash ffffffff". */
#define VERSION_BYTES 64

const char *dib_version(void)
{
	/* Each thread writes its own copy, so that no lock is needed. */
	static _Thread_local char text[VERSION_BYTES];

	snprintf(text, sizeof(text), "%s, interface %u.%u, hash %08" PRIx32, DIB_VERSION,
		 (unsigned int)(DIBBER_INTERFACE_VERSION >> 16),
		 (unsigned int)(DIBBER_INTERFACE_VERSION & 0xffff),
		 (uint32_t)DIBBER_INTERFACE_HASH);
	return text;
}
