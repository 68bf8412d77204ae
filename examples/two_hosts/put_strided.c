/* Node 1 puts a column of its matrix into a column of node 0's matrix, by one command. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "party.h"

#define ROWS	64
#define COLUMNS 32

typedef double row[COLUMNS];

/* The walk along a column: 64 blocks of 8 bytes, a row apart. */
static struct dib_walk column_of(uint32_t key, uint32_t column)
{
	return (struct dib_walk){ .key = key,
				  .offset = column * sizeof(double),
				  .block = sizeof(double),
				  .levels = 1,
				  .count = { ROWS },
				  .stride = { sizeof(row) } };
}

int main(int argc, char **argv)
{
	struct dib_delivery to = { .endpoint = 1, .flags = DIBBER_FLAG_NOTICE, .notice = 7 };
	struct dib_region *region;
	struct party p;
	row *matrix;
	uint32_t key;

	party_open(&p, argc, argv);
	matrix = party_memory(&p, ROWS * sizeof(row), &region);
	key = key_of_other(&p, region);
	if (p.node == 1) {
		struct dib_walk source = column_of(dib_key(region), 3), target = column_of(key, 5);

		for (int i = 0; i < ROWS; i++)
			matrix[i][3] = i;
		check(dib_put_strided(p.endpoint, &to, &source, &target), "put");
		printf("column 3 is on its way\n");
	} else {
		uint32_t notice = await_notice(&p);

		printf("notice %u: column 5 ends with %g\n", notice, matrix[ROWS - 1][5]);
		for (int i = 0; i < ROWS; i++)
			if (matrix[i][5] != i || matrix[i][4] != 0 || matrix[i][6] != 0)
				return fprintf(stderr, "row %d is wrong\n", i), 1;
	}
	party_close(&p);
	return 0;
}
