/* Typed messages from the offer to their end. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <limits.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "machine.h"

struct world world;

static struct request *watched; /* receives that move, and sends */
static struct note heard;
static MPI_Request bell = MPI_REQUEST_NULL;

void machine_watch(struct request *request)
{
	struct request **last = &watched;

	while (*last)
		last = &(*last)->next;
	__atomic_add_fetch(&request->users, 1, __ATOMIC_RELAXED);
	request->next = NULL;
	*last = request;
}

bool machine_is_idle(void)
{
	return !watched;
}

void machine_finish(struct request *request, int error)
{
	MPI_Request handle = request->handle;

	if (request->hold)
		provider.release(request->hold, error != MPI_SUCCESS);
	request->hold = NULL;
	arena_put(request->table, request->table_bytes);
	request->table = NULL;
	free(request->temporary);
	request->temporary = NULL;
	flat_put(request->flat);
	request->flat = NULL;
	if (request->duplicate)
		PMPI_Type_free(&request->type);
	request->duplicate = false;
	request->error = error;
	__atomic_store_n(&request->stage, ENDED, __ATOMIC_RELEASE);
	if (handle != MPI_REQUEST_NULL)
		PMPI_Grequest_complete(handle);
}

/* Notes ----------------------------------------------------------------------------------------
 */

static void tell_sender(struct request *request, bool failed)
{
	MPI_Request note;

	request->note = (struct note){ request->offer.cookie, failed };
	if (PMPI_Isend(&request->note, sizeof(request->note), MPI_BYTE, request->world, 0,
		       world.comm, &note))
		return;
	if (hidden_add(note, HIDDEN_NOTE, request))
		__atomic_add_fetch(&request->users, 1, __ATOMIC_RELAXED);
	else
		PMPI_Wait(&note, MPI_STATUS_IGNORE);
}

bool bell_post(void)
{
	if (PMPI_Irecv(&heard, sizeof(heard), MPI_BYTE, MPI_ANY_SOURCE, 0, world.comm, &bell))
		return false;
	return hidden_add(bell, HIDDEN_BELL, NULL);
}

void bell_withdraw(void)
{
	PMPI_Cancel(&bell);
	PMPI_Wait(&bell, MPI_STATUS_IGNORE);
}

static void ring(int error)
{
	const struct note note = heard;

	for (struct request *r = watched; r && !error; r = r->next)
		if (r->sends && r->note.cookie == note.cookie) {
			r->noted = true;
			r->error = note.failed ? MPI_ERR_OTHER : MPI_SUCCESS;
		}
	/* Without it no send would end. */
	if (!bell_post())
		PMPI_Abort(MPI_COMM_WORLD, MPI_ERR_INTERN);
}

/* Receives ------------------------------------------------------------------------------------- */

static struct dib_side side_of(const struct piece *piece, uint32_t key, int64_t base,
			       uint32_t list_key)
{
	struct dib_side side = {
		.walk = { .key = key,
			  .block = piece->block,
			  .offset = (uint64_t)(base + piece->offset),
			  .levels = piece->levels },
		.list_offset = piece->entries ? piece->list : 0,
		.list_key = piece->entries ? list_key : 0,
	};

	for (unsigned int i = 0; i < piece->levels; i++) {
		side.walk.count[i] = piece->count[i];
		side.walk.stride[i] = piece->stride[i];
	}
	return side;
}

static void fail(struct request *request)
{
	tell_sender(request, true);
	machine_finish(request, MPI_ERR_OTHER);
}

/* The pieces of the receive's own memory; or of a contiguous buffer, where no command can write the
 * type: it is not known, or has too many edges, or its blocks have unmapped memory between them. */
static bool pair_up(struct request *request, struct pairs *pairs, bool directly)
{
	const struct offer *offer = &request->offer;
	const struct piece *there = request->table ? request->table : offer->first;
	struct piece plain = { .block = (uint32_t)offer->bytes };

	if (!request->flat && request->type != MPI_DATATYPE_NULL)
		request->flat = flat_get(request->type, request->count);
	if (directly && request->flat &&
	    pieces_pair(pairs, there, offer->pieces, request->flat->table, request->flat->count))
		return true;
	request->temporary = malloc(offer->bytes);
	return request->temporary && pieces_pair(pairs, there, offer->pieces, &plain, 1);
}

static void bounds(const struct pairs *pairs, int64_t *low, int64_t *high)
{
	for (unsigned int i = 0; i < pairs->count; i++) {
		int64_t first, last;

		flat_bounds(&pairs->pair[i].here, &first, &last);
		*low = !i || first < *low ? first : *low;
		*high = !i || last > *high ? last : *high;
	}
}

/* Make the memory of all pairs in `buffer` reachable. Returns 0 or a negative FI_ number. */
static int hold(struct request *request, uint8_t *buffer, const struct pairs *pairs)
{
	struct dibber_fi_place place;
	int64_t low = 0, high = 0;
	uint64_t offset;
	int rc;

	bounds(pairs, &low, &high);
	rc = provider.hold((uint8_t *)((uintptr_t)buffer + (uintptr_t)low), (size_t)(high - low), 0,
			   &request->hold, &place, &offset);
	if (!rc) {
		request->reached = place.key;
		request->base = (int64_t)offset - low;
	}
	return rc;
}

static bool is_moving(const struct request *request)
{
	return __atomic_load_n(&request->counts.pending, __ATOMIC_ACQUIRE);
}

/* Pair all pieces, and make their memory reachable. Returns 0 or a negative FI_ number. */
static int reach(struct request *request, struct pairs *pairs, bool directly)
{
	int rc;

	if (!pair_up(request, pairs, directly))
		return -FI_ENOMEM;
	/* Of a message whose first pieces move already, the whole buffer is held. */
	if (request->early && !request->temporary)
		return 0;
	if (request->early && is_moving(request)) {
		free(request->temporary);
		request->temporary = NULL;
		return -FI_EAGAIN;
	}
	if (request->early) {
		provider.release(request->hold, false);
		request->hold = NULL;
		request->early = 0;
	}
	rc = hold(request, request->temporary ? request->temporary : request->buffer, pairs);
	if (!rc)
		return 0;
	directly = !request->temporary;
	free(request->temporary);
	request->temporary = NULL;
	return directly && rc != -FI_EAGAIN ? reach(request, pairs, false) : rc;
}

/* Start the commands of all pairs but the first ones. Returns 0 or a negative FI_ number. */
static int get(struct request *request, const struct pairs *pairs, unsigned int first)
{
	const struct offer *offer = &request->offer;
	const struct rank *rank = &world.list[request->world];
	int rc = 0;

	for (unsigned int i = first; !rc && i < pairs->count; i++) {
		const struct pair *pair = &pairs->pair[i];
		struct dib_side there =
			side_of(&pair->there, offer->key, offer->base, rank->arena.key);
		struct dib_side here =
			side_of(&pair->here, request->reached, request->base, arena_key());

		rc = provider.get(&rank->arena, &there, &here, (uint32_t)piece_bytes(&pair->here),
				  &request->counts);
	}
	return rc;
}

static void move(struct request *request)
{
	struct pairs *pairs = malloc(sizeof(*pairs));
	int rc = pairs ? reach(request, pairs, true) : -FI_ENOMEM;

	request->stage = rc == -FI_EAGAIN ? WAITS_FOR_REGION : MOVES;
	if (!rc)
		rc = get(request, pairs, request->early);
	/* What is under way ends first. */
	if (rc && request->stage == MOVES && !request->counts.error)
		request->counts.error = -rc;
	free(pairs);
}

/* The first pieces are in the offer, so they move while the table is got. Not if the whole message
 * would need a buffer, or if no region is free now: then all pieces move when the table is here. */
static void move_early(struct request *request)
{
	const struct offer *offer = &request->offer;
	const struct piece plain = { .block = (uint32_t)offer->bytes };
	const struct flat *flat;
	struct pairs *pairs = malloc(sizeof(*pairs));
	int rc;

	if (!request->flat && request->type != MPI_DATATYPE_NULL)
		request->flat = flat_get(request->type, request->count);
	flat = request->flat;
	if (pairs && flat && pieces_pair(pairs, &plain, 1, flat->table, flat->count) &&
	    !hold(request, request->buffer, pairs)) {
		if (pieces_pair(pairs, offer->first, FIRST, flat->table, flat->count)) {
			request->early = pairs->count;
			rc = get(request, pairs, 0);
			if (rc && !request->counts.error)
				request->counts.error = -rc;
		} else {
			provider.release(request->hold, false);
			request->hold = NULL;
		}
	}
	free(pairs);
}

/* Element `n` of the buffer. */
static void *element_of(const struct request *request, uint64_t n)
{
	MPI_Aint low, extent = 0;

	PMPI_Type_get_extent(request->type, &low, &extent);
	return (void *)((uintptr_t)request->buffer + (uintptr_t)n * (uintptr_t)extent);
}

/* Write the first bytes of an element. MPI_Unpack() takes whole elements only, so the rest of it is
 * read first, and written as it was. */
static int unpack_part(struct request *request, uint64_t n, uint64_t size, const uint8_t *bytes,
		       uint64_t length)
{
	void *element = element_of(request, n);
	uint8_t *packed = malloc(size);
	int at = 0, rc = MPI_ERR_NO_MEM;

	if (packed)
		rc = PMPI_Pack(element, 1, request->type, packed, (int)size, &at, MPI_COMM_SELF);
	if (!rc) {
		memcpy(packed, bytes, length);
		at = 0;
		rc = PMPI_Unpack(packed, (int)size, &at, element, 1, request->type, MPI_COMM_SELF);
	}
	free(packed);
	return rc;
}

/* Write the first `length` bytes of the buffer by its type. Returns an error of MPI. */
static int unpack(struct request *request, const uint8_t *bytes, uint64_t length)
{
	uint64_t size, whole, step;
	int rc = MPI_SUCCESS, at;

	if (!length)
		return MPI_SUCCESS;
	if (request->flat) {
		flat_write(request->flat, request->buffer, bytes, length);
		return MPI_SUCCESS;
	}
	size = request->room / (uint64_t)request->count;
	if (size > INT_MAX)
		return MPI_ERR_COUNT;
	whole = length / size;
	for (uint64_t n = 0; n < whole && !rc; n += step) {
		step = whole - n < INT_MAX / size ? whole - n : INT_MAX / size;
		at = 0;
		rc = PMPI_Unpack(bytes + n * size, (int)(step * size), &at, element_of(request, n),
				 (int)step, request->type, MPI_COMM_SELF);
	}
	if (!rc && length % size)
		rc = unpack_part(request, whole, size, bytes + whole * size, length % size);
	return rc;
}

/* The commands of a receive have ended. */
static void moved(struct request *request)
{
	if (request->counts.error) {
		fail(request);
		return;
	}
	if (request->temporary &&
	    unpack(request, request->temporary, request->offer.bytes) != MPI_SUCCESS) {
		fail(request);
		return;
	}
	tell_sender(request, false);
	machine_finish(request, MPI_SUCCESS);
}

/* All pieces are known now, unless the table is wrong or did not come. Then what moves early ends
 * before the message fails. */
static void table_came(struct request *request)
{
	const struct offer *offer = &request->offer;

	if (!request->table_counts.error && !request->counts.error &&
	    !memcmp(request->table, offer->first, sizeof(offer->first)) &&
	    pieces_bytes(request->table, offer->pieces) == offer->bytes) {
		move(request);
		return;
	}
	request->stage = MOVES;
	if (!request->counts.error)
		request->counts.error = FI_EIO;
}

static int get_table(struct request *request)
{
	const struct offer *offer = &request->offer;
	const struct rank *rank = &world.list[request->world];
	uint32_t bytes = offer->pieces * (uint32_t)sizeof(struct piece);
	struct dib_side there = {
		.walk = { .key = rank->arena.key, .block = bytes, .offset = offer->table }
	};
	struct dib_side here = { .walk = { .key = arena_key(), .block = bytes } };

	request->table_bytes = bytes;
	request->table = arena_get(bytes);
	if (!request->table)
		return -FI_ENOMEM;
	here.walk.offset = arena_offset(request->table);
	request->stage = GETS_TABLE;
	return provider.get(&rank->arena, &there, &here, bytes, &request->table_counts);
}

static bool makes_sense(const struct offer *offer)
{
	bool all = offer->pieces <= FIRST;
	uint64_t first = pieces_bytes(offer->first, all ? offer->pieces : FIRST);

	if (!first || offer->pieces > MOST_PIECES || offer->bytes > DIBBER_MAX_LENGTH)
		return false;
	return all ? first == offer->bytes : first < offer->bytes;
}

static void accept(struct request *request)
{
	const struct offer *offer = &request->offer;
	bool truncated = offer->bytes > request->room;

	request->world = (int)offer->rank;
	request->count_bytes = truncated ? request->room : offer->bytes;
	machine_watch(request);
	if (truncated) {
		tell_sender(request, false);
		machine_finish(request, MPI_ERR_TRUNCATE);
	} else if (!makes_sense(offer)) {
		fail(request);
	} else if (offer->pieces <= FIRST) {
		move(request);
	} else if (get_table(request)) {
		fail(request);
	} else {
		move_early(request);
	}
}

/* The first bytes of the buffer, as the type has them. Returns false if they cannot be read. */
static bool read_back(struct request *request, uint8_t bytes[OFFER_BYTES])
{
	uint64_t size = request->room / (uint64_t)request->count;
	uint64_t elements = (OFFER_BYTES + size - 1) / size;
	uint8_t *packed;
	int at = 0;
	bool good;

	if (!request->flat && request->type != MPI_DATATYPE_NULL)
		request->flat = flat_get(request->type, request->count);
	if (request->flat) {
		flat_read(request->flat, request->buffer, bytes, OFFER_BYTES);
		return true;
	}
	/* The whole buffer may be longer than MPI_Pack() can tell. */
	packed = elements * size <= INT_MAX ? malloc(elements * size) : NULL;
	good = packed && !PMPI_Pack(request->buffer, (int)elements, request->type, packed,
				    (int)(elements * size), &at, MPI_COMM_SELF);
	if (good)
		memcpy(bytes, packed, OFFER_BYTES);
	free(packed);
	return good;
}

static int land(struct request *request, uint64_t length)
{
	uint64_t fits = length < request->room ? length : request->room;
	int error;

	if (!request->flat && request->type != MPI_DATATYPE_NULL)
		request->flat = flat_get(request->type, request->count);
	error = unpack(request, (const uint8_t *)&request->offer, fits);
	request->count_bytes = fits;
	return length > request->room ? MPI_ERR_TRUNCATE : error;
}

void machine_received(struct request *request, uint64_t length)
{
	uint8_t head[OFFER_BYTES];

	request->count_bytes = length;
	if (length == OFFER_BYTES && !request->bounces) {
		/* If it is an offer, its sender waits for this rank until one of both ends. */
		if (!read_back(request, head)) {
			machine_finish(request, MPI_ERR_NO_MEM);
			return;
		}
		if (typed_is_offer(head, length))
			memcpy(&request->offer, head, sizeof(request->offer));
	}
	if (typed_is_offer(&request->offer, length))
		accept(request);
	else
		machine_finish(request, request->bounces ? land(request, length) : MPI_SUCCESS);
}

/* Progress ------------------------------------------------------------------------------------- */

void machine_ended(enum hidden_kind kind, struct request *owner, const MPI_Status *status,
		   int error)
{
	int cancelled = 0;

	switch (kind) {
	case HIDDEN_BELL:
		ring(error);
		return;
	case HIDDEN_OFFER:
		owner->offered = true;
		if (error) {
			owner->noted = owner->told = true;
			owner->error = error;
		}
		break;
	case HIDDEN_NOTE:
		break;
	case HIDDEN_RECEIVE:
		owner->engine = MPI_REQUEST_NULL;
		owner->status = *status;
		PMPI_Test_cancelled(status, &cancelled);
		if (error || cancelled) {
			owner->told = true;
			owner->count_bytes = cancelled ? 0 : typed_bytes(status);
			machine_finish(owner, error);
		} else {
			machine_received(owner, typed_bytes(status));
		}
	}
	typed_put(owner);
}

static bool send_goes_on(struct request *request)
{
	/* A rank that is gone answers no more. */
	if (!request->noted && provider.lost(&world.list[request->world].arena)) {
		request->noted = true;
		request->error = MPI_ERR_OTHER;
	}
	if (!request->noted || !request->offered)
		return false;
	machine_finish(request, request->error);
	return true;
}

static bool receive_goes_on(struct request *request)
{
	if (request->stage == GETS_TABLE) {
		if (__atomic_load_n(&request->table_counts.pending, __ATOMIC_ACQUIRE))
			return false;
		table_came(request);
		return true;
	}
	if (is_moving(request))
		return false;
	if (request->stage == WAITS_FOR_REGION) {
		/* A region may never become free. */
		if (request->counts.error || provider.lost(&world.list[request->world].arena))
			fail(request);
		else
			move(request);
		return request->stage != WAITS_FOR_REGION;
	}
	moved(request);
	return true;
}

int machine_step(void)
{
	struct request **place = &watched;
	int events = 0;

	while (*place) {
		struct request *request = *place;

		if (request->stage != ENDED)
			events += request->sends ? send_goes_on(request) : receive_goes_on(request);
		if (request->stage == ENDED) {
			*place = request->next;
			typed_put(request);
			continue;
		}
		place = &request->next;
	}
	return events;
}
