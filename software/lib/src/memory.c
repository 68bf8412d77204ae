/* Memory that the card can reach: shared allocations, bus addresses. */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "card.h"
#include "error.h"
#include "memory.h"
#include "protection.h"
#include "transport.h"

#define LOW_FIRST  0x10000000ull /* bus addresses below 4 GiB, for short TLP headers */
#define LOW_LAST   0xfee00000ull /* PCs take interrupts from here on */
#define HIGH_FIRST 0x100000000ull
#define HIGH_LAST  0x1000000000000ull

/* Shared allocations --------------------------------------------------------------------------- */

struct allocation {
	struct allocation *next;
	uint8_t *memory;
	size_t length; /* whole pages */
	int fd;
	bool own; /* the library's own: children of fork() do not have it */
};

static pthread_mutex_t allocation_lock = PTHREAD_MUTEX_INITIALIZER;
static struct allocation *allocations;

static void lock_allocations(void)
{
	pthread_mutex_lock(&allocation_lock);
}

static void unlock_allocations(void)
{
	pthread_mutex_unlock(&allocation_lock);
}

/* In a child: forget what the child does not have. The same addresses may come to be memory of its
 * own. */
static void forget_allocations(void)
{
	struct allocation **link = &allocations, *a;

	while ((a = *link) != NULL) {
		if (a->own) {
			*link = a->next;
			close(a->fd);
		} else {
			link = &a->next;
		}
	}
	unlock_allocations();
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int unprepared; /* errno of pthread_atfork(), or 0 */

static void prepare(void)
{
	unprepared = pthread_atfork(lock_allocations, unlock_allocations, forget_allocations);
}

static int allocate(size_t length, bool own, void **memory)
{
	struct allocation *a;
	int why;

	pthread_once(&once, prepare);
	if (unprepared)
		return dib_fail(DIB_ERR_NO_MEMORY, "pthread_atfork: no memory");
	if (!memory || length == 0 || length > SIZE_MAX - DIB_PAGE)
		return dib_fail(DIB_ERR_ARGUMENT, "cannot allocate %zu bytes", length);
	a = calloc(1, sizeof(*a));
	if (!a)
		return dib_fail(DIB_ERR_NO_MEMORY, "no memory for an allocation");
	a->length = (length + DIB_PAGE - 1) & ~(size_t)(DIB_PAGE - 1);
	a->fd = memfd_create("dibber", MFD_CLOEXEC);
	if (a->fd < 0) {
		why = errno;
		free(a);
		return dib_fail(DIB_ERR_NO_MEMORY, "memfd_create: %s", strerror(why));
	}
	a->memory = MAP_FAILED;
	if (ftruncate(a->fd, (off_t)a->length) == 0)
		a->memory = mmap(NULL, a->length, PROT_READ | PROT_WRITE, MAP_SHARED, a->fd, 0);
	if (a->memory == MAP_FAILED) {
		why = errno;
		close(a->fd);
		free(a);
		return dib_fail(DIB_ERR_NO_MEMORY, "%zu bytes of shared memory: %s", length,
				strerror(why));
	}
	a->own = own;
	if (own)
		madvise(a->memory, a->length, MADV_DONTFORK);
	pthread_mutex_lock(&allocation_lock);
	a->next = allocations;
	allocations = a;
	pthread_mutex_unlock(&allocation_lock);
	*memory = a->memory;
	return 0;
}

int dib_alloc(size_t length, void **memory)
{
	return allocate(length, false, memory);
}

int dib_alloc_own(size_t length, void **memory)
{
	return allocate(length, true, memory);
}

void dib_free(void *memory)
{
	struct allocation **link, *a;

	pthread_mutex_lock(&allocation_lock);
	for (link = &allocations; (a = *link) != NULL; link = &a->next) {
		if (a->memory == memory) {
			*link = a->next;
			break;
		}
	}
	pthread_mutex_unlock(&allocation_lock);
	if (!a)
		return;
	munmap(a->memory, a->length);
	close(a->fd);
	free(a);
}

/* The descriptor of [memory, memory + length) when one allocation holds it all, or -1. */
static int find_descriptor(const uint8_t *memory, size_t length, uint64_t *offset)
{
	int fd = -1;

	pthread_mutex_lock(&allocation_lock);
	for (const struct allocation *a = allocations; a; a = a->next) {
		if (memory >= a->memory && (size_t)(memory - a->memory) <= a->length &&
		    length <= a->length - (size_t)(memory - a->memory)) {
			*offset = (uint64_t)(memory - a->memory);
			fd = a->fd;
			break;
		}
	}
	pthread_mutex_unlock(&allocation_lock);
	return fd;
}

/* Bus addresses -------------------------------------------------------------------------------- */

static uint64_t aligned(uint64_t address, uint64_t alignment)
{
	return (address + alignment - 1) & ~(alignment - 1);
}

/* Put `map` into the first gap of [first, last) that holds it, followed by a free page. */
static bool place_in(struct dib_card *card, struct dib_map *map, uint64_t alignment, uint64_t first,
		     uint64_t last)
{
	struct dib_map **link = &card->maps;
	uint64_t at = aligned(first, alignment);

	for (; *link; link = &(*link)->next) {
		const struct dib_mapping *m = &(*link)->mapping;

		if (m->iova >= at && m->iova - at >= map->mapping.size + DIB_PAGE)
			break;
		if (m->iova + m->size + DIB_PAGE > at)
			at = aligned(m->iova + m->size + DIB_PAGE, alignment);
	}
	if (at >= last || map->mapping.size > last - at)
		return false;
	map->mapping.iova = at;
	map->next = *link;
	*link = map;
	return true;
}

/* As place_in(), among the addresses that the transport can map. */
static bool place(struct dib_card *card, struct dib_map *map, uint64_t alignment, uint64_t first,
		  uint64_t last)
{
	for (unsigned int i = 0; i < card->transport->usable_count; i++) {
		const struct dib_range *range = &card->transport->usable[i];

		if (place_in(card, map, alignment, range->first > first ? range->first : first,
			     range->last < last ? range->last : last))
			return true;
	}
	return false;
}

static void displace(struct dib_card *card, struct dib_map *map)
{
	struct dib_map **link = &card->maps;

	while (*link != map)
		link = &(*link)->next;
	*link = map->next;
}

static int map_memory(struct dib_card *card, void *memory, size_t length, uint64_t alignment,
		      bool writable, bool queues, struct dib_map **out)
{
	struct dib_map *map = calloc(1, sizeof(*map));
	uint64_t before = (uintptr_t)memory & (DIB_PAGE - 1);
	struct dib_mapping *m;
	bool placed;
	int rc;

	if (!map)
		return dib_fail(DIB_ERR_NO_MEMORY, "no memory for a mapping");
	m = &map->mapping;
	m->memory = (uint8_t *)memory - before;
	m->size = (before + length + DIB_PAGE - 1) & ~(uint64_t)(DIB_PAGE - 1);
	m->first = before;
	m->last = writable ? before + length : before;
	m->end = before + length;
	m->queues = queues;
	m->fd = find_descriptor(m->memory, m->size, &m->fd_offset);
	rc = m->fd < 0 ? dib_check_memory(memory, length, writable) : 0;
	if (rc) {
		free(map);
		return rc;
	}
	if (card->iova_base)
		placed = place(card, map, alignment, card->iova_base, HIGH_LAST);
	else
		placed = place(card, map, alignment, LOW_FIRST, LOW_LAST) ||
			 place(card, map, alignment, HIGH_FIRST, HIGH_LAST);
	if (!placed) {
		free(map);
		if (card->transport->copies)
			return dib_fail(
				DIB_ERR_LIMIT,
				"no room for %zu bytes more in the %u KiB of memory on the card",
				length, card->transport->shared_bytes >> 10);
		return dib_fail(DIB_ERR_LIMIT, "no bus addresses left for %zu bytes", length);
	}
	rc = card->transport->ops->map(card->transport, m);
	if (rc) {
		displace(card, map);
		free(map);
		return rc;
	}
	if (m->fd < 0)
		card->by_message++;
	*out = map;
	return 0;
}

int dib_map_aligned(struct dib_card *card, void *memory, size_t length, uint64_t alignment,
		    bool writable, struct dib_map **map)
{
	return map_memory(card, memory, length, alignment, writable, false, map);
}

int dib_map(struct dib_card *card, void *memory, size_t length, bool writable, struct dib_map **map)
{
	return map_memory(card, memory, length, DIB_PAGE, writable, false, map);
}

int dib_map_queues(struct dib_card *card, void *memory, size_t length, struct dib_map **map)
{
	return map_memory(card, memory, length, DIB_PAGE, true, true, map);
}

int dib_unmap(struct dib_card *card, struct dib_map *map)
{
	int rc = card->transport->ops->unmap(card->transport, &map->mapping);

	if (map->mapping.fd < 0)
		card->by_message--;
	displace(card, map);
	free(map);
	return rc;
}
