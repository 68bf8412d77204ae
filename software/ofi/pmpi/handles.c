/* Which handles of the program are requests of this library: a hash table with open addresses. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <pthread.h>
#include <stdlib.h>

#include "typed.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry {
	MPI_Request handle;
	void *object; /* NULL: free */
} *entries;
static size_t room, used; /* room is a power of two, and at least twice `used` */

static size_t place_of(MPI_Request handle)
{
	return (size_t)(((uintptr_t)handle >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (room - 1);
}

static void enter(MPI_Request handle, void *object)
{
	size_t at = place_of(handle);

	while (entries[at].object)
		at = (at + 1) & (room - 1);
	entries[at] = (struct entry){ handle, object };
	used++;
}

static bool grow(void)
{
	size_t former_room = room;
	struct entry *former = entries, *more;

	if (2 * (used + 1) <= room)
		return true;
	more = calloc(room ? 2 * room : 64, sizeof(*more));
	if (!more)
		return false;
	entries = more;
	room = room ? 2 * room : 64;
	used = 0;
	for (size_t i = 0; i < former_room; i++)
		if (former[i].object)
			enter(former[i].handle, former[i].object);
	free(former);
	return true;
}

bool handles_add(MPI_Request handle, void *object)
{
	bool good;

	pthread_mutex_lock(&lock);
	good = grow();
	if (good)
		enter(handle, object);
	pthread_mutex_unlock(&lock);
	return good;
}

void handles_remove(MPI_Request handle)
{
	size_t at;

	pthread_mutex_lock(&lock);
	if (used) {
		at = place_of(handle);
		while (entries[at].object && entries[at].handle != handle)
			at = (at + 1) & (room - 1);
		if (entries[at].object) {
			entries[at].object = NULL;
			used--;
			/* What follows may have been pushed on by this one. */
			for (at = (at + 1) & (room - 1); entries[at].object;
			     at = (at + 1) & (room - 1)) {
				struct entry moved = entries[at];

				entries[at].object = NULL;
				used--;
				enter(moved.handle, moved.object);
			}
		}
	}
	pthread_mutex_unlock(&lock);
}

void *handles_find(MPI_Request handle, void (*hold)(void *object))
{
	void *object = NULL;

	pthread_mutex_lock(&lock);
	for (size_t at = used ? place_of(handle) : 0; used && entries[at].object;
	     at = (at + 1) & (room - 1))
		if (entries[at].handle == handle) {
			object = entries[at].object;
			if (hold)
				hold(object);
			break;
		}
	pthread_mutex_unlock(&lock);
	return object;
}

bool handles_any(void)
{
	return __atomic_load_n(&used, __ATOMIC_RELAXED) > 0;
}
