/* Ping-pong of messages with derived types, in the geometry of DDTBench (Schneider, Gerstenberger,
 * Hoefler, EuroMPI 2012): what applications send. The programs are our own.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define ROUNDS 2

/* A side of a message: one element of the type, in `span` bytes of memory. */
struct side {
	MPI_Datatype type;
	size_t span;
};

static struct side of(MPI_Datatype type)
{
	MPI_Aint low, extent;

	MPI_Type_commit(&type);
	MPI_Type_get_true_extent(type, &low, &extent);
	return (struct side){ type, (size_t)(low + extent) };
}

static MPI_Datatype rows(int count, MPI_Aint stride, MPI_Datatype row)
{
	MPI_Datatype type;

	MPI_Type_create_hvector(count, 1, stride, row, &type);
	MPI_Type_free(&row);
	return type;
}

static MPI_Datatype run(int bytes)
{
	MPI_Datatype type;

	MPI_Type_contiguous(bytes, MPI_BYTE, &type);
	return type;
}

/* Type of some members, which are freed. */
static MPI_Datatype structure(int count, const MPI_Aint *places, MPI_Datatype *members)
{
	int lengths[16];
	MPI_Datatype type;

	for (int i = 0; i < count; i++)
		lengths[i] = 1;
	MPI_Type_create_struct(count, lengths, places, members, &type);
	for (int i = 0; i < count; i++)
		MPI_Type_free(&members[i]);
	return type;
}

static void milc(struct side *out, struct side *in)
{
	*out = of(rows(2, 786432, rows(16, 49152, run(3072))));
	*in = of(rows(2, 786432, rows(16, 49152, run(3072))));
}

static void lu_y(struct side *out, struct side *in)
{
	*out = of(rows(1020, 1022 * 40, run(40)));
	*in = of(rows(1020, 1022 * 40, run(40)));
}

static void mg_x(struct side *out, struct side *in)
{
	*out = of(rows(64, 130 * 66 * 8, rows(64, 130 * 8, run(8))));
	*in = of(rows(64, 130 * 66 * 8, rows(64, 130 * 8, run(8))));
}

static void mg_y(struct side *out, struct side *in)
{
	*out = of(rows(64, 130 * 66 * 8, run(1024)));
	*in = of(rows(64, 130 * 66 * 8, run(1024)));
}

/* Four arrays of two dimensions, three of three, two of four. */
static MPI_Datatype wrf(void)
{
	const int planes[9] = { 0, 0, 0, 0, 1, 1, 1, 1, 2 };
	const MPI_Aint row = 19 * 4, plane = row * 65, array = plane * 8;
	MPI_Datatype members[9];
	MPI_Aint places[9];

	for (int i = 0; i < 9; i++) {
		places[i] = 2 * i * array;
		members[i] =
			planes[i] ? rows(3, plane, rows(65, row, run(44))) : rows(3, row, run(44));
		if (planes[i] > 1)
			members[i] = rows(planes[i], array, members[i]);
	}
	return structure(9, places, members);
}

static void wrf_y(struct side *out, struct side *in)
{
	*out = of(wrf());
	*in = of(wrf());
}

static void fft2(struct side *out, struct side *in)
{
	*out = of(rows(64, 16, rows(64, 256 * 16, run(16))));
	*in = of(rows(64, 256 * 16, run(64 * 16)));
}

static void specfem_mt(struct side *out, struct side *in)
{
	*out = of(rows(5600, 24, run(12)));
	*in = of(run(5600 * 12));
}

/* Places of `count` of `from` elements, in a random order. */
static MPI_Datatype scattered(int count, int from, int bytes)
{
	int *places = memory((size_t)from * sizeof(*places));
	MPI_Datatype element = run(bytes), type;

	for (int i = 0; i < from; i++) {
		int other = (int)draw((unsigned int)i + 1);

		places[i] = places[other];
		places[other] = i;
	}
	MPI_Type_create_indexed_block(count, 1, places, element, &type);
	MPI_Type_free(&element);
	free(places);
	return type;
}

static void specfem_oc(struct side *out, struct side *in)
{
	*out = of(scattered(8192, 88881, 4));
	*in = of(scattered(8192, 88881, 4));
}

static void lammps(struct side *out, struct side *in)
{
	const int bytes[6] = { 24, 8, 8, 8, 8, 8 };
	MPI_Datatype there[6], here[6];
	MPI_Aint from[6], to[6];

	for (int i = 0; i < 6; i++) {
		there[i] = scattered(1662, 1907, bytes[i]);
		here[i] = run(1662 * bytes[i]);
		from[i] = i * 1907 * 24;
		to[i] = i * 1662 * 24;
	}
	*out = of(structure(6, from, there));
	*in = of(structure(6, to, here));
}

static void (*const patterns[])(struct side *, struct side *) = {
	milc, lu_y, mg_x, mg_y, wrf_y, fft2, specfem_mt, specfem_oc, lammps,
};

/* Half a round trip in seconds; the receive is posted before the message can come. */
static double ping_pong(void *out, MPI_Datatype out_type, void *in, MPI_Datatype in_type)
{
	double begin = 0;

	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = -1; i < ROUNDS && rank < 2; i++) {
		MPI_Request request;

		/* The first round warms up. */
		if (i == 0)
			begin = MPI_Wtime();
		MPI_Irecv(in, 1, in_type, 1 - rank, 0, MPI_COMM_WORLD, &request);
		if (rank == 0)
			MPI_Send(out, 1, out_type, 1, 0, MPI_COMM_WORLD);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		if (rank)
			MPI_Send(out, 1, out_type, 0, 0, MPI_COMM_WORLD);
	}
	return (MPI_Wtime() - begin) / ROUNDS / 2;
}

static void measure(unsigned int number)
{
	struct side out, in;
	MPI_Datatype plain;
	uint8_t *from, *to, *packed;
	double seconds;
	int bytes, at = 0;

	patterns[number](&out, &in);
	MPI_Type_size(out.type, &bytes);
	from = memory(out.span);
	to = memory(in.span);
	packed = memory((size_t)bytes);
	plain = run(bytes);
	MPI_Type_commit(&plain);
	fill(packed, (size_t)bytes, rank, number);
	MPI_Unpack(packed, bytes, &at, from, 1, out.type, MPI_COMM_WORLD);
	seconds = ping_pong(from, out.type, to, in.type);
	at = 0;
	MPI_Pack(to, 1, in.type, packed, bytes, &at, MPI_COMM_WORLD);
	if (rank < 2)
		compare(packed, (size_t)bytes, 1 - rank, number);
	result("typed", number, bytes / seconds * 1e-6);
	free(to);
	to = memory((size_t)bytes);
	seconds = ping_pong(packed, plain, to, plain);
	result("typed-contiguous", number, bytes / seconds * 1e-6);
	MPI_Type_free(&out.type);
	MPI_Type_free(&in.type);
	MPI_Type_free(&plain);
	free(from);
	free(to);
	free(packed);
}

void typed(const struct words *numbers)
{
	for (unsigned int i = 0; i < numbers->count; i++)
		measure((unsigned int)numbers->value[i]);
}
