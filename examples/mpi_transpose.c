/* Transpose of a matrix that is spread over ranks: each has some rows before and after.
 *
 *	dibber mpirun -n 2 --strided build/ofi/mpi_transpose [ROWS TIMES]
 *
 * One MPI_Alltoallw moves all blocks. A block leaves column by column and lands row by row, by two
 * derived types, so nobody packs it. With --strided the card moves blocks of more than 4,096 bytes
 * from memory to memory; without it the engine packs and unpacks. Rank 0 prints the simulated
 * microseconds of a transpose; the engine's packing takes no simulated time.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define ELEMENT ((int)sizeof(double))

static double value(int row, int column)
{
	return row * 4096.0 + column;
}

static void *memory(size_t bytes)
{
	void *place = malloc(bytes);

	if (!place) {
		fprintf(stderr, "no memory for the matrix\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
		exit(1);
	}
	return place;
}

/* A square block of a matrix with `rows` elements in a row: by columns, or by rows. */
static MPI_Datatype by_columns(int side, int rows)
{
	MPI_Datatype column, block;

	MPI_Type_vector(side, 1, rows, MPI_DOUBLE, &column);
	MPI_Type_create_hvector(side, 1, ELEMENT, column, &block);
	MPI_Type_free(&column);
	MPI_Type_commit(&block);
	return block;
}

static MPI_Datatype by_rows(int side, int rows)
{
	MPI_Datatype block;

	MPI_Type_vector(side, side, rows, MPI_DOUBLE, &block);
	MPI_Type_commit(&block);
	return block;
}

/* Simulated seconds of a transpose. The first one registers the memory. */
static double transpose(const double *from, double *to, int side, int rows, int times)
{
	int ranks = rows / side;
	MPI_Datatype out = by_columns(side, rows), in = by_rows(side, rows);
	MPI_Datatype *outs = memory(2 * (size_t)ranks * sizeof(*outs)), *ins = outs + ranks;
	int *counts = memory(2 * (size_t)ranks * sizeof(*counts)), *places = counts + ranks;
	double begin = 0;

	for (int i = 0; i < ranks; i++) {
		counts[i] = 1;
		places[i] = i * side * ELEMENT;
		outs[i] = out;
		ins[i] = in;
	}
	for (int i = -1; i < times; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		if (i == 0)
			begin = MPI_Wtime();
		MPI_Alltoallw(from, counts, places, outs, to, counts, places, ins, MPI_COMM_WORLD);
	}
	begin = MPI_Wtime() - begin;
	MPI_Type_free(&out);
	MPI_Type_free(&in);
	free(outs);
	free(counts);
	return begin / times;
}

int main(int argc, char **argv)
{
	int rank, ranks, rows, times, side, wrong = 0, all = 0;
	double *from, *to, taken;
	size_t bytes;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	rows = argc > 1 ? atoi(argv[1]) : 128;
	times = argc > 2 ? atoi(argv[2]) : 2;
	if (rows < ranks || rows % ranks || rows > 4096 || times < 1) {
		if (rank == 0)
			fprintf(stderr,
				"mpi_transpose [ROWS TIMES]: at most 4096 rows, a multiple of "
				"the ranks\n");
		MPI_Finalize();
		return 2;
	}
	side = rows / ranks;
	bytes = (size_t)side * (size_t)rows * sizeof(double);
	from = memory(bytes);
	to = memory(bytes);
	for (int i = 0; i < side * rows; i++) {
		from[i] = value(rank * side + i / rows, i % rows);
		to[i] = -1;
	}
	taken = transpose(from, to, side, rows, times);
	for (int i = 0; i < side * rows; i++)
		wrong += to[i] != value(i % rows, rank * side + i / rows);
	MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d rows: %.1f us a transpose, %d elements wrong\n", rows, taken * 1e6, all);
	free(from);
	free(to);
	MPI_Finalize();
	return rank == 0 && all;
}
