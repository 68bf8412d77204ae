/* The symmetric heap: first fit, with the list of its blocks outside of it, so that no transfer can
 * harm the list. All PEs make the same calls, so their lists are the same.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>
#include <string.h>

#include "shmem.h"

#define UNIT 64u

struct block {
	struct block *next;
	uint64_t offset, length;
	bool used;
};

static struct block *blocks;

static struct block *new_block(uint64_t offset, uint64_t length, struct block *next)
{
	struct block *block = malloc(sizeof(*block));

	if (!block)
		fail("no memory for the list of the heap");
	*block = (struct block){ .next = next, .offset = offset, .length = length };
	return block;
}

void heap_open(void)
{
	uint64_t begin = (sizeof(struct control) + UNIT - 1) / UNIT * UNIT;

	while (blocks) {
		struct block *next = blocks->next;

		free(blocks);
		blocks = next;
	}
	blocks = new_block(begin, pe.heap_bytes - begin, NULL);
}

static void split(struct block *block, uint64_t length)
{
	if (block->length == length)
		return;
	block->next = new_block(block->offset + length, block->length - length, block->next);
	block->length = length;
}

static void *get(size_t alignment, size_t size)
{
	uint64_t wanted = (size + UNIT - 1) / UNIT * UNIT;

	for (struct block *block = blocks; block; block = block->next) {
		uint64_t address = (uintptr_t)pe.heap + block->offset;
		uint64_t gap = (alignment - address % alignment) % alignment;

		if (block->used || wanted < size || gap > block->length ||
		    block->length - gap < wanted)
			continue;
		if (gap) {
			split(block, gap);
			block = block->next;
		}
		split(block, wanted);
		block->used = true;
		return pe.heap + block->offset;
	}
	return NULL;
}

void *shmem_align(size_t alignment, size_t size)
{
	void *memory = NULL;

	if (!pe.on)
		fail("shmem_malloc before shmem_init");
	if (alignment && !(alignment & (alignment - 1)) && size)
		memory = get(alignment < UNIT ? UNIT : alignment, size);
	shmem_barrier_all();
	return memory;
}

void *shmem_malloc(size_t size)
{
	return shmem_align(UNIT, size);
}

void *shmem_calloc(size_t count, size_t size)
{
	void *memory;

	if (!pe.on)
		fail("shmem_calloc before shmem_init");
	memory = !size || count > SIZE_MAX / size ? NULL : get(UNIT, count * size);
	if (memory)
		memset(memory, 0, count * size);
	shmem_barrier_all();
	return memory;
}

static void join(void)
{
	for (struct block *block = blocks; block; block = block->next)
		while (!block->used && block->next && !block->next->used) {
			struct block *next = block->next;

			block->length += next->length;
			block->next = next->next;
			free(next);
		}
}

void shmem_free(void *memory)
{
	struct block *block = blocks;

	if (!memory)
		return;
	shmem_barrier_all();
	while (block && (pe.heap + block->offset != memory || !block->used))
		block = block->next;
	if (!block)
		fail("shmem_free of memory that shmem_malloc did not return");
	block->used = false;
	join();
}

bool in_heap(const void *memory, uint64_t bytes)
{
	uint64_t offset = (uintptr_t)memory - (uintptr_t)pe.heap;

	return offset <= pe.heap_bytes && bytes <= pe.heap_bytes - offset;
}

uint64_t offset_of(const void *memory, uint64_t bytes, int other, const char *what)
{
	if (!pe.on)
		fail("%s before shmem_init", what);
	if (other < 0 || other >= (int)pe.count)
		fail("%s: there is no PE %d", what, other);
	if (!in_heap(memory, bytes))
		fail("%s: %llu bytes at %p are not in the symmetric heap", what,
		     (unsigned long long)bytes, memory);
	return (uintptr_t)memory - (uintptr_t)pe.heap;
}

void *shmem_ptr(const void *dest, int other)
{
	return other == (int)pe.number && in_heap(dest, 1) ? (void *)(uintptr_t)dest : NULL;
}
