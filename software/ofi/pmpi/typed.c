/* Typed messages: begin and end of the library's part, of sends, and of receives. */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "arena.h"
#include "machine.h"

/* Shorter messages go through the provider's rings at once, without a registration. */
#define LEAST 4097u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int key = MPI_KEYVAL_INVALID; /* ranks of a communicator */
static uint64_t last_cookie;	     /* of the sends that the card has carried out */

/* For tests. */
PUBLIC uint64_t dibber_pmpi_sends(void);

uint64_t dibber_pmpi_sends(void)
{
	return __atomic_load_n(&last_cookie, __ATOMIC_RELAXED);
}

/* Calls of Open MPI that let it go on, and call this library when it does (opal_progress.h). */
static struct {
	void (*go_on)(void);
	int (*add)(int (*call)(void));
	int (*remove)(int (*call)(void));
} engine;

void typed_enter(void)
{
	pthread_mutex_lock(&lock);
}

void typed_leave(void)
{
	pthread_mutex_unlock(&lock);
}

bool typed_on(void)
{
	return world.on;
}

/* Called by the engine whenever it goes on, also from within calls of this library. Then the lock
 * is taken, and the outer call does what is to be done. */
static int progress(void)
{
	int events = 0;

	if (pthread_mutex_trylock(&lock))
		return 0;
	if (world.on &&
	    (!machine_is_idle() || hidden_count(HIDDEN_RECEIVE) || hidden_count(HIDDEN_NOTE)))
		events = hidden_test() + machine_step();
	pthread_mutex_unlock(&lock);
	return events;
}

/* Begin and end -------------------------------------------------------------------------------- */

static bool find_engine(void)
{
	*(void **)&engine.go_on = dlsym(RTLD_DEFAULT, "opal_progress");
	*(void **)&engine.add = dlsym(RTLD_DEFAULT, "opal_progress_register");
	*(void **)&engine.remove = dlsym(RTLD_DEFAULT, "opal_progress_unregister");
	return engine.go_on && engine.add && engine.remove;
}

void typed_open(void)
{
	struct rank own = { .good = 0 };
	bool good = has_provider() && find_engine();

	PMPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
	PMPI_Comm_size(MPI_COMM_WORLD, &world.ranks);
	world.list = calloc((size_t)world.ranks, sizeof(*world.list));
	/* All ranks come here, whether they take part or not. The arena follows messages: by them
	 * the provider knows the domain to take. */
	if (!world.list || PMPI_Comm_dup(MPI_COMM_WORLD, &world.comm) || PMPI_Barrier(world.comm))
		PMPI_Abort(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
	good = good && arena_open(&own.arena);
	own.good = good && getrandom(world.mark, sizeof(world.mark), 0) == sizeof(world.mark);
	PMPI_Comm_set_errhandler(world.comm, MPI_ERRORS_RETURN);
	PMPI_Allgather(&own, sizeof(own), MPI_BYTE, world.list, sizeof(own), MPI_BYTE, world.comm);
	PMPI_Bcast(world.mark, sizeof(world.mark), MPI_BYTE, 0, world.comm);
	for (int i = 0; i < world.ranks; i++)
		good &= world.list[i].good;
	typed_enter();
	good = good && !PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, typed_forget, &key, NULL);
	world.on = good && bell_post();
	typed_leave();
	if (world.on)
		engine.add(progress);
}

void typed_close(void)
{
	bool busy = world.on;

	if (!world.comm)
		return;
	while (busy) {
		engine.go_on();
		typed_enter();
		busy = !machine_is_idle() || hidden_count(HIDDEN_NOTE) ||
		       hidden_count(HIDDEN_OFFER);
		typed_leave();
	}
	if (world.on) {
		engine.remove(progress);
		world.on = false;
		bell_withdraw();
		hidden_free();
	}
	arena_close();
	PMPI_Comm_free(&world.comm);
	free(world.list);
	world.list = NULL;
}

/* Ranks ---------------------------------------------------------------------------------------- */

/* Ranks of a communicator, or of the other side of an intercommunicator, in MPI_COMM_WORLD. */
struct ranks {
	int count;
	int world[];
};

int typed_forget(MPI_Comm comm, int keyval, void *value, void *extra)
{
	(void)keyval, (void)extra;
	free(value);
	typed_enter();
	stash_forget(comm);
	typed_leave();
	return MPI_SUCCESS;
}

static struct ranks *find_ranks(MPI_Comm comm)
{
	MPI_Group group, all;
	struct ranks *ranks;
	int inter = 0, count = 0, *own;

	PMPI_Comm_test_inter(comm, &inter);
	if (inter ? PMPI_Comm_remote_group(comm, &group) : PMPI_Comm_group(comm, &group))
		return NULL;
	PMPI_Group_size(group, &count);
	PMPI_Comm_group(MPI_COMM_WORLD, &all);
	ranks = malloc(sizeof(*ranks) + (size_t)count * sizeof(int));
	own = malloc(((size_t)count + 1) * sizeof(*own));
	if (ranks && own) {
		ranks->count = count;
		for (int i = 0; i < count; i++)
			own[i] = i;
		PMPI_Group_translate_ranks(group, count, own, all, ranks->world);
	}
	if (ranks && (!own || PMPI_Comm_set_attr(comm, key, ranks))) {
		free(ranks);
		ranks = NULL;
	}
	free(own);
	PMPI_Group_free(&group);
	PMPI_Group_free(&all);
	return ranks;
}

/* MPI_UNDEFINED for a rank that is not of this world, or none. */
static int world_rank(MPI_Comm comm, int rank)
{
	struct ranks *ranks = NULL;
	int found = 0;

	if (comm == MPI_COMM_WORLD)
		return rank >= 0 && rank < world.ranks ? rank : MPI_UNDEFINED;
	if (PMPI_Comm_get_attr(comm, key, &ranks, &found))
		return MPI_UNDEFINED;
	if (!found)
		ranks = find_ranks(comm);
	return ranks && rank >= 0 && rank < ranks->count ? ranks->world[rank] : MPI_UNDEFINED;
}

void typed_know(MPI_Comm comm)
{
	int found = 0;
	void *ranks;

	if (!PMPI_Comm_get_attr(comm, key, &ranks, &found) && !found)
		find_ranks(comm);
}

/* Requests ------------------------------------------------------------------------------------- */

uint64_t typed_bytes(const MPI_Status *status)
{
	MPI_Count count = 0;

	PMPI_Get_elements_x(status, MPI_BYTE, &count);
	return count < 0 ? 0 : (uint64_t)count;
}

void typed_set_bytes(MPI_Status *status, uint64_t bytes)
{
	PMPI_Status_set_elements_x(status, MPI_BYTE, (MPI_Count)bytes);
}

bool typed_is_offer(const void *bytes, uint64_t length)
{
	const struct offer *offer = bytes;

	return length == OFFER_BYTES && !memcmp(offer->mark, world.mark, MARK_BYTES) &&
	       offer->rank < (uint32_t)world.ranks;
}

void typed_put(struct request *request)
{
	if (request && !__atomic_sub_fetch(&request->users, 1, __ATOMIC_ACQ_REL))
		free(request);
}

static void hold(void *object)
{
	__atomic_add_fetch(&((struct request *)object)->users, 1, __ATOMIC_RELAXED);
}

struct request *typed_find(MPI_Request handle)
{
	return handles_find(handle, hold);
}

static void fill(const struct request *request, MPI_Status *status)
{
	int cancelled = 0;

	*status = request->status;
	PMPI_Test_cancelled(&request->status, &cancelled);
	typed_set_bytes(status, request->count_bytes);
	PMPI_Status_set_cancelled(status, cancelled);
}

/* General requests (MPI 3.1, 12.2). Their error is told by the calls that wait (waits.c), because
 * the engine would tell the handler of MPI_COMM_WORLD. */
static int query(void *extra, MPI_Status *status)
{
	fill(extra, status);
	status->MPI_ERROR = MPI_SUCCESS;
	return MPI_SUCCESS;
}

/* The engine may call this while progress has the lock. */
static int release(void *extra)
{
	struct request *request = extra;

	handles_remove(request->handle);
	typed_put(request);
	return MPI_SUCCESS;
}

/* A receive that has met its message, and a send, cannot be cancelled any more. */
static int cancel(void *extra, int complete)
{
	struct request *request = extra;

	typed_enter();
	if (!complete && !request->sends && request->engine != MPI_REQUEST_NULL)
		PMPI_Cancel(&request->engine);
	typed_leave();
	return MPI_SUCCESS;
}

static struct request *new_request(MPI_Comm comm, bool sends)
{
	struct request *request = calloc(1, sizeof(*request));

	if (!request)
		return NULL;
	request->users = 1;
	request->sends = sends;
	request->comm = comm;
	request->handle = request->engine = MPI_REQUEST_NULL;
	request->type = MPI_DATATYPE_NULL;
	PMPI_Status_set_elements(&request->status, MPI_BYTE, 0);
	PMPI_Status_set_cancelled(&request->status, 0);
	request->status.MPI_SOURCE = MPI_UNDEFINED;
	request->status.MPI_TAG = MPI_UNDEFINED;
	return request;
}

/* Give the program a handle. The caller keeps its own use of the request. */
static bool give_handle(struct request *request)
{
	if (PMPI_Grequest_start(query, release, cancel, request, &request->handle))
		return false;
	hold(request);
	if (handles_add(request->handle, request))
		return true;
	PMPI_Grequest_complete(request->handle);
	PMPI_Wait(&request->handle, MPI_STATUS_IGNORE);
	return false;
}

static void discard(struct request *request)
{
	MPI_Request handle = request->handle;

	if (handle != MPI_REQUEST_NULL) {
		PMPI_Grequest_complete(handle);
		PMPI_Wait(&handle, MPI_STATUS_IGNORE);
	}
	if (request->hold)
		provider.release(request->hold, 0);
	flat_put(request->flat);
	if (request->duplicate)
		PMPI_Type_free(&request->type);
	typed_put(request);
}

bool typed_keep(MPI_Request handle, bool sends, void *buffer, int count, MPI_Datatype type,
		int peer, int tag, MPI_Comm comm)
{
	struct request *request =
		world.on && peer != MPI_PROC_NULL ? new_request(comm, sends) : NULL;

	if (!request)
		return false;
	request->persistent = true;
	request->handle = handle;
	request->active = MPI_REQUEST_NULL;
	request->buffer = buffer;
	request->count = count;
	request->peer = peer;
	request->tag = tag;
	request->duplicate = !PMPI_Type_dup(type, &request->type);
	if (request->duplicate && handles_add(handle, request))
		return true;
	if (request->duplicate)
		PMPI_Type_free(&request->type);
	typed_put(request);
	return false;
}

void typed_wait(const struct request *request)
{
	while (__atomic_load_n(&request->stage, __ATOMIC_ACQUIRE) != ENDED)
		engine.go_on();
}

int typed_end(struct request *request, MPI_Status *status)
{
	int error;

	typed_wait(request);
	error = request->error;
	if (status != MPI_STATUS_IGNORE) {
		int former = status->MPI_ERROR;

		fill(request, status);
		status->MPI_ERROR = former;
	}
	if (error && !request->told)
		PMPI_Comm_call_errhandler(request->comm, error);
	typed_put(request);
	return error;
}

/* Sends ---------------------------------------------------------------------------------------- */

/* Bytes of elements; 0 if the engine must refuse them. */
static uint64_t bytes_of(int count, MPI_Datatype type)
{
	MPI_Count size;

	if (count < 0 || type == MPI_DATATYPE_NULL || PMPI_Type_size_x(type, &size) || size < 0)
		return 0;
	return (uint64_t)size * (uint64_t)count;
}

static bool make_offer(struct request *request, const void *buffer)
{
	const struct flat *flat = request->flat;
	struct offer *offer = &request->offer;
	struct dibber_fi_place place;
	uint64_t offset;

	if (provider.hold((void *)((uintptr_t)buffer + (uintptr_t)flat->low),
			  (size_t)(flat->high - flat->low), 1, &request->hold, &place, &offset))
		return false;
	*offer = (struct offer){
		.cookie = ++last_cookie,
		.bytes = flat->bytes,
		.base = (int64_t)offset - flat->low,
		.table = arena_offset(flat->table),
		.key = place.key,
		.rank = (uint32_t)world.rank,
		.pieces = flat->count,
	};
	memcpy(offer->mark, world.mark, MARK_BYTES);
	for (unsigned int i = 0; i < flat->count && i < FIRST; i++)
		offer->first[i] = flat->table[i];
	request->note.cookie = offer->cookie;
	return true;
}

struct request *typed_send(const void *buffer, int count, MPI_Datatype type, int dest, int tag,
			   MPI_Comm comm, bool handle)
{
	struct request *request;
	MPI_Request offer;
	int other, rc;

	if (!world.on || dest < 0 || comm == MPI_COMM_NULL || bytes_of(count, type) < LEAST)
		return NULL;
	other = world_rank(comm, dest);
	if (other == MPI_UNDEFINED || other == world.rank)
		return NULL;
	request = new_request(comm, true);
	if (!request)
		return NULL;
	request->world = other;
	request->flat = flat_get(type, count);
	typed_enter();
	if (!request->flat || !make_offer(request, buffer) || (handle && !give_handle(request))) {
		discard(request);
		typed_leave();
		return NULL;
	}
	rc = PMPI_Isend(&request->offer, OFFER_BYTES, MPI_BYTE, dest, tag, comm, &offer);
	if (rc || !hidden_add(offer, HIDDEN_OFFER, request)) {
		/* The engine's handler knows of an error. */
		request->told = rc != MPI_SUCCESS;
		if (!rc)
			PMPI_Wait(&offer, MPI_STATUS_IGNORE);
		machine_finish(request, rc ? rc : MPI_ERR_NO_MEM);
	} else {
		hold(request);
		machine_watch(request);
	}
	typed_leave();
	return request;
}

/* Receives ------------------------------------------------------------------------------------- */

static struct request *new_receive(void *buffer, int count, MPI_Datatype type, MPI_Comm comm)
{
	int ints, addresses, types, combiner;
	struct request *request = new_request(comm, false);

	if (!request)
		return NULL;
	request->buffer = buffer;
	request->count = count;
	request->room = bytes_of(count, type);
	request->bounces = request->room < OFFER_BYTES;
	request->type = type;
	/* The program may free the type while the request is under way. */
	PMPI_Type_get_envelope(type, &ints, &addresses, &types, &combiner);
	if (combiner == MPI_COMBINER_NAMED)
		return request;
	if (!request->room) {
		request->type = MPI_DATATYPE_NULL;
		return request;
	}
	request->flat = flat_get(type, count);
	request->type = MPI_DATATYPE_NULL;
	if (request->flat)
		return request;
	if (PMPI_Type_dup(type, &request->type)) {
		typed_put(request);
		return NULL;
	}
	request->duplicate = true;
	return request;
}

/* Let a message that a probe has taken meet its receive. */
static void unstash(struct request *request, struct stashed *stashed)
{
	uint64_t length = typed_bytes(&stashed->status);

	request->status = stashed->status;
	memcpy(&request->offer, stashed->bytes, sizeof(request->offer));
	/* The bytes are not in the buffer, whatever its length is. */
	request->bounces = true;
	machine_received(request, length);
}

static bool post(struct request *request, int source, int tag)
{
	bool bounces = request->bounces;

	if (PMPI_Irecv(bounces ? (void *)&request->offer : request->buffer,
		       bounces ? (int)OFFER_BYTES : request->count,
		       bounces ? MPI_BYTE : request->posted_type, source, tag, request->comm,
		       &request->engine))
		return false;
	if (hidden_add(request->engine, HIDDEN_RECEIVE, request)) {
		hold(request);
		return true;
	}
	PMPI_Cancel(&request->engine);
	PMPI_Wait(&request->engine, MPI_STATUS_IGNORE);
	return false;
}

static bool post_message(struct request *request, MPI_Message *message)
{
	if (PMPI_Imrecv(request->buffer, request->count, request->posted_type, message,
			&request->engine))
		return false;
	/* The engine puts the bytes into the buffer, whatever its length is. */
	request->bounces = false;
	hold(request);
	return hidden_add(request->engine, HIDDEN_RECEIVE, request);
}

static struct request *begin(void *buffer, int count, MPI_Datatype type, MPI_Comm comm,
			     struct stashed *stashed, int source, int tag, bool handle)
{
	struct request *request = new_receive(buffer, count, type, comm);
	bool good;

	if (!request)
		return NULL;
	typed_enter();
	request->posted_type = type;
	good = !handle || give_handle(request);
	if (good && !stashed)
		stashed = stash_take(source, tag, comm);
	if (good && !stashed)
		good = post(request, source, tag);
	else if (good && stashed->message != MPI_MESSAGE_NULL)
		good = post_message(request, &stashed->message);
	else if (good)
		unstash(request, stashed);
	if (!good) {
		discard(request);
		request = NULL;
	}
	typed_leave();
	free(stashed);
	return request;
}

struct request *typed_receive(void *buffer, int count, MPI_Datatype type, int source, int tag,
			      MPI_Comm comm, bool handle)
{
	/* What has no bytes may also be a mistake that the engine must tell. */
	if (!world.on || source == MPI_PROC_NULL || comm == MPI_COMM_NULL ||
	    type == MPI_DATATYPE_NULL || count < 0)
		return NULL;
	return begin(buffer, count, type, comm, NULL, source, tag, handle);
}

struct request *typed_deliver(void *buffer, int count, MPI_Datatype type, MPI_Comm comm,
			      struct stashed *stashed, bool handle)
{
	return begin(buffer, count, type, comm, stashed, 0, 0, handle);
}
