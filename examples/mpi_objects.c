/* Migration of fine-grain objects: some records of each rank move to the next rank, from anywhere
 * here to anywhere there, by one MPI_Put with two indexed types.
 *
 *	dibber mpirun -n 2 --strided build/ofi/mpi_objects [BYTES OBJECTS TIMES]
 *
 * As in a simulation of particles that moves those which left its part of space. The next rank
 * tells which of its places are free. With --strided the put is one command of the card with an
 * index list on each side; without it the engine packs, or makes a put for each object. Rank 0
 * prints the simulated microseconds of a migration; the engine's packing takes no simulated time.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 4096 /* places for objects on each rank, for those that are there and that come */
#define MOST_BYTES 65536 /* of an object */
#define FREE	   0xee	 /* of each byte of a free place */

static uint64_t state;

/* xorshift64*, Vigna 2016. */
static int draw(int below)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (int)((state * UINT64_C(2685821657736338717) >> 32) % (uint64_t)below);
}

static void *memory(size_t bytes)
{
	void *place = malloc(bytes);

	if (!place) {
		fprintf(stderr, "no memory for the objects\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
		exit(1);
	}
	return place;
}

/* The first `count` of SLOTS places in a random order. */
static int *choose(uint64_t seed)
{
	int *places = memory(SLOTS * sizeof(*places));

	state = seed * 2 + 1;
	for (int i = 0; i < SLOTS; i++) {
		int other = draw(i + 1);

		places[i] = places[other];
		places[other] = i;
	}
	return places;
}

static uint8_t byte_of(int rank, int object, int place)
{
	return (uint8_t)(rank * 83 + object * 31 + place * 7 + (object >> 8));
}

static MPI_Datatype type_of(int count, int bytes, const int *places)
{
	MPI_Datatype object, type;

	MPI_Type_contiguous(bytes, MPI_BYTE, &object);
	MPI_Type_create_indexed_block(count, 1, places, object, &type);
	MPI_Type_commit(&type);
	MPI_Type_free(&object);
	return type;
}

int main(int argc, char **argv)
{
	int rank, ranks, bytes, count, times, next, last, wrong = 0, all = 0;
	int *leave, *land, *there;
	uint8_t *from, *to;
	MPI_Datatype out, in;
	double begin = 0;
	MPI_Win window;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	bytes = argc > 1 ? atoi(argv[1]) : 32;
	count = argc > 2 ? atoi(argv[2]) : 1024;
	times = argc > 3 ? atoi(argv[3]) : 2;
	if (bytes < 1 || bytes > MOST_BYTES || count < 1 || count > SLOTS || times < 1) {
		if (rank == 0)
			fprintf(stderr,
				"mpi_objects [BYTES OBJECTS TIMES]: 1 to %d bytes, 1 to %d objects, "
				"and once at least\n",
				MOST_BYTES, SLOTS);
		MPI_Finalize();
		return 2;
	}
	next = (rank + 1) % ranks;
	last = (rank + ranks - 1) % ranks;
	from = memory((size_t)SLOTS * (size_t)bytes);
	to = memory((size_t)SLOTS * (size_t)bytes);
	there = memory((size_t)count * sizeof(*there));
	memset(to, FREE, (size_t)SLOTS * (size_t)bytes);
	for (int i = 0; i < SLOTS * bytes; i++)
		from[i] = byte_of(rank, i / bytes, i % bytes);
	leave = choose((uint64_t)rank);
	land = choose((uint64_t)rank + 1000);
	/* The sender of this rank's objects learns which places are free. */
	MPI_Sendrecv(land, count, MPI_INT, last, 0, there, count, MPI_INT, next, 0, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	out = type_of(count, bytes, leave);
	in = type_of(count, bytes, there);
	MPI_Win_create(to, (MPI_Aint)SLOTS * bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	MPI_Win_lock_all(0, window);
	/* The first migration registers the memory and puts the list. */
	for (int i = -1; i < times; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		if (i == 0)
			begin = MPI_Wtime();
		MPI_Put(from, 1, out, next, 0, 1, in, window);
		MPI_Win_flush(next, window);
	}
	begin = MPI_Wtime() - begin;
	MPI_Win_unlock_all(window);
	MPI_Barrier(MPI_COMM_WORLD);
	/* What the last rank has sent lies in the places, and nothing else has changed. */
	free(leave);
	leave = choose((uint64_t)last);
	for (int i = 0; i < SLOTS; i++) {
		int differs = 0;

		for (int k = 0; k < bytes; k++)
			differs |= to[(size_t)land[i] * (size_t)bytes + (size_t)k] !=
				   (i < count ? byte_of(last, leave[i], k) : FREE);
		wrong += differs;
	}
	MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d bytes: %.1f us a migration, %d objects wrong\n", bytes,
		       begin / times * 1e6, all);
	MPI_Win_free(&window);
	MPI_Type_free(&out);
	MPI_Type_free(&in);
	free(from);
	free(to);
	free(leave);
	free(land);
	free(there);
	MPI_Finalize();
	return rank == 0 && all;
}
