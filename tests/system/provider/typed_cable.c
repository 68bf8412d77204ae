/* Messages of a column to and fro until a simulated time, while a cable may be away.
 *
 *	typed_cable MICROSECONDS
 *
 * Rank 0 prints the longest time of a round in microseconds. A call that fails ends the program
 * with 3, and a wrong byte with 1.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define ROWS 1500

static double matrix[ROWS][2];

static void try(int error)
{
	if (!error)
		return;
	fprintf(stderr, "message failed\n");
	_Exit(3);
}

int main(int argc, char **argv)
{
	double until, longest = 0;
	MPI_Datatype column;
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Type_vector(ROWS, 1, 2, MPI_DOUBLE, &column);
	MPI_Type_commit(&column);
	until = atof(argv[1]) * 1e-6;
	for (int round = 0, go = 1; go; round++) {
		double begin = MPI_Wtime(), taken;

		go = begin < until;
		for (int i = 0; i < ROWS; i++)
			matrix[i][0] = rank ? 0 : go ? round + i : -1;
		if (rank == 0)
			try(MPI_Send(matrix, 1, column, 1, 0, MPI_COMM_WORLD));
		else
			try(MPI_Recv(matrix, 1, column, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		go = matrix[0][0] >= 0;
		for (int i = 0; i < ROWS && go; i++)
			if (matrix[i][0] != round + i) {
				fprintf(stderr, "rank %d: row %d of round %d\n", rank, i, round);
				_Exit(1);
			}
		taken = MPI_Wtime() - begin;
		longest = taken > longest ? taken : longest;
	}
	MPI_Finalize();
	if (rank == 0)
		printf("%.0f\n", longest * 1e6);
	return 0;
}
