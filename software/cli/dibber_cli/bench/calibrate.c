/* What a strided copy costs on this machine's CPU.
 *
 *     calibrate MIB       working set of a strided side; it should be well above the last-level
 * cache
 *
 * Prints a line for each element size, stride and kind: "BYTES STRIDE KIND NS". NS is nanoseconds
 * an element, STRIDE in elements, KIND which side has the stride: gather (source), scatter
 * (target), both. The best of several passes counts: whatever else the machine does only makes a
 * pass longer.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _POSIX_C_SOURCE 200809L

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PASSES = 5 };

static const size_t element_bytes[] = { 1, 8, 64 };
static const size_t strides[] = { 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64 };

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* A copy of `size` bytes that the compiler knows, so that an element is loads and stores and no
 * call. */
#define COPY(size)                                                                  \
	static void copy_##size(uint8_t *to, size_t to_stride, const uint8_t *from, \
				size_t from_stride, size_t count)                   \
	{                                                                           \
		for (size_t i = 0; i < count; i++)                                  \
			memcpy(to + i * to_stride, from + i * from_stride, size);   \
	}
COPY(1)
COPY(8)
COPY(64)

typedef void (*copy_function)(uint8_t *, size_t, const uint8_t *, size_t, size_t);
static const copy_function copies[] = { copy_1, copy_8, copy_64 };

static double best_ns(copy_function copy, uint8_t *to, size_t to_stride, const uint8_t *from,
		      size_t from_stride, size_t count)
{
	double best = 1e18;

	for (int pass = 0; pass < PASSES; pass++) {
		double begin = now_ns(), took;

		copy(to, to_stride, from, from_stride, count);
		took = (now_ns() - begin) / (double)count;
		if (took < best)
			best = took;
	}
	return best;
}

int main(int argc, char **argv)
{
	size_t bytes = (argc == 2 ? strtoul(argv[1], NULL, 0) : 0) << 20;
	uint8_t *from = bytes ? aligned_alloc(4096, bytes) : NULL;
	uint8_t *to = bytes ? aligned_alloc(4096, bytes) : NULL;

	if (!from || !to) {
		fprintf(stderr, bytes ? "calibrate: no memory\n" : "usage: calibrate MIB\n");
		return 1;
	}
	/* Touch all of it: pages that were never written are one page of zeros. */
	memset(from, 1, bytes);
	memset(to, 2, bytes);
	for (size_t e = 0; e < sizeof(element_bytes) / sizeof(*element_bytes); e++) {
		size_t size = element_bytes[e];

		for (size_t s = 0; s < sizeof(strides) / sizeof(*strides); s++) {
			size_t stride = size * strides[s], count = bytes / stride;

			printf("%zu %zu gather %.3f\n", size, strides[s],
			       best_ns(copies[e], to, size, from, stride, count));
			printf("%zu %zu scatter %.3f\n", size, strides[s],
			       best_ns(copies[e], to, stride, from, size, count));
			printf("%zu %zu both %.3f\n", size, strides[s],
			       best_ns(copies[e], to, stride, from, stride, count));
			fflush(stdout);
		}
	}
	free(from);
	free(to);
	return 0;
}
