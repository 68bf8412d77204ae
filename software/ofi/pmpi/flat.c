/* Elements of an MPI datatype as a sequence of pieces.
 *
 * A type that one walk describes (shape.c) is one piece. Others are taken apart: structs into their
 * members, and what does not fit into three levels into its elements. More than FEW parts become an
 * index list of blocks of one length, the greatest common divisor of all lengths.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "flat.h"
#include "shape.h"

#define FEW	   16u	  /* parts of a type */
#define MOST_PARTS 65536u /* before they become a list */

struct parts {
	struct shape *shape;
	size_t count, room;
};

static void free_parts(struct parts *parts)
{
	for (size_t i = 0; i < parts->count; i++)
		shape_free(&parts->shape[i]);
	free(parts->shape);
}

/* The shape's list goes over to the parts, also when there is no room. */
static bool append(struct parts *parts, struct shape *shape)
{
	struct shape *last = parts->count ? &parts->shape[parts->count - 1] : NULL;

	if (last && shape_is_contiguous(last) && shape_is_contiguous(shape) &&
	    last->offset + (int64_t)last->block == shape->offset) {
		last->block += shape->block;
		return true;
	}
	if (parts->count == parts->room) {
		size_t room = parts->room ? 2 * parts->room : 4;
		struct shape *more = room > MOST_PARTS
					     ? NULL
					     : realloc(parts->shape, room * sizeof(*parts->shape));

		if (!more) {
			shape_free(shape);
			return false;
		}
		parts->shape = more;
		parts->room = room;
	}
	parts->shape[parts->count++] = *shape;
	return true;
}

/* Types --------------------------------------------------------------------------------------- */

static bool add(struct parts *parts, MPI_Datatype type, int64_t count, int64_t place);

static int64_t extent_of(MPI_Datatype type)
{
	MPI_Aint low, extent;

	PMPI_Type_get_extent(type, &low, &extent);
	return extent;
}

/* Rows of the slowest dimension but those that shape.c has put together already. */
static bool add_subarray(struct parts *parts, const struct contents *c, int dimension,
			 int64_t stride, int64_t place)
{
	int dimensions = c->integer[0];
	const int *sizes = c->integer + 1, *subsizes = sizes + dimensions;
	const int *starts = subsizes + dimensions;
	int d = starts[dimensions] == MPI_ORDER_FORTRAN ? dimension : dimensions - 1 - dimension;

	if (dimension < 0)
		return add(parts, c->type[0], 1, place);
	stride /= sizes[d];
	if (!dimension)
		return add(parts, c->type[0], subsizes[d], place + starts[d] * stride);
	for (int i = 0; i < subsizes[d]; i++)
		if (!add_subarray(parts, c, dimension - 1, stride,
				  place + (starts[d] + i) * stride))
			return false;
	return true;
}

static bool add_contents(struct parts *parts, const struct contents *c, int64_t place)
{
	const int *integer = c->integer;
	int64_t extent = c->types ? extent_of(c->type[0]) : 0, whole = extent;

	switch (c->combiner) {
	case MPI_COMBINER_DUP:
	case MPI_COMBINER_RESIZED:
		return add(parts, c->type[0], 1, place);
	case MPI_COMBINER_CONTIGUOUS:
		return add(parts, c->type[0], integer[0], place);
	case MPI_COMBINER_VECTOR:
	case MPI_COMBINER_HVECTOR:
		whole = c->combiner == MPI_COMBINER_VECTOR ? integer[2] * extent
							   : (int64_t)c->address[0];
		for (int i = 0; i < integer[0]; i++)
			if (!add(parts, c->type[0], integer[1], place + i * whole))
				return false;
		return true;
	case MPI_COMBINER_INDEXED:
	case MPI_COMBINER_HINDEXED:
		for (int i = 0; i < integer[0]; i++)
			if (!add(parts, c->type[0], integer[1 + i],
				 place + (c->combiner == MPI_COMBINER_INDEXED
						  ? integer[1 + integer[0] + i] * extent
						  : (int64_t)c->address[i])))
				return false;
		return true;
	case MPI_COMBINER_INDEXED_BLOCK:
	case MPI_COMBINER_HINDEXED_BLOCK:
		for (int i = 0; i < integer[0]; i++)
			if (!add(parts, c->type[0], integer[1],
				 place + (c->combiner == MPI_COMBINER_INDEXED_BLOCK
						  ? integer[2 + i] * extent
						  : (int64_t)c->address[i])))
				return false;
		return true;
	case MPI_COMBINER_STRUCT:
		for (int i = 0; i < integer[0]; i++)
			if (!add(parts, c->type[i], integer[1 + i], place + c->address[i]))
				return false;
		return true;
	case MPI_COMBINER_SUBARRAY:
		for (int i = 0; i < integer[0]; i++)
			whole *= integer[1 + i];
		return add_subarray(parts, c, integer[0] - 1, whole, place);
	default:
		return false;
	}
}

static bool add(struct parts *parts, MPI_Datatype type, int64_t count, int64_t place)
{
	struct contents contents;
	struct shape shape;
	int64_t extent;
	bool good;

	if (!count)
		return true;
	if (shape_of(type, (int)count, &shape)) {
		shape.offset += place;
		return append(parts, &shape);
	}
	extent = extent_of(type);
	for (int64_t i = 0; count > 1 && i < count; i++)
		if (!add(parts, type, 1, place + i * extent))
			return false;
	if (count > 1)
		return true;
	if (!contents_get(type, &contents))
		return false;
	good = add_contents(parts, &contents, place);
	contents_put(&contents);
	return good;
}

/* One list --------------------------------------------------------------------------------------
 */

static uint64_t common(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* The distances of all blocks of `unit` bytes of a shape. Returns where the next ones belong. */
static int64_t *spread(const struct shape *shape, uint64_t unit, int64_t *at)
{
	size_t entries = shape->list ? shape->entries : 1;
	uint64_t index[DIBBER_LEVELS] = { 0 };

	for (size_t e = 0; e < entries; e++) {
		unsigned int level;

		do {
			int64_t place = shape->offset + (shape->list ? shape->list[e] : 0);

			for (unsigned int i = 0; i < shape->levels; i++)
				place += (int64_t)index[i] * shape->stride[i];
			for (uint64_t k = 0; k < shape->block; k += unit)
				*at++ = place + (int64_t)k;
			for (level = 0; level < shape->levels; level++) {
				if (++index[level] < shape->count[level])
					break;
				index[level] = 0;
			}
		} while (level < shape->levels);
	}
	return at;
}

/* Make one shape with a list of many parts. */
static bool enlist(struct parts *parts)
{
	uint64_t unit = 0, bytes = 0, entries;
	struct shape one = { .offset = 0 };
	int64_t *at;

	for (size_t i = 0; i < parts->count; i++) {
		unit = common(parts->shape[i].block, unit);
		bytes += shape_bytes(&parts->shape[i]);
	}
	entries = bytes / unit;
	if (entries > MOST_LISTED)
		return false;
	one.block = unit;
	one.entries = (size_t)entries;
	one.list = at = malloc(one.entries * sizeof(*one.list));
	if (!at)
		return false;
	for (size_t i = 0; i < parts->count; i++)
		at = spread(&parts->shape[i], unit, at);
	one.offset = one.list[0];
	for (size_t i = 0; i < one.entries; i++)
		one.list[i] -= one.offset;
	free_parts(parts);
	*parts = (struct parts){ 0 };
	return append(parts, &one);
}

/* Flat types ----------------------------------------------------------------------------------- */

static bool to_piece(const struct shape *shape, struct piece *piece)
{
	*piece = (struct piece){
		.offset = shape->offset,
		.block = (uint32_t)shape->block,
		.levels = shape->levels,
	};
	for (unsigned int i = 0; i < shape->levels; i++) {
		piece->count[i] = (uint32_t)shape->count[i];
		piece->stride[i] = shape->stride[i];
	}
	if (shape->list) {
		size_t bytes = shape->entries * sizeof(*shape->list);
		int64_t *list = arena_get(bytes);

		if (!list)
			return false;
		memcpy(list, shape->list, bytes);
		piece->entries = (uint32_t)shape->entries;
		piece->list = arena_offset(list);
	}
	return true;
}

struct flat *flat_hold(struct flat *flat)
{
	if (flat)
		__atomic_add_fetch(&flat->users, 1, __ATOMIC_RELAXED);
	return flat;
}

void flat_put(struct flat *flat)
{
	if (!flat || __atomic_sub_fetch(&flat->users, 1, __ATOMIC_ACQ_REL))
		return;
	for (unsigned int i = 0; i < flat->count; i++)
		if (flat->table[i].entries)
			arena_put(arena_at(flat->table[i].list),
				  flat->table[i].entries * sizeof(int64_t));
	arena_put(flat->table, FEW * sizeof(*flat->table));
	free(flat);
}

static bool describe(struct flat *flat, const struct parts *parts)
{
	for (size_t i = 0; i < parts->count; i++) {
		const struct shape *shape = &parts->shape[i];
		int64_t low, high;

		flat->bytes += shape_bytes(shape);
		if (flat->bytes > DIBBER_MAX_LENGTH || !to_piece(shape, &flat->table[i]))
			return false;
		flat->count++;
		shape_bounds(shape, &low, &high);
		flat->low = !i || low < flat->low ? low : flat->low;
		flat->high = !i || high > flat->high ? high : flat->high;
	}
	return flat->count > 0;
}

static struct flat *make(MPI_Datatype type, int count)
{
	struct parts parts = { 0 };
	struct flat *flat = NULL;

	if (add(&parts, type, count, 0) && parts.count && (parts.count <= FEW || enlist(&parts)))
		flat = calloc(1, sizeof(*flat));
	if (flat) {
		flat->users = 1;
		flat->table = arena_get(FEW * sizeof(*flat->table));
		if (!flat->table || !describe(flat, &parts)) {
			flat_put(flat);
			flat = NULL;
		}
	}
	free_parts(&parts);
	return flat;
}

/* Kept with the type --------------------------------------------------------------------------- */

struct kept {
	int count;
	struct flat *flat;
};

static int key = MPI_KEYVAL_INVALID;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int forget(MPI_Datatype type, int keyval, void *value, void *extra)
{
	struct kept *kept = value;

	(void)type, (void)keyval, (void)extra;
	flat_put(kept->flat);
	free(kept);
	return MPI_SUCCESS;
}

static struct kept *kept_of(MPI_Datatype type)
{
	struct kept *kept = NULL;
	int found = 0;

	if (key == MPI_KEYVAL_INVALID &&
	    PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, forget, &key, NULL))
		return NULL;
	if (PMPI_Type_get_attr(type, key, &kept, &found))
		return NULL;
	if (found)
		return kept;
	kept = calloc(1, sizeof(*kept));
	if (kept && PMPI_Type_set_attr(type, key, kept)) {
		free(kept);
		kept = NULL;
	}
	return kept;
}

struct flat *flat_get(MPI_Datatype type, int count)
{
	struct flat *flat = NULL;
	struct kept *kept;

	if (count <= 0)
		return NULL;
	pthread_mutex_lock(&lock);
	kept = kept_of(type);
	if (kept && kept->count != count) {
		flat_put(kept->flat);
		kept->flat = make(type, count);
		kept->count = count;
	}
	if (kept)
		flat = flat_hold(kept->flat);
	pthread_mutex_unlock(&lock);
	return flat;
}

void flat_bounds(const struct piece *piece, int64_t *low, int64_t *high)
{
	const int64_t *list = piece->entries ? arena_at(piece->list) : NULL;
	int64_t first = list ? list[0] : 0, last = first;

	for (uint32_t i = 1; i < piece->entries; i++) {
		first = list[i] < first ? list[i] : first;
		last = list[i] > last ? list[i] : last;
	}
	for (unsigned int i = 0; i < piece->levels; i++) {
		int64_t span = (int64_t)(piece->count[i] - 1) * piece->stride[i];

		first += span < 0 ? span : 0;
		last += span > 0 ? span : 0;
	}
	*low = piece->offset + first;
	*high = piece->offset + last + (int64_t)piece->block;
}

/* Copies by the CPU ---------------------------------------------------------------------------- */

static void copy(const struct flat *flat, uint8_t *buffer, uint8_t *bytes, size_t length,
		 bool writes)
{
	for (unsigned int i = 0; i < flat->count && length; i++) {
		const struct piece *piece = &flat->table[i];
		const int64_t *list = piece->entries ? arena_at(piece->list) : NULL;
		uint32_t index[DIBBER_LEVELS] = { 0 }, entry = 0;

		while (length && entry < (list ? piece->entries : 1)) {
			size_t part = piece->block < length ? piece->block : length;
			int64_t place = piece->offset + (list ? list[entry] : 0);
			unsigned int level = 0;

			for (unsigned int k = 0; k < piece->levels; k++)
				place += (int64_t)index[k] * piece->stride[k];
			if (writes)
				memcpy(buffer + place, bytes, part);
			else
				memcpy(bytes, buffer + place, part);
			bytes += part;
			length -= part;
			while (level < piece->levels && ++index[level] == piece->count[level])
				index[level++] = 0;
			entry += level == piece->levels;
		}
	}
}

void flat_read(const struct flat *flat, const void *buffer, void *bytes, size_t length)
{
	copy(flat, (uint8_t *)(uintptr_t)buffer, bytes, length, false);
}

void flat_write(const struct flat *flat, void *buffer, const void *bytes, size_t length)
{
	copy(flat, buffer, (uint8_t *)(uintptr_t)bytes, length, true);
}
