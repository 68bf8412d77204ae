/* Heat in a plate: each rank has some columns of a grid and gets the column beside them from its
 * neighbours in each step. A column is a derived type, and no step packs it.
 *
 *	dibber mpirun -n 2 --strided build/ofi/heat [ROWS COLUMNS STEPS]
 *
 * With --strided the card moves a column of more than 512 rows from memory to memory. Without it
 * the engine packs and unpacks. Rank 0 prints the simulated microseconds of an exchange; the
 * engine's packing takes no simulated time. Each rank compares its columns with a computation of
 * the whole plate by itself.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define FACTOR 0.125 /* of the difference to the neighbours that a cell takes on in a step */

/* A plate has a border of one cell, which keeps its heat. */
struct plate {
	int rows, columns; /* without the border */
	double *now, *next;
};

static double *cell(const struct plate *plate, double *cells, int row, int column)
{
	return cells + (size_t)row * (size_t)(plate->columns + 2) + column;
}

static double first_heat(int row, int column)
{
	return (row * 7 + column * 13) % 101;
}

/* `left` is the place of the plate's border in the whole one. */
static struct plate new_plate(int rows, int columns, int left)
{
	struct plate plate = { rows, columns, NULL, NULL };
	size_t bytes = (size_t)(rows + 2) * (size_t)(columns + 2) * sizeof(double);

	plate.now = malloc(bytes);
	plate.next = malloc(bytes);
	if (!plate.now || !plate.next) {
		fprintf(stderr, "no memory for the plate\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
		exit(1);
	}
	for (int row = 0; row < rows + 2; row++)
		for (int column = 0; column < columns + 2; column++)
			*cell(&plate, plate.now, row, column) =
				*cell(&plate, plate.next, row, column) =
					first_heat(row, left + column);
	return plate;
}

static void step(struct plate *plate)
{
	double *former = plate->now;

	for (int row = 1; row <= plate->rows; row++)
		for (int column = 1; column <= plate->columns; column++) {
			const double *c = cell(plate, plate->now, row, column);
			int down = plate->columns + 2;

			*cell(plate, plate->next, row, column) =
				*c + FACTOR * (c[-1] + c[1] + c[-down] + c[down] - 4 * *c);
		}
	plate->now = plate->next;
	plate->next = former;
}

/* The outermost own columns go to the neighbours, whose columns come beside them. */
static void exchange(const struct plate *plate, MPI_Datatype column, int left, int right)
{
	MPI_Sendrecv(cell(plate, plate->now, 1, 1), 1, column, left, 0,
		     cell(plate, plate->now, 1, plate->columns + 1), 1, column, right, 0,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Sendrecv(cell(plate, plate->now, 1, plate->columns), 1, column, right, 0,
		     cell(plate, plate->now, 1, 0), 1, column, left, 0, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
}

static int number(int argc, char **argv, int place, int otherwise)
{
	return argc > place ? atoi(argv[place]) : otherwise;
}

int main(int argc, char **argv)
{
	int rank, ranks, rows, columns, steps, first, wrong = 0, all = 0;
	struct plate plate, whole;
	MPI_Datatype column;
	double taken = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	rows = number(argc, argv, 1, 1024);
	columns = number(argc, argv, 2, 8);
	steps = number(argc, argv, 3, 4);
	if (rows < 1 || columns < 1 || steps < 1) {
		if (rank == 0)
			fprintf(stderr, "heat [ROWS COLUMNS STEPS]: numbers above 0\n");
		MPI_Finalize();
		return 2;
	}
	first = rank * columns;
	plate = new_plate(rows, columns, first);
	whole = new_plate(rows, ranks * columns, 0);
	MPI_Type_vector(rows, 1, columns + 2, MPI_DOUBLE, &column);
	MPI_Type_commit(&column);
	for (int i = 0; i < steps; i++) {
		double begin = MPI_Wtime();

		exchange(&plate, column, rank ? rank - 1 : MPI_PROC_NULL,
			 rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL);
		/* The first exchange registers the memory. */
		taken += i || steps == 1 ? MPI_Wtime() - begin : 0;
		step(&plate);
		step(&whole);
	}
	for (int row = 1; row <= rows; row++)
		for (int c = 1; c <= columns; c++)
			wrong += *cell(&plate, plate.now, row, c) !=
				 *cell(&whole, whole.now, row, first + c);
	MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d rows: %.1f us an exchange, %d cells wrong\n", rows,
		       taken / (steps > 1 ? steps - 1 : 1) * 1e6, all);
	MPI_Type_free(&column);
	free(plate.now);
	free(plate.next);
	free(whole.now);
	free(whole.next);
	MPI_Finalize();
	return rank == 0 && all;
}
