/* What MPI programs do, on any number of ranks, compared with what must come out.
 *
 *	mpi LONGEST ROUNDS
 *
 * LONGEST is the longest message of the ping-pong in bytes. Rank 0 prints "all is well" at the end,
 * and the half round trip of 8 bytes as the rank's own clock sees it.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

static int ranks;

static unsigned char byte_of(int from, size_t length, size_t place)
{
	return (unsigned char)((size_t)from * 101 + length * 7 + place * 13 + (place >> 8));
}

static void fill(unsigned char *bytes, int from, size_t length)
{
	for (size_t i = 0; i < length; i++)
		bytes[i] = byte_of(from, length, i);
}

static void compare(const unsigned char *bytes, int from, size_t length)
{
	for (size_t i = 0; i < length; i++)
		need(bytes[i] == byte_of(from, length, i), "byte %zu of %zu from rank %d", i,
		     length, from);
}

/* Neighbours in pairs. */
static void pingpong(size_t longest)
{
	static const size_t lengths[] = { 0, 1, 8, 40, 41, 64, 4096, 4097, 65536, 65537, 1048576 };
	unsigned char *out = malloc(longest + 1), *in = malloc(longest + 1);
	int other = rank ^ 1;

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		int length = (int)lengths[i];
		MPI_Status status;

		if (lengths[i] > longest || other >= ranks)
			continue;
		fill(out, rank, lengths[i]);
		memset(in, 0, lengths[i]);
		if (!(rank & 1)) {
			MPI_Send(out, length, MPI_BYTE, other, length, MPI_COMM_WORLD);
			MPI_Recv(in, length, MPI_BYTE, other, length, MPI_COMM_WORLD, &status);
		} else {
			MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
			need(status.MPI_TAG == length, "tag %d", status.MPI_TAG);
			MPI_Recv(in, length, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
				 &status);
			MPI_Send(out, length, MPI_BYTE, other, length, MPI_COMM_WORLD);
		}
		need(status.MPI_SOURCE == other, "a message of rank %d", status.MPI_SOURCE);
		compare(in, other, lengths[i]);
	}
	free(out);
	free(in);
}

/* More messages than a ring has slots, received in the opposite order of their tags; one to the
 * rank itself. */
static void flood(void)
{
	enum { MESSAGES = 40, INTS = 300 };
	static int out[MESSAGES][INTS], in[MESSAGES][INTS];
	MPI_Request requests[2 * MESSAGES];
	int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks, mine = rank, own = -1;

	for (int i = 0; i < MESSAGES; i++) {
		for (int k = 0; k < INTS; k++)
			out[i][k] = rank * 1000000 + i * INTS + k;
		MPI_Isend(out[i], INTS, MPI_INT, to, i, MPI_COMM_WORLD, &requests[i]);
	}
	for (int i = 0; i < MESSAGES; i++)
		MPI_Irecv(in[MESSAGES - 1 - i], INTS, MPI_INT, from, MESSAGES - 1 - i,
			  MPI_COMM_WORLD, &requests[MESSAGES + i]);
	MPI_Waitall(2 * MESSAGES, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < MESSAGES; i++)
		for (int k = 0; k < INTS; k++)
			need(in[i][k] == from * 1000000 + i * INTS + k, "message %d", i);
	MPI_Sendrecv(&mine, 1, MPI_INT, rank, 7, &own, 1, MPI_INT, rank, 7, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	need(own == rank, "a message to itself");
}

static void collectives(void)
{
	int sum, all[64], blocks[64], answer[64];
	double column[16][16] = { { 0 } };
	MPI_Datatype type;

	need(ranks <= 64, "%d ranks", ranks);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	need(sum == ranks * (ranks - 1) / 2, "a sum of %d", sum);
	MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < ranks; i++) {
		need(all[i] == i, "allgather");
		blocks[i] = rank * 100 + i;
	}
	MPI_Alltoall(blocks, 1, MPI_INT, answer, 1, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < ranks; i++)
		need(answer[i] == i * 100 + rank, "alltoall");
	MPI_Type_vector(16, 1, 16, MPI_DOUBLE, &type);
	MPI_Type_commit(&type);
	for (int i = 0; i < 16 && rank == 0; i++)
		column[i][3] = i + 0.5;
	MPI_Bcast(&column[0][3], 1, type, 0, MPI_COMM_WORLD);
	for (int i = 0; i < 16; i++)
		need(column[i][3] > i + 0.4 && column[i][3] < i + 0.6, "a column of a broadcast");
	MPI_Type_free(&type);
}

/* Blocks that are offered and fetched, from all ranks to all at once. */
static void all_to_all(void)
{
	enum { BYTES = 20000 };
	unsigned char *out = malloc((size_t)ranks * BYTES), *in = malloc((size_t)ranks * BYTES);
	static long sums[3000], mine[3000];

	for (int i = 0; i < ranks; i++)
		fill(out + (size_t)i * BYTES, rank * 16 + i, BYTES);
	memset(in, 0, (size_t)ranks * BYTES);
	MPI_Alltoall(out, BYTES, MPI_BYTE, in, BYTES, MPI_BYTE, MPI_COMM_WORLD);
	for (int i = 0; i < ranks; i++)
		compare(in + (size_t)i * BYTES, i * 16 + rank, BYTES);
	for (int i = 0; i < 3000; i++)
		mine[i] = (rank + 1L) * (i + 1);
	MPI_Allreduce(mine, sums, 3000, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < 3000; i++)
		need(sums[i] == ranks * (ranks + 1L) / 2 * (i + 1), "sum %d: %ld", i, sums[i]);
	for (int i = 0; i < 5; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	free(out);
	free(in);
}

static void one_sided(void)
{
	long *memory = calloc(1024, sizeof(*memory)), got[512], put[512], one = 1, former;
	int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
	MPI_Win window;

	MPI_Win_create(memory, 1024 * sizeof(*memory), sizeof(*memory), MPI_INFO_NULL,
		       MPI_COMM_WORLD, &window);
	for (int i = 0; i < 512; i++)
		put[i] = rank * 1000 + i;
	MPI_Win_fence(0, window);
	MPI_Put(put, 512, MPI_LONG, to, 100, 512, MPI_LONG, window);
	MPI_Win_fence(0, window);
	for (int i = 0; i < 512; i++)
		need(memory[100 + i] == from * 1000 + i, "place %d of a put: %ld", i,
		     memory[100 + i]);
	MPI_Get(got, 512, MPI_LONG, to, 100, 512, MPI_LONG, window);
	MPI_Win_fence(0, window);
	for (int i = 0; i < 512; i++)
		need(got[i] == put[i], "place %d of a get", i);
	MPI_Win_lock_all(0, window);
	for (int i = 0; i < 5; i++) {
		MPI_Fetch_and_op(&one, &former, MPI_LONG, 0, 0, MPI_SUM, window);
		MPI_Win_flush(0, window);
	}
	MPI_Win_unlock_all(window);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
	MPI_Get(got, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window);
	MPI_Win_unlock(0, window);
	need(got[0] == 5L * ranks, "a count of %ld", got[0]);
	MPI_Win_free(&window);
	free(memory);
}

int main(int argc, char **argv)
{
	int one_sided_too = argc > 2 && atoi(argv[2]);

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	pingpong(argc > 1 ? strtoul(argv[1], NULL, 0) : 4096);
	flood();
	collectives();
	all_to_all();
	if (one_sided_too)
		one_sided();
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	if (rank == 0)
		printf("all is well\n");
	return 0;
}
