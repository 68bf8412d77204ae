/* Ask for the time again and again until it has changed, as STREAM and other benchmarks do. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	double begin;
	long calls = 0;
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	begin = MPI_Wtime();
	while (MPI_Wtime() - begin < 20e-6)
		calls++;
	MPI_Finalize();
	if (rank == 0)
		printf("%ld\n", calls);
	return 0;
}
