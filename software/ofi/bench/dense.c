/* The four dense patterns of Fatoohi, Saini and Ciotti, "Interconnect Performance Evaluation of SGI
 * Altix 3700 BX2, Cray X1, Cray Opteron Cluster, and Dell PowerEdge" (IPDPS 2006). The paper
 * defines them in words only; docs/design/mpi.md says how they are read here.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>

#include "bench.h"

#define MATCHINGS 6

/* All ranks that have a partner exchange `length` bytes with `to` and `from`. Returns MB/s of one
 * rank in one direction, of the slowest; 0 where no rank has one. */
static double exchange(size_t length, int to, int from, unsigned int round)
{
	uint8_t *out = memory(length), *in = memory(length);
	double begin, mine = 0, most = 0;

	fill(out, length, rank, round);
	MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	if (to >= 0) {
		MPI_Sendrecv(out, (int)length, MPI_BYTE, to, 0, in, (int)length, MPI_BYTE, from, 0,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		mine = MPI_Wtime() - begin;
		compare(in, length, from, round);
	}
	MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	free(out);
	free(in);
	return most > 0 ? (double)length / most * 1e-6 : 0;
}

/* Phase k: to the rank that is k further, from the rank that is k before. */
void aapc(const struct words *size)
{
	for (int k = 1; k < ranks; k++)
		result("aapc", k,
		       exchange(size->value[0], (rank + k) % ranks, (rank - k + ranks) % ranks,
				(unsigned int)k));
}

/* Phase k: disjoint pairs at a distance of k, as many as there are. */
void simple(const struct words *size)
{
	for (int k = 1; k < ranks; k++) {
		int partner = rank % (2 * k) < k ? rank + k : rank - k;

		if (partner >= ranks)
			partner = -1;
		result("simple", k,
		       exchange(size->value[0], partner, partner, 100 + (unsigned int)k));
	}
}

/* Step k: the first k of the pairs (0, 1), (2, 3) … */
void cumulative(const struct words *size)
{
	for (int k = 1; k <= ranks / 2; k++) {
		int partner = rank < 2 * k ? rank ^ 1 : -1;

		result("cumulative", k,
		       exchange(size->value[0], partner, partner, 200 + (unsigned int)k));
	}
}

/* Each step: all ranks in pairs, at random. */
void random_pairs(const struct words *size)
{
	int *order = memory((size_t)ranks * sizeof(*order));

	for (int k = 1; k <= MATCHINGS; k++) {
		int partner = -1;

		for (int i = 0; i < ranks; i++)
			order[i] = i;
		for (int i = ranks - 1; i > 0; i--) {
			int other = (int)draw((unsigned int)i + 1), kept = order[i];

			order[i] = order[other];
			order[other] = kept;
		}
		for (int i = 0; i + 1 < ranks; i += 2) {
			if (order[i] == rank)
				partner = order[i + 1];
			if (order[i + 1] == rank)
				partner = order[i];
		}
		result("random", k,
		       exchange(size->value[0], partner, partner, 300 + (unsigned int)k));
	}
	free(order);
}
