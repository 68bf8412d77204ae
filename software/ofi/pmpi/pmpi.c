/* libdibber-pmpi.so: MPI_Put, MPI_Get and MPI_Rput with derived types as strided commands.
 *
 * Loaded ahead of an MPI library (LD_PRELOAD). A window that MPI_Win_create() or MPI_Win_allocate()
 * makes is registered with the provider too, and its ranks exchange the keys. A put or get with a
 * type that one command can move then goes straight to the card; all else goes to the engine, as do
 * contiguous transfers and those of a rank to itself. Calls that end transfers wait for the card's
 * first, so the engine's promises hold for both.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "provider.h"
#include "shape.h"

#define LIST_BYTES  (MOST_ENTRIES * sizeof(int64_t))
#define LEAST_BYTES 64u /* less goes inline by the engine's way */

/* What a rank tells the others of a window. */
struct share {
	struct dibber_fi_place memory, lists;
	int64_t unit; /* bytes of a displacement */
};

struct window {
	int rank, ranks;
	struct dibber_fi_region *memory, *lists;
	int64_t *list_memory; /* a list of each rank's for this one */
	struct share *shares; /* of each rank */
	struct dibber_fi_counts counts;
	int64_t *sent; /* the list that was put last, LIST_BYTES for each rank; or NULL */
	size_t *sent_entries;
};

/* Windows -------------------------------------------------------------------------------------- */

static int key = MPI_KEYVAL_INVALID;

static struct window *window_of(MPI_Win win)
{
	struct window *window = NULL;
	int found = 0;

	if (key == MPI_KEYVAL_INVALID || PMPI_Win_get_attr(win, key, &window, &found) || !found)
		return NULL;
	return window;
}

static void free_window(struct window *window)
{
	if (window->memory)
		provider.close(window->memory);
	if (window->lists)
		provider.close(window->lists);
	free(window->list_memory);
	free(window->shares);
	free(window->sent);
	free(window->sent_entries);
	free(window);
}

static struct window *new_window(void *base, MPI_Aint size, int unit, int ranks, struct share *own)
{
	struct window *window = calloc(1, sizeof(*window));

	if (!window)
		return NULL;
	own->unit = unit;
	window->shares = calloc((size_t)ranks, sizeof(*window->shares));
	window->list_memory = calloc((size_t)ranks, LIST_BYTES);
	window->sent = malloc((size_t)ranks * LIST_BYTES);
	window->sent_entries = calloc((size_t)ranks, sizeof(*window->sent_entries));
	if (!window->shares || !window->list_memory || !window->sent || !window->sent_entries) {
		free_window(window);
		return NULL;
	}
	/* Without a free region the others go the engine's way to this rank. */
	if (base && size && has_provider() &&
	    !provider.open(base, (size_t)size, &window->memory, &own->memory) &&
	    provider.open(window->list_memory, (size_t)ranks * LIST_BYTES, &window->lists,
			  &own->lists))
		own->lists.valid = 0;
	return window;
}

/* All ranks of `comm` call this. A rank that could not make a window has no places. */
static void open_window(void *base, MPI_Aint size, int unit, MPI_Comm comm, MPI_Win win)
{
	struct share own = { .unit = unit }, *shares;
	struct window *window;
	int rank, ranks;

	PMPI_Comm_rank(comm, &rank);
	PMPI_Comm_size(comm, &ranks);
	if (key == MPI_KEYVAL_INVALID)
		PMPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &key, NULL);
	window = new_window(base, size, unit, ranks, &own);
	shares = window ? window->shares : malloc((size_t)ranks * sizeof(own));
	if (!shares) {
		/* The other ranks wait for this one in what follows. */
		fprintf(stderr, "libdibber-pmpi: no memory for a window of %d ranks\n", ranks);
		PMPI_Abort(comm, MPI_ERR_NO_MEM);
		return;
	}
	PMPI_Allgather(&own, sizeof(own), MPI_BYTE, shares, sizeof(own), MPI_BYTE, comm);
	if (!window) {
		free(shares);
		return;
	}
	window->rank = rank;
	window->ranks = ranks;
	if (!has_provider() || key == MPI_KEYVAL_INVALID || PMPI_Win_set_attr(win, key, window))
		free_window(window);
}

PUBLIC int MPI_Win_create(void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm,
			  MPI_Win *win)
{
	int rc = PMPI_Win_create(base, size, unit, info, comm, win);

	if (!rc)
		open_window(base, size, unit, comm, *win);
	return rc;
}

PUBLIC int MPI_Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base,
			    MPI_Win *win)
{
	int rc = PMPI_Win_allocate(size, unit, info, comm, base, win);

	if (!rc)
		open_window(*(void **)base, size, unit, comm, *win);
	return rc;
}

/* Wait for the card's transfers. An error goes to the window's error handler. */
static int settle(MPI_Win win)
{
	struct window *window = window_of(win);

	if (!window || !provider.wait(&window->counts))
		return MPI_SUCCESS;
	PMPI_Win_call_errhandler(win, MPI_ERR_OTHER);
	return MPI_ERR_OTHER;
}

PUBLIC int MPI_Win_free(MPI_Win *win)
{
	struct window *window = window_of(*win);
	int error = settle(*win), rc = PMPI_Win_free(win);

	/* All ranks have entered, so nobody transfers any more. */
	if (window)
		free_window(window);
	return error ? error : rc;
}

/* The engine's call is made in any case: a rank that left it out would keep its lock, or keep the
 * others waiting. */
#define SETTLE_FIRST(name, parameters, win, ...)                            \
	PUBLIC int MPI_Win_##name parameters                                \
	{                                                                   \
		int error = settle(win), rc = PMPI_Win_##name(__VA_ARGS__); \
                                                                            \
		return error ? error : rc;                                  \
	}

SETTLE_FIRST(fence, (int hints, MPI_Win win), win, hints, win)
SETTLE_FIRST(complete, (MPI_Win win), win, win)
SETTLE_FIRST(unlock, (int rank, MPI_Win win), win, rank, win)
SETTLE_FIRST(unlock_all, (MPI_Win win), win, win)
SETTLE_FIRST(flush, (int rank, MPI_Win win), win, rank, win)
SETTLE_FIRST(flush_all, (MPI_Win win), win, win)
SETTLE_FIRST(flush_local, (int rank, MPI_Win win), win, rank, win)
SETTLE_FIRST(flush_local_all, (MPI_Win win), win, win)

/* Transfers ------------------------------------------------------------------------------------ */

struct transfer {
	void *origin;
	int origin_count, target_count, rank;
	MPI_Datatype origin_type, target_type;
	MPI_Aint disp;
	struct window *window;
	bool gets;
};

static struct dib_walk walk_of(const struct shape *shape, int64_t offset)
{
	struct dib_walk walk = {
		.block = (uint32_t)shape->block,
		.offset = (uint64_t)offset,
		.levels = shape->levels,
	};

	for (unsigned int i = 0; i < shape->levels; i++) {
		walk.count[i] = (uint32_t)shape->count[i];
		walk.stride[i] = shape->stride[i];
	}
	return walk;
}

static void no_end(void *owner, int error)
{
	(void)error;
	free(owner);
}

/* Put a target's list where its rank has room for it. It is in the memory of the other rank before
 * the transfer that follows with FENCE. */
static bool put_list(struct window *window, int rank, const struct shape *shape)
{
	int64_t *sent = window->sent + (size_t)rank * MOST_ENTRIES, *copy;
	size_t bytes = shape->entries * sizeof(*sent);
	struct dibber_fi_side there = { .walk = { .block = (uint32_t)bytes } };
	struct dibber_fi_side here = { .walk = { .block = (uint32_t)bytes } };

	if (!window->shares[rank].lists.valid)
		return false;
	if (window->sent_entries[rank] == shape->entries && !memcmp(sent, shape->list, bytes))
		return true;
	/* A transfer by the former list must have ended. */
	if (window->counts.pending && provider.wait(&window->counts))
		window->counts.error = 1;
	copy = malloc(bytes);
	if (!copy)
		return false;
	memcpy(copy, shape->list, bytes);
	there.walk.offset = (uint64_t)window->rank * LIST_BYTES;
	if (provider.move(0, &window->shares[rank].lists, &there, copy, bytes, &here, bytes,
			  &window->counts, no_end, copy)) {
		free(copy);
		return false;
	}
	memcpy(sent, shape->list, bytes);
	window->sent_entries[rank] = shape->entries;
	return true;
}

/* What lives until the transfer has ended. */
struct ending {
	int64_t *list;
	MPI_Request request; /* of MPI_Rput, or MPI_REQUEST_NULL */
};

static void ended(void *owner, int error)
{
	struct ending *ending = owner;

	(void)error;
	free(ending->list);
	if (ending->request != MPI_REQUEST_NULL)
		PMPI_Grequest_complete(ending->request);
	free(ending);
}

static bool go(const struct transfer *t, struct shape *origin, const struct shape *target,
	       struct ending *ending)
{
	const struct share *share = &t->window->shares[t->rank];
	uint64_t bytes = shape_bytes(origin);
	int64_t low, high, place = t->disp * share->unit;
	struct dibber_fi_side here, there;

	if (origin->entries > MOST_ENTRIES || target->entries > MOST_ENTRIES ||
	    bytes != shape_bytes(target) || bytes < LEAST_BYTES || bytes > DIBBER_MAX_LENGTH ||
	    (shape_is_contiguous(origin) && shape_is_contiguous(target)))
		return false;
	/* A place outside is the engine's to refuse. */
	shape_bounds(target, &low, &high);
	if (place + low < 0 || (uint64_t)(place + high) > share->memory.length)
		return false;
	there = (struct dibber_fi_side){ .walk = walk_of(target, place + target->offset) };
	shape_bounds(origin, &low, &high);
	here = (struct dibber_fi_side){ .walk = walk_of(origin, origin->offset - low) };
	if (target->list) {
		if (!put_list(t->window, t->rank, target))
			return false;
		there.list_key = share->lists.key;
		there.list_offset = (uint64_t)t->window->rank * LIST_BYTES;
	}
	here.list = origin->list;
	here.entries = origin->entries;
	ending->list = origin->list;
	if (provider.move(t->gets, &share->memory, &there, (char *)t->origin + low,
			  (size_t)(high - low), &here, (size_t)bytes, &t->window->counts, ended,
			  ending))
		return false;
	origin->list = NULL; /* `ended` frees it */
	return true;
}

/* Returns whether the card has the transfer. */
static bool moves(const struct transfer *t, MPI_Request request)
{
	struct shape origin = { 0 }, target = { 0 };
	struct ending *ending;
	bool done = false;

	if (!t->window || t->rank < 0 || t->rank >= t->window->ranks ||
	    t->rank == t->window->rank || !t->window->shares[t->rank].memory.valid)
		return false;
	ending = calloc(1, sizeof(*ending));
	if (!ending)
		return false;
	ending->request = request;
	if (shape_of(t->origin_type, t->origin_count, &origin) &&
	    shape_of(t->target_type, t->target_count, &target))
		done = go(t, &origin, &target, ending);
	shape_free(&origin);
	shape_free(&target);
	if (!done)
		free(ending);
	return done;
}

static struct transfer outgoing(const void *origin, int origin_count, MPI_Datatype origin_type,
				int rank, MPI_Aint disp, int target_count, MPI_Datatype target_type,
				MPI_Win win)
{
	return (struct transfer){ (void *)(uintptr_t)origin,
				  origin_count,
				  target_count,
				  rank,
				  origin_type,
				  target_type,
				  disp,
				  window_of(win),
				  false };
}

PUBLIC int MPI_Put(const void *origin, int origin_count, MPI_Datatype origin_type, int rank,
		   MPI_Aint disp, int target_count, MPI_Datatype target_type, MPI_Win win)
{
	const struct transfer t = outgoing(origin, origin_count, origin_type, rank, disp,
					   target_count, target_type, win);

	if (moves(&t, MPI_REQUEST_NULL))
		return MPI_SUCCESS;
	return PMPI_Put(origin, origin_count, origin_type, rank, disp, target_count, target_type,
			win);
}

PUBLIC int MPI_Get(void *origin, int origin_count, MPI_Datatype origin_type, int rank,
		   MPI_Aint disp, int target_count, MPI_Datatype target_type, MPI_Win win)
{
	const struct transfer t = { origin,	 origin_count, target_count,   rank, origin_type,
				    target_type, disp,	       window_of(win), true };

	if (moves(&t, MPI_REQUEST_NULL))
		return MPI_SUCCESS;
	return PMPI_Get(origin, origin_count, origin_type, rank, disp, target_count, target_type,
			win);
}

/* Requests of MPI_Rput are general ones (MPI 3.1, 12.2): the end of the command completes them. */

static int query(void *extra, MPI_Status *status)
{
	(void)extra;
	PMPI_Status_set_elements(status, MPI_BYTE, 0);
	PMPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = MPI_UNDEFINED;
	status->MPI_TAG = MPI_UNDEFINED;
	return MPI_SUCCESS;
}

static int free_nothing(void *extra)
{
	(void)extra;
	return MPI_SUCCESS;
}

static int cancel_nothing(void *extra, int complete)
{
	(void)extra, (void)complete;
	return MPI_SUCCESS;
}

PUBLIC int MPI_Rput(const void *origin, int origin_count, MPI_Datatype origin_type, int rank,
		    MPI_Aint disp, int target_count, MPI_Datatype target_type, MPI_Win win,
		    MPI_Request *request)
{
	const struct transfer t = outgoing(origin, origin_count, origin_type, rank, disp,
					   target_count, target_type, win);

	if (t.window && !PMPI_Grequest_start(query, free_nothing, cancel_nothing, NULL, request)) {
		if (moves(&t, *request))
			return MPI_SUCCESS;
		PMPI_Grequest_complete(*request);
		PMPI_Wait(request, MPI_STATUS_IGNORE);
	}
	return PMPI_Rput(origin, origin_count, origin_type, rank, disp, target_count, target_type,
			 win, request);
}
