/* What a rank of a test says when it finds something wrong. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef RANKS_H
#define RANKS_H

#include <mpi.h>
#include <stdio.h>

static int rank; /* set by the program, of MPI_COMM_WORLD */

#define need(condition, ...)                                                   \
	do {                                                                   \
		if (!(condition)) {                                            \
			fprintf(stderr, "rank %d, line %d: ", rank, __LINE__); \
			fprintf(stderr, __VA_ARGS__);                          \
			fprintf(stderr, "\n");                                 \
			MPI_Abort(MPI_COMM_WORLD, 1);                          \
		}                                                              \
	} while (0)

#endif
