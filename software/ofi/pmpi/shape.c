/* MPI datatypes as the card walks them. MPI 3.1, 4.1.13 tells what MPI_Type_get_contents() gives.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>
#include <string.h>

#include "shape.h"

#define MOST_COMBINER_INTS 65536

void shape_free(struct shape *shape)
{
	free(shape->list);
	shape->list = NULL;
}

uint64_t shape_bytes(const struct shape *shape)
{
	uint64_t bytes = shape->block * (shape->list ? shape->entries : 1);

	for (unsigned int i = 0; i < shape->levels; i++)
		bytes *= shape->count[i];
	return bytes;
}

bool shape_is_contiguous(const struct shape *shape)
{
	return !shape->levels && !shape->list;
}

void shape_bounds(const struct shape *shape, int64_t *low, int64_t *high)
{
	int64_t first = 0, last = 0;

	for (size_t i = 0; i < shape->entries && shape->list; i++) {
		if (!i || shape->list[i] < first)
			first = shape->list[i];
		if (!i || shape->list[i] > last)
			last = shape->list[i];
	}
	for (unsigned int i = 0; i < shape->levels; i++) {
		int64_t span = (int64_t)(shape->count[i] - 1) * shape->stride[i];

		if (span < 0)
			first += span;
		else
			last += span;
	}
	*low = shape->offset + first;
	*high = shape->offset + last + (int64_t)shape->block;
}

/* Building ------------------------------------------------------------------------------------- */

static bool repeat_list(struct shape *shape, uint64_t count, int64_t stride)
{
	size_t entries = shape->entries * count;
	int64_t *list;

	if (count > MOST_LISTED || entries > MOST_LISTED)
		return false;
	list = malloc(entries * sizeof(*list));
	if (!list)
		return false;
	for (uint64_t i = 0; i < count; i++)
		for (size_t k = 0; k < shape->entries; k++)
			list[i * shape->entries + k] = shape->list[k] + (int64_t)i * stride;
	free(shape->list);
	shape->list = list;
	shape->entries = entries;
	return true;
}

/* Repeat a shape at a constant distance. Levels that follow each other without a gap are one. */
static bool repeat(struct shape *shape, uint64_t count, int64_t stride)
{
	unsigned int top = shape->levels;

	if (count == 1)
		return true;
	if (!count)
		return false;
	if (shape->list)
		return repeat_list(shape, count, stride);
	if (!top && stride == (int64_t)shape->block) {
		shape->block *= count;
		return true;
	}
	if (top && stride == (int64_t)shape->count[top - 1] * shape->stride[top - 1]) {
		shape->count[top - 1] *= count;
		return true;
	}
	if (top == DIBBER_LEVELS)
		return false;
	shape->count[top] = count;
	shape->stride[top] = stride;
	shape->levels++;
	return true;
}

/* Repeat a shape at each of some distances. */
static bool place(struct shape *shape, size_t entries, const int64_t *distances)
{
	int64_t stride;
	size_t even = 1;

	if (!entries)
		return false;
	stride = entries > 1 ? distances[1] - distances[0] : 0;
	while (even < entries && distances[even] - distances[even - 1] == stride)
		even++;
	shape->offset += distances[0];
	if (even == entries)
		return repeat(shape, entries, stride);
	if (shape->list || entries > MOST_LISTED || shape->levels > DIBBER_LIST_LEVELS)
		return false;
	shape->list = malloc(entries * sizeof(*shape->list));
	if (!shape->list)
		return false;
	for (size_t i = 0; i < entries; i++)
		shape->list[i] = distances[i] - distances[0];
	shape->entries = entries;
	return true;
}

/* Combiners ------------------------------------------------------------------------------------ */

static bool flatten(MPI_Datatype type, struct shape *shape);

static int64_t extent_of(MPI_Datatype type)
{
	MPI_Aint low, extent;

	PMPI_Type_get_extent(type, &low, &extent);
	return extent;
}

static bool flatten_named(MPI_Datatype type, struct shape *shape)
{
	MPI_Aint low, extent;
	int size;

	/* A pair such as MPI_SHORT_INT has a gap inside. */
	if (PMPI_Type_size(type, &size) || PMPI_Type_get_true_extent(type, &low, &extent) ||
	    size != extent || low || size <= 0)
		return false;
	*shape = (struct shape){ .block = (uint64_t)size };
	return true;
}

/* integer: dimensions, sizes, subsizes, starts, order */
static bool flatten_subarray(const struct contents *c, struct shape *shape)
{
	int dimensions = c->integer[0];
	const int *sizes = c->integer + 1, *subsizes = sizes + dimensions;
	const int *starts = subsizes + dimensions;
	bool fortran = starts[dimensions] == MPI_ORDER_FORTRAN;
	int64_t stride = extent_of(c->type[0]);

	for (int i = 0; i < dimensions; i++) {
		int d = fortran ? i : dimensions - 1 - i;

		shape->offset += starts[d] * stride;
		if (!repeat(shape, (uint64_t)subsizes[d], stride))
			return false;
		stride *= sizes[d];
	}
	return true;
}

/* Blocks of one length at distances: integer has the count, then lengths. */
static bool flatten_indexed(const struct contents *c, struct shape *shape)
{
	bool block_kind = c->combiner == MPI_COMBINER_INDEXED_BLOCK ||
			  c->combiner == MPI_COMBINER_HINDEXED_BLOCK;
	bool in_bytes =
		c->combiner == MPI_COMBINER_HINDEXED || c->combiner == MPI_COMBINER_HINDEXED_BLOCK;
	const int *places = c->integer + (block_kind ? 2 : 1 + c->integer[0]);
	int64_t extent = extent_of(c->type[0]), *distances;
	size_t count = c->integer[0] > 0 ? (size_t)c->integer[0] : 0;
	bool good = count > 0;

	for (size_t i = 1; i < count && !block_kind; i++)
		good &= c->integer[1 + i] == c->integer[1];
	if (!good || c->integer[1] < 1 || !repeat(shape, (uint64_t)c->integer[1], extent))
		return false;
	distances = malloc(count * sizeof(*distances));
	if (!distances)
		return false;
	for (size_t i = 0; i < count; i++)
		distances[i] = in_bytes ? (int64_t)c->address[i] : places[i] * extent;
	good = place(shape, count, distances);
	free(distances);
	return good;
}

static bool flatten_contents(const struct contents *c, struct shape *shape)
{
	int64_t extent;

	if (!flatten(c->type[0], shape))
		return false;
	extent = extent_of(c->type[0]);
	switch (c->combiner) {
	case MPI_COMBINER_DUP:
	case MPI_COMBINER_RESIZED:
		return true;
	case MPI_COMBINER_CONTIGUOUS:
		return repeat(shape, (uint64_t)c->integer[0], extent);
	case MPI_COMBINER_VECTOR:
		return repeat(shape, (uint64_t)c->integer[1], extent) &&
		       repeat(shape, (uint64_t)c->integer[0], c->integer[2] * extent);
	case MPI_COMBINER_HVECTOR:
		return repeat(shape, (uint64_t)c->integer[1], extent) &&
		       repeat(shape, (uint64_t)c->integer[0], c->address[0]);
	case MPI_COMBINER_SUBARRAY:
		return flatten_subarray(c, shape);
	default:
		return flatten_indexed(c, shape);
	}
}

static bool is_known(const struct contents *c)
{
	switch (c->combiner) {
	case MPI_COMBINER_DUP:
	case MPI_COMBINER_RESIZED:
	case MPI_COMBINER_CONTIGUOUS:
	case MPI_COMBINER_VECTOR:
	case MPI_COMBINER_HVECTOR:
	case MPI_COMBINER_SUBARRAY:
	case MPI_COMBINER_INDEXED:
	case MPI_COMBINER_HINDEXED:
	case MPI_COMBINER_INDEXED_BLOCK:
	case MPI_COMBINER_HINDEXED_BLOCK:
		return c->types == 1 && c->ints <= MOST_COMBINER_INTS;
	default:
		return false;
	}
}

/* A type that MPI_Type_get_contents() returned must be freed unless it is predefined. */
static void give_back(MPI_Datatype type)
{
	int ints, addresses, types, combiner;

	if (!PMPI_Type_get_envelope(type, &ints, &addresses, &types, &combiner) &&
	    combiner != MPI_COMBINER_NAMED)
		PMPI_Type_free(&type);
}

static void free_contents(struct contents *c)
{
	free(c->integer);
	free(c->address);
	free(c->type);
}

bool contents_get(MPI_Datatype type, struct contents *c)
{
	*c = (struct contents){ 0 };
	if (PMPI_Type_get_envelope(type, &c->ints, &c->addresses, &c->types, &c->combiner) ||
	    c->combiner == MPI_COMBINER_NAMED)
		return false;
	c->integer = malloc(((size_t)c->ints + 1) * sizeof(*c->integer));
	c->address = malloc(((size_t)c->addresses + 1) * sizeof(*c->address));
	c->type = malloc(((size_t)c->types + 1) * sizeof(*c->type));
	if (c->integer && c->address && c->type &&
	    !PMPI_Type_get_contents(type, c->ints, c->addresses, c->types, c->integer, c->address,
				    c->type))
		return true;
	free_contents(c);
	return false;
}

void contents_put(struct contents *c)
{
	for (int i = 0; i < c->types; i++)
		give_back(c->type[i]);
	free_contents(c);
}

static bool flatten(MPI_Datatype type, struct shape *shape)
{
	int ints, addresses, types, combiner;
	struct contents c;
	bool good;

	*shape = (struct shape){ 0 };
	if (PMPI_Type_get_envelope(type, &ints, &addresses, &types, &combiner))
		return false;
	if (combiner == MPI_COMBINER_NAMED)
		return flatten_named(type, shape);
	if (!contents_get(type, &c))
		return false;
	good = is_known(&c) && flatten_contents(&c, shape);
	contents_put(&c);
	if (!good)
		shape_free(shape);
	return good;
}

/* Cache ---------------------------------------------------------------------------------------- */

/* The shape of one element of a type stays with the type, and goes with it. */
struct cached {
	bool good;
	struct shape shape;
};

static int key = MPI_KEYVAL_INVALID;

static int forget(MPI_Datatype type, int keyval, void *value, void *extra)
{
	struct cached *cached = value;

	(void)type, (void)keyval, (void)extra;
	shape_free(&cached->shape);
	free(cached);
	return MPI_SUCCESS;
}

static struct cached *cached_of(MPI_Datatype type)
{
	struct cached *cached = NULL;
	int found = 0;

	if (key == MPI_KEYVAL_INVALID &&
	    PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, forget, &key, NULL))
		return NULL;
	if (PMPI_Type_get_attr(type, key, &cached, &found))
		return NULL;
	if (found)
		return cached;
	cached = calloc(1, sizeof(*cached));
	if (!cached)
		return NULL;
	cached->good = flatten(type, &cached->shape);
	if (PMPI_Type_set_attr(type, key, cached)) {
		forget(type, key, cached, NULL);
		return NULL;
	}
	return cached;
}

bool shape_of(MPI_Datatype type, int count, struct shape *shape)
{
	const struct cached *cached = count > 0 ? cached_of(type) : NULL;

	if (!cached || !cached->good)
		return false;
	*shape = cached->shape;
	if (shape->list) {
		shape->list = malloc(shape->entries * sizeof(*shape->list));
		if (!shape->list)
			return false;
		memcpy(shape->list, cached->shape.list, shape->entries * sizeof(*shape->list));
	}
	if (repeat(shape, (uint64_t)count, extent_of(type)))
		return true;
	shape_free(shape);
	return false;
}
