/* Transpose a matrix that is spread over PEs by rows: each PE puts its columns where they belong,
 * each column by one strided command.
 *
 *	dibber run -n 2 build/shmem/shmem_transpose [SIDE]
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <dibber_shmem.h>
#include <stdio.h>
#include <stdlib.h>

static double value(size_t row, size_t column)
{
	return (double)(row * 10000 + column);
}

int main(int argc, char **argv)
{
	size_t side = argc > 1 ? strtoul(argv[1], NULL, 10) : 64, rows, own, wrong = 0;
	double *matrix, *transposed;

	shmem_init();
	rows = side / (size_t)shmem_n_pes();
	if (!rows || side % (size_t)shmem_n_pes() || side > 1000) {
		fprintf(stderr, "the side is no multiple of %d up to 1000\n", shmem_n_pes());
		shmem_global_exit(2);
	}
	own = rows * (size_t)shmem_my_pe();
	matrix = shmem_malloc(rows * side * sizeof(double));
	transposed = shmem_malloc(rows * side * sizeof(double));
	if (!matrix || !transposed) {
		fprintf(stderr, "the symmetric heap is too small\n");
		shmem_global_exit(2);
	}
	for (size_t row = 0; row < rows; row++)
		for (size_t column = 0; column < side; column++)
			matrix[row * side + column] = value(own + row, column);
	for (size_t column = 0; column < side; column++)
		/* From stride `side` here to stride 1 there. */
		shmem_double_iput(transposed + column % rows * side + own, matrix + column, 1,
				  (ptrdiff_t)side, rows, (int)(column / rows));
	shmem_barrier_all();
	for (size_t row = 0; row < rows; row++)
		for (size_t column = 0; column < side; column++)
			wrong += transposed[row * side + column] != value(column, own + row);
	printf("PE %d of %d: %zu values are wrong\n", shmem_my_pe(), shmem_n_pes(), wrong);
	shmem_finalize();
	return wrong != 0;
}
