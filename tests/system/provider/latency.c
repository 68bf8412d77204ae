/* Half a round trip of 8 bytes, in microseconds by MPI_Wtime(): a line for each measurement. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <mpi.h>
#include <stdio.h>

#define TRIPS 4

int main(int argc, char **argv)
{
	char bytes[8] = { 0 };
	double begin;
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < 5; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		begin = MPI_Wtime();
		for (int k = 0; k < 2 * TRIPS; k++) {
			if (k % 2 == rank)
				MPI_Send(bytes, 8, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD);
			else
				MPI_Recv(bytes, 8, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD,
					 MPI_STATUS_IGNORE);
		}
		if (rank == 0)
			printf("%.4f\n", (MPI_Wtime() - begin) * 1e6 / (2 * TRIPS));
	}
	MPI_Finalize();
	return 0;
}
