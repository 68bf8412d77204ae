/* Barrier, Reduce and Alltoall, as the Intel MPI Benchmarks define them: the time of a call, of the
 * rank that takes longest.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>

#include "bench.h"

#define ROUNDS 2

static void report(const char *series, double x, double begin, int rounds)
{
	double mine = (MPI_Wtime() - begin) / rounds, most = 0;

	MPI_Reduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	result(series, x, most * 1e6);
}

void barrier(const struct words *rounds)
{
	int count = rounds->count ? (int)rounds->value[0] : 10;
	double begin;

	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	for (int i = 0; i < count; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	report("barrier", ranks, begin, count);
}

/* The root moves by one in each round. Sums of whole numbers are exact in any order. */
void reduce(const struct words *sizes)
{
	for (unsigned int i = 0; i < sizes->count; i++) {
		int count = (int)(sizes->value[i] / sizeof(float));
		float *out = memory(sizes->value[i]), *in = memory(sizes->value[i]);
		double begin = 0;

		for (int k = 0; k < count; k++)
			out[k] = (float)((rank + 1) * (k % 1000));
		for (int k = -1; k < ROUNDS; k++) {
			if (k == 0) {
				MPI_Barrier(MPI_COMM_WORLD);
				begin = MPI_Wtime();
			}
			MPI_Reduce(out, in, count, MPI_FLOAT, MPI_SUM, (k + ranks) % ranks,
				   MPI_COMM_WORLD);
		}
		report("reduce", (double)sizes->value[i], begin, ROUNDS);
		if (rank == (ROUNDS - 1 + ranks) % ranks) {
			/* As bytes: those of the right sums, and those that came. */
			for (int k = 0; k < count; k++) {
				float sum = (float)(ranks * (ranks + 1) / 2 * (k % 1000));
				uint8_t byte = sum == in[k] ? 0 : 1, expected;

				fill(&expected, 1, 0, 0);
				byte = (uint8_t)(byte + expected);
				compare(&byte, 1, 0, 0);
			}
		}
		free(out);
		free(in);
	}
}

void alltoall(const struct words *sizes)
{
	for (unsigned int i = 0; i < sizes->count; i++) {
		size_t length = sizes->value[i];
		uint8_t *out = memory(length * (size_t)ranks), *in = memory(length * (size_t)ranks);
		double begin = 0;

		for (int k = 0; k < ranks; k++)
			fill(out + (size_t)k * length, length, rank, (unsigned int)k);
		for (int k = -1; k < ROUNDS; k++) {
			if (k == 0) {
				MPI_Barrier(MPI_COMM_WORLD);
				begin = MPI_Wtime();
			}
			MPI_Alltoall(out, (int)length, MPI_BYTE, in, (int)length, MPI_BYTE,
				     MPI_COMM_WORLD);
		}
		report("alltoall", (double)length, begin, ROUNDS);
		for (int k = 0; k < ranks; k++)
			compare(in + (size_t)k * length, length, k, (unsigned int)rank);
		free(out);
		free(in);
	}
}
