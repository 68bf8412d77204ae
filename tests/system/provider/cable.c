/* An alltoall again and again, until a simulated time, while a cable may be away.
 *
 *	cable MICROSECONDS
 *
 * Rank 0 prints the longest time of a call in microseconds. A call that fails ends the program with
 * 3, and a wrong byte with 1.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 12000

static unsigned char byte_of(int from, int to, unsigned int round, int place)
{
	return (unsigned char)(from * 71 + to * 29 + (int)round * 13 + place * 7 + (place >> 8));
}

int main(int argc, char **argv)
{
	unsigned char *out, *in;
	double until, longest = 0;
	int rank, ranks, go = 1;

	MPI_Init(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	until = atof(argv[1]) * 1e-6;
	out = malloc((size_t)ranks * BYTES);
	in = malloc((size_t)ranks * BYTES);
	for (unsigned int round = 0; go; round++) {
		double begin = MPI_Wtime(), taken;

		for (int i = 0; i < ranks * BYTES; i++)
			out[i] = byte_of(rank, i / BYTES, round, i % BYTES);
		memset(in, 0, (size_t)ranks * BYTES);
		if (MPI_Alltoall(out, BYTES, MPI_BYTE, in, BYTES, MPI_BYTE, MPI_COMM_WORLD)) {
			fprintf(stderr, "rank %d: alltoall failed\n", rank);
			_Exit(3);
		}
		for (int i = 0; i < ranks * BYTES; i++)
			if (in[i] != byte_of(i / BYTES, rank, round, i % BYTES)) {
				fprintf(stderr, "rank %d: byte %d of round %u\n", rank, i, round);
				_Exit(1);
			}
		taken = MPI_Wtime() - begin;
		longest = taken > longest ? taken : longest;
		go = MPI_Wtime() < until;
		if (MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD)) {
			fprintf(stderr, "rank %d: broadcast failed\n", rank);
			_Exit(3);
		}
	}
	MPI_Finalize();
	if (rank == 0)
		printf("%.0f\n", longest * 1e6);
	return 0;
}
