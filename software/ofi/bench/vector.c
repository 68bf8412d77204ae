/* MPI_Put with a vector type: 8-byte elements at strides, from contiguous memory. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define ELEMENTS 8192u /* 64 KiB */
#define ROUNDS	 2
#define GAP	 0x5a

static void compare_gaps(const uint8_t *bytes, size_t stride, size_t length)
{
	uint8_t gap = GAP, expected;
	unsigned int differ = 0;

	for (size_t i = 0; i < length; i++)
		differ += i % (8 * stride) >= 8 && bytes[i] != gap;
	/* One byte stands for all gaps. */
	fill(&expected, 1, 0, 0);
	expected = (uint8_t)(expected + (differ != 0));
	compare(&expected, 1, 0, 0);
}

static double put(size_t stride, uint8_t *out, MPI_Win window)
{
	MPI_Datatype type;
	double begin = 0;

	MPI_Type_vector((int)ELEMENTS, 1, (int)stride, MPI_DOUBLE, &type);
	MPI_Type_commit(&type);
	MPI_Win_lock_all(0, window);
	for (int i = -1; i < ROUNDS && rank == 0; i++) {
		if (i == 0)
			begin = MPI_Wtime();
		MPI_Put(out, (int)ELEMENTS, MPI_DOUBLE, 1, 0, 1, type, window);
		MPI_Win_flush(1, window);
	}
	begin = (MPI_Wtime() - begin) / ROUNDS;
	MPI_Win_unlock_all(window);
	MPI_Type_free(&type);
	return begin;
}

void put_vector(const struct words *strides)
{
	for (unsigned int i = 0; i < strides->count; i++) {
		size_t stride = strides->value[i], length = 8 * ELEMENTS * stride;
		uint8_t *in = memory(length), *out = memory(8 * ELEMENTS), *packed;
		double seconds;
		MPI_Win window;

		memset(in, GAP, length);
		fill(out, 8 * ELEMENTS, rank, (unsigned int)stride);
		MPI_Win_create(in, (MPI_Aint)length, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
		seconds = put(stride, out, window);
		MPI_Barrier(MPI_COMM_WORLD);
		if (rank == 1) {
			packed = memory(8 * ELEMENTS);
			for (size_t k = 0; k < ELEMENTS; k++)
				memcpy(packed + 8 * k, in + 8 * stride * k, 8);
			compare(packed, 8 * ELEMENTS, 0, (unsigned int)stride);
			compare_gaps(in, stride, length);
			free(packed);
		}
		MPI_Win_free(&window);
		result("put", (double)stride, 8.0 * ELEMENTS / seconds * 1e-6);
		free(in);
		free(out);
	}
}
