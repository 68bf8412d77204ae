/* Memory for index lists and tables of pieces: first fit in units of 256 bytes. */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "arena.h"
#include "provider.h"

#define BYTES (4u << 20)
#define UNIT  256u
#define UNITS (BYTES / UNIT)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *memory;
static bool used[UNITS];
static struct dibber_fi_region *region;
static uint32_t key;

bool arena_open(struct dibber_fi_place *place)
{
	memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED) {
		memory = NULL;
		return false;
	}
	if (provider.open(memory, BYTES, &region, place)) {
		munmap(memory, BYTES);
		memory = NULL;
		return false;
	}
	key = place->key;
	return true;
}

/* Types may outlive MPI's communication, so the memory stays. */
void arena_close(void)
{
	if (region)
		provider.close(region);
	region = NULL;
}

void *arena_get(size_t length)
{
	size_t wanted = (length + UNIT - 1) / UNIT, run = 0;
	void *found = NULL;

	if (!memory || !length || wanted > UNITS)
		return NULL;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < UNITS && !found; i++) {
		run = used[i] ? 0 : run + 1;
		if (run < wanted)
			continue;
		memset(&used[i + 1 - wanted], 1, wanted * sizeof(used[0]));
		found = memory + (i + 1 - wanted) * UNIT;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

void arena_put(void *bytes, size_t length)
{
	size_t first;

	if (!bytes)
		return;
	first = (size_t)((uint8_t *)bytes - memory) / UNIT;
	pthread_mutex_lock(&lock);
	memset(&used[first], 0, (length + UNIT - 1) / UNIT * sizeof(used[0]));
	pthread_mutex_unlock(&lock);
}

uint64_t arena_offset(const void *bytes)
{
	return (uint64_t)((const uint8_t *)bytes - memory);
}

void *arena_at(uint64_t offset)
{
	return memory + offset;
}

uint32_t arena_key(void)
{
	return key;
}
