/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_FUZZ_H
#define DIBBER_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* The name is libFuzzer's, so that `clang -fsanitize=fuzzer` can drive it in place of main.c. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What main.c makes for this target: inputs of `length` bytes that are zeros with at most `bursts`
 * bursts of at most `burst` bytes. */
extern const struct fuzz_form {
	size_t length;
	unsigned int bursts, burst;
} fuzz_form;

/* How far inputs let the program come; a place without a name is behind the last. */
extern struct fuzz_reached {
	const char *name;
	unsigned long count;
} fuzz_reached[];

#endif
