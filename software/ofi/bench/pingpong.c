/* Ping-pong in two semantics (Kurmann and Stricker, EMMSEC 1998), and by distance. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>

#include "bench.h"

#define ROUNDS	 2 /* of a long message */
#define ROUNDS_8 10
#define SHORT	 4096

static int rounds_of(size_t length)
{
	return length <= SHORT ? ROUNDS_8 : ROUNDS;
}

/* Half a round trip in seconds between rank 0 and another one. The receive is posted before the
 * message can come, so no byte need be copied. */
static double half_round_trip(size_t length, int other)
{
	uint8_t *out = memory(length), *in = memory(length);
	int partner = rank ? 0 : other, rounds = rounds_of(length);
	double begin = 0, taken = 0;

	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0 || rank == other) {
		fill(out, length, rank, (unsigned int)length);
		for (int i = -1; i < rounds; i++) {
			MPI_Request request;

			/* The first round warms up. */
			if (i == 0)
				begin = MPI_Wtime();
			MPI_Irecv(in, (int)length, MPI_BYTE, partner, 0, MPI_COMM_WORLD, &request);
			if (rank == 0)
				MPI_Send(out, (int)length, MPI_BYTE, partner, 0, MPI_COMM_WORLD);
			MPI_Wait(&request, MPI_STATUS_IGNORE);
			if (rank)
				MPI_Send(out, (int)length, MPI_BYTE, partner, 0, MPI_COMM_WORLD);
		}
		taken = (MPI_Wtime() - begin) / rounds / 2;
		compare(in, length, partner, (unsigned int)length);
	}
	free(out);
	free(in);
	return taken;
}

void restricted(const struct words *sizes)
{
	for (unsigned int i = 0; i < sizes->count; i++) {
		double seconds = half_round_trip(sizes->value[i], 1);

		result("half-round-trip", (double)sizes->value[i], seconds * 1e6);
		result("restricted", (double)sizes->value[i],
		       (double)sizes->value[i] / seconds * 1e-6);
	}
}

/* Both send first, and receive when the message is there: it met no receive. A barrier stands
 * between two rounds. */
void postal(const struct words *sizes)
{
	for (unsigned int i = 0; i < sizes->count; i++) {
		size_t length = sizes->value[i];
		uint8_t *out = memory(length), *in = memory(length);
		int rounds = rounds_of(length), partner = rank ^ 1;
		double taken = 0;

		fill(out, length, rank, (unsigned int)length + 1);
		for (int k = -1; k < rounds; k++) {
			MPI_Request request;
			double begin;

			MPI_Barrier(MPI_COMM_WORLD);
			if (rank > 1)
				continue;
			begin = MPI_Wtime();
			MPI_Isend(out, (int)length, MPI_BYTE, partner, 0, MPI_COMM_WORLD, &request);
			MPI_Probe(partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Recv(in, (int)length, MPI_BYTE, partner, 0, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			MPI_Wait(&request, MPI_STATUS_IGNORE);
			if (k >= 0)
				taken += MPI_Wtime() - begin;
		}
		if (rank <= 1)
			compare(in, length, partner, (unsigned int)length + 1);
		result("postal", (double)length, (double)length * rounds / taken * 1e-6);
		free(out);
		free(in);
	}
}

/* The numbers are switches on the way between ranks 0 and 1, of which the caller knows. */
void distance(const struct words *hops)
{
	result("distance", (double)hops->value[0], half_round_trip(8, 1) * 1e6);
}
