/* The two halves of a matrix are transposed: each node puts its blocks into the other's columns. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "party.h"

#define SIZE 128 /* rows and columns; each node has half of the rows */
#define HALF (SIZE / 2)

typedef double row[SIZE];

/* Element `column` of row `number` of the whole matrix. */
static double element(unsigned int number, unsigned int column)
{
	return number * SIZE + column;
}

int main(int argc, char **argv)
{
	struct dib_delivery to = { .endpoint = 1, .flags = DIBBER_FLAG_NOTICE, .notice = 1 };
	struct dib_walk source = { .block = HALF * sizeof(double),
				   .levels = 1,
				   .count = { HALF },
				   .stride = { sizeof(row) } };
	struct dib_walk target = { .block = sizeof(double),
				   .levels = 2,
				   .count = { HALF, HALF },
				   .stride = { sizeof(row), sizeof(double) } };
	struct dib_region *from, *into;
	unsigned int first;
	struct party p;
	row *mine, *turned;

	party_open(&p, argc, argv);
	mine = party_memory(&p, HALF * sizeof(row), &from);
	turned = party_memory(&p, HALF * sizeof(row), &into);
	first = p.node * HALF;
	for (unsigned int i = 0; i < HALF; i++)
		for (unsigned int j = 0; j < SIZE; j++)
			mine[i][j] = element(first + i, j);
	/* My part of the other's rows: row r here becomes column r there. The source is
	 * contiguous in a row; the target steps by a row for each element, and by an element for
	 * each row. */
	to.node = (uint16_t)(1 - p.node);
	source.key = dib_key(from);
	source.offset = (HALF - first) * sizeof(double);
	target.key = key_of_other(&p, into);
	target.offset = first * sizeof(double);
	check(dib_put_strided(p.endpoint, &to, &source, &target), "put");
	for (unsigned int i = 0; i < HALF; i++) /* the other block stays here */
		for (unsigned int j = 0; j < HALF; j++)
			turned[j][first + i] = mine[i][first + j];
	await_notice(&p);
	for (unsigned int i = 0; i < HALF; i++)
		for (unsigned int j = 0; j < SIZE; j++)
			if (turned[i][j] != element(j, first + i))
				return fprintf(stderr, "element %u of row %u is wrong\n", j, i), 1;
	printf("node %u has its half of the transposed matrix\n", p.node);
	party_close(&p);
	return 0;
}
