/* Puts and gets between two ranks with random derived types on either side.
 *
 *	types SEED COUNT
 *
 * What must come out is what MPI_Pack() and MPI_Unpack() make of the same types. At the end rank 0
 * prints how many nanoseconds of simulated time a put of 4,096 elements with a vector type took.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

#define BYTES	 60000
#define ELEMENTS 4096

static uint64_t state;

/* xorshift64*, Vigna 2016. Both ranks draw the same numbers. */
static int draw(int below)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (int)((state * UINT64_C(2685821657736338717) >> 32) % (uint64_t)below);
}

/* A type of exactly 8 × `blocks` bytes; blocks is a multiple of 4. Parts of it do not overlap. */
static MPI_Datatype some_type(int blocks)
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
	switch (draw(9)) {
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
		/* Blocks of two lengths go by the engine. */
		lengths[0] = 2;
		for (int i = 1; i < blocks; i++)
			places[i]++;
		MPI_Type_indexed(blocks - 1, lengths, places, MPI_DOUBLE, &type);
		break;
	default:
		kinds[0] = MPI_INT;
		kinds[1] = MPI_INT;
		lengths[0] = lengths[1] = blocks;
		distances[0] = 0;
		distances[1] = 4 * blocks + 20;
		MPI_Type_create_struct(2, lengths, distances, kinds, &type);
	}
	MPI_Type_commit(&type);
	return type;
}

static void transfer(uint8_t *memory, uint8_t *shadow, MPI_Win window)
{
	static uint8_t origin[BYTES], expected[BYTES], packed[BYTES];
	int blocks = 4 * (1 + draw(draw(2) ? 4 : 150)), place = 8 * draw(100), kind = draw(3);
	MPI_Datatype ours = some_type(blocks), theirs = some_type(blocks);
	int at = 0, bytes = 8 * blocks;
	MPI_Request request;

	for (int i = 0; i < BYTES; i++)
		origin[i] = expected[i] = (uint8_t)(draw(256) + rank);
	if (kind < 2) {
		/* Rank 0 puts to rank 1, which knows what rank 0 has. */
		for (int i = 0; i < BYTES; i++)
			origin[i] = (uint8_t)(expected[i] - rank);
		MPI_Pack(origin, 1, ours, packed, BYTES, &at, MPI_COMM_WORLD);
		need(at == bytes, "a type of %d bytes, not %d", at, bytes);
		at = 0;
		MPI_Unpack(packed, bytes, &at, shadow + place, 1, theirs, MPI_COMM_WORLD);
		MPI_Win_lock_all(0, window);
		if (rank == 0 && kind == 0) {
			MPI_Put(origin, 1, ours, 1, place, 1, theirs, window);
			MPI_Win_flush(1, window);
		} else if (rank == 0) {
			MPI_Rput(origin, 1, ours, 1, place, 1, theirs, window, &request);
			MPI_Wait(&request, MPI_STATUS_IGNORE);
		}
		MPI_Win_unlock_all(window);
	} else {
		MPI_Pack(shadow + place, 1, theirs, packed, BYTES, &at, MPI_COMM_WORLD);
		at = 0;
		MPI_Unpack(packed, bytes, &at, expected, 1, ours, MPI_COMM_WORLD);
		MPI_Win_fence(0, window);
		if (rank == 0)
			MPI_Get(origin, 1, ours, 1, place, 1, theirs, window);
		MPI_Win_fence(0, window);
		need(rank || !memcmp(origin, expected, BYTES), "a get of %d bytes", bytes);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	need(!rank || !memcmp(memory, shadow, BYTES), "what was put: %d bytes", bytes);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Type_free(&ours);
	MPI_Type_free(&theirs);
}

static void timed(uint8_t *memory, MPI_Win window)
{
	MPI_Datatype type;
	double begin;

	MPI_Type_vector(ELEMENTS, 1, 2, MPI_INT, &type);
	MPI_Type_commit(&type);
	MPI_Win_lock_all(0, window);
	for (int i = 0; i < 2 && rank == 0; i++) {
		begin = MPI_Wtime();
		MPI_Put(memory, ELEMENTS, MPI_INT, 1, 0, 1, type, window);
		MPI_Win_flush(1, window);
		if (i)
			printf("%.0f\n", (MPI_Wtime() - begin) * 1e9);
	}
	MPI_Win_unlock_all(window);
	MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
	static uint8_t memory[BYTES], shadow[BYTES];
	MPI_Win window;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	state = strtoull(argv[1], NULL, 0) * 2 + 1;
	MPI_Win_create(memory, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	for (int i = 0; i < atoi(argv[2]); i++)
		transfer(memory, shadow, window);
	timed(memory, window);
	MPI_Win_free(&window);
	MPI_Finalize();
	return 0;
}
