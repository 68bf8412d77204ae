/* The pool of handles: see handle.h. */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "error.h"
#include "handle.h"

#define CHUNK_BYTES (256u << 10)
#define GRAIN	    64u /* bytes of a cache line, so that no two handles share one */

/* Memory of handles. A chunk stays in the list when its memory was given back, so that a child
 * knows its parent's chunks. */
struct dib_chunk {
	struct dib_chunk *next;
	uint8_t *memory;
	size_t used;
	uint32_t open;	  /* handles that have not ended */
	uint32_t process; /* number of the process that made it */
};

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static struct dib_chunk *chunks; /* new handles go into the first one */
static uint32_t
	process; /* number of fork() calls that led to this process, as far as they were noticed */
static uint32_t *mark; /* a page that fork() wipes; 0 there: the last fork was not noticed yet */
static bool unwiped;   /* the system does not wipe, so forget_pool() has to */

static void *map_wiped(size_t bytes)
{
	void *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	if (madvise(memory, bytes, MADV_WIPEONFORK) < 0)
		unwiped = true;
	return memory;
}

/* Notice a fork. The caller has the lock, here and in the functions below. */
static bool follow_process(void)
{
	if (!mark)
		mark = map_wiped(sizeof(*mark));
	if (!mark)
		return false;
	if (!*mark) {
		process++;
		*mark = 1;
	}
	return true;
}

static struct dib_chunk *chunk_with_room(size_t bytes)
{
	struct dib_chunk *chunk = chunks;

	if (chunk && chunk->process == process && bytes <= CHUNK_BYTES - chunk->used)
		return chunk;
	chunk = calloc(1, sizeof(*chunk));
	if (!chunk)
		return NULL;
	chunk->memory = map_wiped(CHUNK_BYTES);
	if (!chunk->memory) {
		free(chunk);
		return NULL;
	}
	chunk->process = process;
	/* The former first chunk gets no more handles. */
	if (chunks && chunks->process == process && !chunks->open)
		madvise(chunks->memory, CHUNK_BYTES, MADV_DONTNEED);
	chunk->next = chunks;
	chunks = chunk;
	return chunk;
}

/* Around fork() -------------------------------------------------------------------------------- */

static void lock_pool(void)
{
	pthread_mutex_lock(&pool_lock);
}

static void unlock_pool(void)
{
	pthread_mutex_unlock(&pool_lock);
}

/* In a child: wipe the pool where the system has not done it. */
static void forget_pool(void)
{
	for (struct dib_chunk *chunk = chunks; chunk && unwiped; chunk = chunk->next)
		mmap(chunk->memory, CHUNK_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (mark && unwiped)
		*mark = 0;
	unlock_pool();
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int unprepared; /* errno of pthread_atfork(), or 0 */

static void prepare(void)
{
	unprepared = pthread_atfork(lock_pool, unlock_pool, forget_pool);
}

/* Handles ------------------------------------------------------------------------------------- */

void *dib_handle_new(enum dib_kind kind, size_t bytes)
{
	struct dib_chunk *chunk = NULL;
	struct dib_handle *handle = NULL;

	pthread_once(&once, prepare);
	if (unprepared) {
		dib_keep_reason("pthread_atfork: no memory");
		return NULL;
	}
	bytes = (bytes + GRAIN - 1) & ~(size_t)(GRAIN - 1);
	pthread_mutex_lock(&pool_lock);
	if (follow_process())
		chunk = chunk_with_room(bytes);
	if (chunk) {
		handle = (void *)(chunk->memory + chunk->used);
		handle->kind = (uint16_t)kind;
		handle->chunk = chunk;
		chunk->used += bytes;
		chunk->open++;
	}
	pthread_mutex_unlock(&pool_lock);
	if (!handle)
		dib_keep_reason("no memory for a handle");
	return handle;
}

void dib_handle_end(void *pointer)
{
	struct dib_handle *handle = pointer;
	struct dib_chunk *chunk = handle->chunk;

	pthread_mutex_lock(&pool_lock);
	handle->life = DIB_LIFE_CLOSED;
	/* The memory reads as zeros then, and zeros are no open handle. */
	if (--chunk->open == 0 && chunk != chunks)
		madvise(chunk->memory, CHUNK_BYTES, MADV_DONTNEED);
	pthread_mutex_unlock(&pool_lock);
}

void dib_handle_orphan(void *pointer, enum dib_kind owner)
{
	struct dib_handle *handle = pointer;

	handle->owner = (uint16_t)owner;
	handle->life = DIB_LIFE_ORPHAN;
}

/* Whether the handle was opened by a process of which this one is a child. */
static bool is_foreign(const struct dib_handle *handle)
{
	const uint8_t *at = (const uint8_t *)handle;
	bool foreign = false;

	pthread_mutex_lock(&pool_lock);
	follow_process();
	for (const struct dib_chunk *chunk = chunks; chunk && !foreign; chunk = chunk->next)
		foreign = chunk->process != process && at >= chunk->memory &&
			  at < chunk->memory + CHUNK_BYTES;
	pthread_mutex_unlock(&pool_lock);
	return foreign;
}

int dib_handle_refuse(const void *pointer, enum dib_kind kind)
{
	const struct dib_handle *handle = pointer;
	static const char *const names[] = {
		[DIB_KIND_CARD] = "card",	  [DIB_KIND_ENDPOINT] = "endpoint",
		[DIB_KIND_REGION] = "region",	  [DIB_KIND_MAILBOX] = "mailbox",
		[DIB_KIND_EXCHANGE] = "exchange", [DIB_KIND_WINDOW] = "window",
	};

	if (!handle)
		return dib_fail(DIB_ERR_ARGUMENT, "no %s given", names[kind]);
	if (is_foreign(handle))
		return dib_fail(
			DIB_ERR_FORKED,
			"this process did not open the %s: it is a child of the process that did",
			names[kind]);
	if (handle->kind != kind && handle->kind)
		return dib_fail(DIB_ERR_ARGUMENT, "a %s was given as the %s", names[handle->kind],
				names[kind]);
	if (handle->life == DIB_LIFE_ORPHAN)
		return dib_fail(DIB_ERR_CLOSED, "the %s of this %s was closed",
				names[handle->owner], names[kind]);
	return dib_fail(DIB_ERR_CLOSED, "the %s was closed", names[kind]);
}

int dib_handle_check_close(void *pointer, enum dib_kind kind, bool *open)
{
	struct dib_handle *handle = pointer;

	*open = false;
	if (!handle)
		return 0;
	if (handle->kind == kind && handle->life == DIB_LIFE_ORPHAN) {
		dib_handle_end(handle);
		return 0;
	}
	*open = handle->kind == kind && handle->life == DIB_LIFE_OPEN;
	return *open ? 0 : dib_handle_refuse(handle, kind);
}
