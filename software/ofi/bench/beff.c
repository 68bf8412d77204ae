/* The effective bandwidth b_eff by its published definition (Rabenseifner and Koniges, HLRS), with
 * fewer repetitions: limits are the longest message in bytes, the number of random patterns of 30,
 * and repetitions of the 3 methods.
 *
 *	b_eff = logavg( logavg_rings( avg_L( max_method( max_repetition( b ))))), logavg_random( …
 * ))
 *
 * In each pattern each process sends to its right and to its left neighbour. 21 lengths: 1, 2, 4 …
 * 4096, and eight more in geometric progression up to the longest. One loop a measurement.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define LENGTHS 21
#define SHORTER 13 /* lengths up to 4096 */
#define RINGS	6
#define METHODS 3

static int *counts, *places; /* of MPI_Alltoallv */

static size_t length_of(int i, double longest)
{
	if (i < SHORTER)
		return (size_t)1 << i;
	return (size_t)lround(4096 * pow(longest / 4096, (i - SHORTER + 1) / 8.0));
}

/* The neighbours in the rings of a nominal size: max(1, min(int(P/size + 0.4), P/2)) rings. */
static void neighbours(int size, const int *order, int place, int *left, int *right)
{
	int rings = (int)((double)ranks / size + 0.4), base, larger, first = 0, own = 0;

	if (rings > ranks / 2)
		rings = ranks / 2;
	if (rings < 1)
		rings = 1;
	base = ranks / rings;
	larger = ranks % rings;
	for (int i = 0; i < rings; i++) {
		/* Larger rings are the last ones, or the first ones when the base is odd. */
		bool is_larger = base % 2 ? i < larger : i >= rings - larger;

		own = base + is_larger;
		if (place < first + own)
			break;
		first += own;
	}
	*left = order[first + (place - first + own - 1) % own];
	*right = order[first + (place - first + 1) % own];
}

/* out[0] goes to the right and out[1] to the left. in[0] comes from the left and in[1] from the
 * right. */
static void once(int method, size_t length, int left, int right, uint8_t *out, uint8_t *in)
{
	int bytes = (int)length;
	MPI_Request request[4];

	switch (method) {
	case 0:
		MPI_Sendrecv(out, bytes, MPI_BYTE, right, 1, in, bytes, MPI_BYTE, left, 1,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Sendrecv(out + length, bytes, MPI_BYTE, left, 2, in + length, bytes, MPI_BYTE,
			     right, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		return;
	case 1:
		/* Both messages to one neighbour are one of twice the length. */
		memset(counts, 0, 2 * (size_t)ranks * sizeof(*counts));
		counts[right] = bytes;
		counts[left] += bytes;
		places[left] = bytes;
		places[right] = 0;
		for (int i = 0; i < ranks; i++)
			counts[ranks + i] = counts[i];
		places[ranks + right] = bytes;
		places[ranks + left] = 0;
		MPI_Alltoallv(out, counts, places, MPI_BYTE, in, counts + ranks, places + ranks,
			      MPI_BYTE, MPI_COMM_WORLD);
		return;
	default:
		MPI_Irecv(in, bytes, MPI_BYTE, left, 1, MPI_COMM_WORLD, &request[0]);
		MPI_Irecv(in + length, bytes, MPI_BYTE, right, 2, MPI_COMM_WORLD, &request[1]);
		MPI_Isend(out, bytes, MPI_BYTE, right, 1, MPI_COMM_WORLD, &request[2]);
		MPI_Isend(out + length, bytes, MPI_BYTE, left, 2, MPI_COMM_WORLD, &request[3]);
		MPI_Waitall(4, request, MPI_STATUSES_IGNORE);
	}
}

/* MB/s of all processes, the best of all methods and repetitions. */
static double measure(size_t length, int left, int right, unsigned int repetitions, uint8_t *out,
		      uint8_t *in)
{
	double best = 0;

	for (unsigned int k = 0; k < METHODS * repetitions; k++) {
		double begin, mine, least;

		MPI_Barrier(MPI_COMM_WORLD);
		begin = MPI_Wtime();
		once((int)(k % METHODS), length, left, right, out, in);
		mine = 2.0 * (double)length / (MPI_Wtime() - begin);
		MPI_Allreduce(&mine, &least, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
		if (least * ranks * 1e-6 > best)
			best = least * ranks * 1e-6;
		if (left != right || k % METHODS != 1) {
			compare(in, length, left, 7);
			compare(in + length, length, right, 8);
		}
		memset(in, 0, 2 * length);
	}
	return best;
}

/* avg_L of one pattern; the value at the longest message is `*at_longest`. */
static double pattern(int size, const int *order, const struct words *limits, double *at_longest)
{
	size_t longest = limits->value[0];
	uint8_t *out = memory(2 * longest), *in = memory(2 * longest);
	int left, right, place = 0;
	double sum = 0, value = 0;

	while (order[place] != rank)
		place++;
	neighbours(size, order, place, &left, &right);
	for (int i = 0; i < LENGTHS; i++) {
		size_t length = length_of(i, (double)longest);

		fill(out, length, rank, 7);
		fill(out + length, length, rank, 8);
		value = measure(length, left, right, (unsigned int)limits->value[2], out, in);
		sum += value;
	}
	*at_longest = value;
	free(out);
	free(in);
	return sum / LENGTHS;
}

void b_eff(const struct words *limits)
{
	const int sizes[RINGS] = {
		2, 4, 8, ranks / 4 > 16 ? ranks / 4 : 16, ranks / 2 > 32 ? ranks / 2 : 32, ranks
	};
	double rings = 0, random = 0, rings_longest = 0, random_longest = 0, longest = 0, value = 0;
	int *order = memory((size_t)ranks * sizeof(*order)), former = 0;
	unsigned int randoms = (unsigned int)limits->value[1];

	counts = memory(2 * (size_t)ranks * sizeof(*counts));
	places = memory(2 * (size_t)ranks * sizeof(*places));
	for (int i = 0; i < ranks; i++)
		order[i] = i;
	for (int i = 0; i < RINGS; i++) {
		int size = sizes[i] < ranks ? sizes[i] : ranks;

		/* A pattern that is the same as the one before has its value. */
		if (size != former)
			value = pattern(size, order, limits, &longest);
		former = size;
		rings += log(value) / RINGS;
		rings_longest += log(longest) / RINGS;
	}
	for (unsigned int k = 0; k < randoms; k++) {
		for (int i = ranks - 1; i > 0; i--) {
			int other = (int)draw((unsigned int)i + 1), kept = order[i];

			order[i] = order[other];
			order[other] = kept;
		}
		random += log(pattern(ranks, order, limits, &longest)) / randoms;
		random_longest += log(longest) / randoms;
	}
	result("b_eff", ranks, exp((rings + random) / 2));
	result("b_eff-longest", ranks, exp((rings_longest + random_longest) / 2));
	result("b_eff-rings", ranks, exp(rings));
	result("b_eff-rings-longest", ranks, exp(rings_longest));
	free(order);
	free(counts);
	free(places);
}
