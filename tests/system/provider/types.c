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

#include "random_type.h"

#define ELEMENTS 4096

static void transfer(uint8_t *memory, uint8_t *shadow, MPI_Win window)
{
	static uint8_t origin[BYTES], expected[BYTES], packed[BYTES];
	int blocks = 4 * (1 + draw(draw(2) ? 4 : 150)), place = 8 * draw(100), kind = draw(3);
	MPI_Datatype ours = some_type(blocks, SIMPLE), theirs = some_type(blocks, SIMPLE);
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
