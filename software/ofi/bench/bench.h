/* What the tests of dibber-mpi-bench share: ranks, bytes that are compared, results. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef BENCH_H
#define BENCH_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern int rank, ranks;
extern uint64_t seed;

/* Fill bytes with what `from` sends in a round, and count those that differ from it. */
void fill(void *bytes, size_t length, int from, unsigned int round);
void compare(const void *bytes, size_t length, int from, unsigned int round);

/* A result, printed by rank 0: `series x value`. All ranks call it. */
void result(const char *series, double x, double value);

/* A random number below `below`, the same on all ranks. */
unsigned int draw(unsigned int below);

void *memory(size_t length); /* or the end of the program */

/* A test has a name and takes the numbers behind it, such as "restricted=8,4096". */
struct words {
	unsigned long value[32];
	unsigned int count;
};

void restricted(const struct words *sizes);
void postal(const struct words *sizes);
void distance(const struct words *hops);
void barrier(const struct words *rounds);
void reduce(const struct words *sizes);
void alltoall(const struct words *sizes);
void aapc(const struct words *size);
void simple(const struct words *size);
void cumulative(const struct words *size);
void random_pairs(const struct words *size);
void b_eff(const struct words *limits);
void put_vector(const struct words *strides);
void typed(const struct words *patterns);

#endif
