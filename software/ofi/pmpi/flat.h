/* Elements of an MPI datatype as a sequence of pieces. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef FLAT_H
#define FLAT_H

#include <mpi.h>

#include "piece.h"

/* Does not change once it is made. Lists and the table lie in the arena. */
struct flat {
	unsigned int users;
	uint64_t bytes;
	int64_t low, high; /* least and highest byte from the buffer's address: [low, high) */
	struct piece *table;
	unsigned int count; /* of the table */
};

/* `count` elements of a type. The result is kept with the type until another count is asked for, or
 * the type is freed. The caller gives it back. Returns NULL for types that are not worth a command:
 * with gaps inside an elementary type, of a kind that is not known, too irregular, or without room
 * in the arena. */
struct flat *flat_get(MPI_Datatype type, int count);
struct flat *flat_hold(struct flat *flat);
void flat_put(struct flat *flat);

/* The least and the highest byte of a piece of this process. */
void flat_bounds(const struct piece *piece, int64_t *low, int64_t *high);

/* Copy `length` bytes between contiguous memory and a buffer of this type, from its begin on. */
void flat_read(const struct flat *flat, const void *buffer, void *bytes, size_t length);
void flat_write(const struct flat *flat, void *buffer, const void *bytes, size_t length);

#endif
