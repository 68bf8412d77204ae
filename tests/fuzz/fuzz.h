/* This file is part of Dibber.
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef DIBBER_FUZZ_H
#define DIBBER_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* The name is libFuzzer's, so that `clang -fsanitize=fuzzer` can drive it in place of main.c. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* How many inputs let the program come to: an open card, an endpoint, a registered region, the end without an error. */
extern struct fuzz_reached {
	unsigned long card, endpoint, region, end;
} fuzz_reached;

#endif
