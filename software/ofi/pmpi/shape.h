/* MPI datatypes as the card walks them. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef SHAPE_H
#define SHAPE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dibber/dibber.h>

#define MOST_ENTRIES 4096u  /* of an index list of a window's target */
#define MOST_LISTED  32768u /* of any index list */

/* Blocks of `block` bytes in nested levels, innermost first. With a list the nest is repeated at
 * each of its distances. The first block is `offset` bytes from the buffer's address. */
struct shape {
	int64_t offset;
	uint64_t block;
	unsigned int levels;
	uint64_t count[DIBBER_LEVELS];
	int64_t stride[DIBBER_LEVELS];
	int64_t *list;
	size_t entries;
};

/* The shape of `count` elements of a type: `shape` is filled in, and its list belongs to the
 * caller. Returns false for types that no single command moves: struct types, several lengths of
 * blocks, too many levels or entries. */
bool shape_of(MPI_Datatype type, int count, struct shape *shape);

void shape_free(struct shape *shape);

uint64_t shape_bytes(const struct shape *shape);
bool shape_is_contiguous(const struct shape *shape);
/* The least and the highest byte, as distances from the buffer's address: [low, high). */
void shape_bounds(const struct shape *shape, int64_t *low, int64_t *high);

/* What MPI_Type_get_contents() gives of a type. */
struct contents {
	int ints, addresses, types, combiner;
	int *integer;
	MPI_Aint *address;
	MPI_Datatype *type;
};

/* Returns false for predefined types and when there is no memory. */
bool contents_get(MPI_Datatype type, struct contents *contents);
void contents_put(struct contents *contents);

#endif
