/* Random derived types, the same on all ranks. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef RANDOM_TYPE_H
#define RANDOM_TYPE_H

#include <mpi.h>
#include <stdint.h>

#include "ranks.h"

#define BYTES 80000 /* that a type of at most 1,200 × 8 bytes reaches over */

static uint64_t state;

/* xorshift64*, Vigna 2016. Both ranks draw the same numbers. */
static int draw(int below)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (int)((state * UINT64_C(2685821657736338717) >> 32) % (uint64_t)below);
}

/* Kinds of types: those that one command puts and some others; and all. */
#define SIMPLE 9
#define ALL    12

/* A type of exactly 8 × `blocks` bytes; blocks is a multiple of 4. Parts of it do not overlap. */
static MPI_Datatype some_type(int blocks, int kinds_of_types)
{
	static int lengths[BYTES / 8], places[BYTES / 8];
	static MPI_Aint distances[BYTES / 8];
	int step = 1 + draw(3), at = 0;
	MPI_Datatype type, inner, kinds[2];

	for (int i = 0; i < blocks; i++) {
		lengths[i] = 1;
		places[i] = at;
		distances[i] = 8 * at + draw(2) * 4;
		at += 2 + draw(3);
	}
	switch (draw(kinds_of_types)) {
	case 0:
		MPI_Type_contiguous(8 * blocks, MPI_BYTE, &type);
		break;
	case 1:
		MPI_Type_vector(blocks / 2, 2, 2 + step, MPI_DOUBLE, &type);
		break;
	case 2:
		MPI_Type_create_hvector(blocks, 2, 8 + 3 * step, MPI_INT, &type);
		break;
	case 3: {
		int sizes[3] = { 3 + blocks / 4, 4 + step, 3 };
		int inside[3] = { blocks / 4, 2, 2 }, starts[3] = { 2, step, 1 };

		MPI_Type_create_subarray(3, sizes, inside, starts,
					 draw(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, MPI_DOUBLE,
					 &type);
		break;
	}
	case 4:
		MPI_Type_indexed(blocks, lengths, places, MPI_DOUBLE, &type);
		break;
	case 5:
		MPI_Type_create_hindexed_block(blocks, 1, distances, MPI_DOUBLE, &type);
		break;
	case 6:
		/* A column of pairs: a vector of resized vectors. */
		MPI_Type_vector(2, 1, 2, MPI_DOUBLE, &inner);
		MPI_Type_create_resized(inner, 0, 40, &kinds[0]);
		MPI_Type_vector(blocks / 2, 1, 2, kinds[0], &type);
		MPI_Type_free(&kinds[0]);
		MPI_Type_free(&inner);
		break;
	case 7:
		/* Blocks of two lengths: a put goes by the engine. */
		lengths[0] = 2;
		for (int i = 1; i < blocks; i++)
			places[i]++;
		MPI_Type_indexed(blocks - 1, lengths, places, MPI_DOUBLE, &type);
		break;
	case 8:
		kinds[0] = MPI_INT;
		kinds[1] = MPI_INT;
		lengths[0] = lengths[1] = blocks;
		distances[0] = 0;
		distances[1] = 4 * blocks + 20;
		MPI_Type_create_struct(2, lengths, distances, kinds, &type);
		break;
	case 9: {
		/* Four dimensions: more levels than a walk has. */
		int sizes[4] = { 3, 4 + step, 3, blocks / 4 + 1 };
		int inside[4] = { 2, 2, 2, blocks / 4 }, starts[4] = { 1, step, 1, 0 };

		MPI_Type_create_subarray(4, sizes, inside, starts,
					 draw(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, MPI_INT, &type);
		break;
	}
	case 10:
		/* Members of different kinds, each with gaps. */
		MPI_Type_vector(blocks / 2, 1, 2, MPI_DOUBLE, &kinds[0]);
		MPI_Type_vector(blocks / 2, 2, 3, MPI_INT, &kinds[1]);
		lengths[0] = lengths[1] = 1;
		distances[0] = 0;
		distances[1] = 8 * blocks + 8;
		MPI_Type_create_struct(2, lengths, distances, kinds, &type);
		MPI_Type_free(&kinds[0]);
		MPI_Type_free(&kinds[1]);
		break;
	default: {
		/* Many small structs: an int, and four bytes after a gap. */
		int both[2] = { 1, 4 };
		MPI_Aint inside[2] = { 0, 4 + 4 * step };
		MPI_Datatype members[2] = { MPI_INT, MPI_BYTE };

		MPI_Type_create_struct(2, both, inside, members, &kinds[0]);
		MPI_Type_create_resized(kinds[0], 0, 12 + 4 * step, &kinds[1]);
		MPI_Type_contiguous(blocks, kinds[1], &type);
		MPI_Type_free(&kinds[0]);
		MPI_Type_free(&kinds[1]);
	}
	}
	MPI_Type_commit(&type);
	return type;
}

#endif
