/* Whether the process may read or write memory. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_PROTECTION_H
#define DIBBER_PROTECTION_H

#include <stdbool.h>
#include <stdint.h>

/* Check that each byte may be read, and written if `writable`. Returns 0 or ARGUMENT. The check
 * costs three system calls and touches no byte. */
int dib_check_memory(const void *memory, uint64_t length, bool writable);

#endif
