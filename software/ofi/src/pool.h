/* Memory of one size that comes and goes with each message: kept for the next one, because
 * malloc(3) and free(3) together take longer than the rest of a short message. The caller holds the
 * provider's lock.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_POOL_H
#define DFI_POOL_H

#include <stdlib.h>

#define POOL_KEEPS 64u /* free pieces at most */

struct pool {
	struct pool_piece {
		struct pool_piece *next;
	} *free;
	unsigned int count;
};

/* `size` bytes, the same in each call for a pool, with any content; NULL without memory. */
static inline void *pool_get(struct pool *pool, size_t size)
{
	struct pool_piece *piece = pool->free;

	if (!piece)
		return malloc(size);
	pool->free = piece->next;
	pool->count--;
	return piece;
}

static inline void pool_put(struct pool *pool, void *memory)
{
	struct pool_piece *piece = memory;

	if (pool->count == POOL_KEEPS) {
		free(memory);
		return;
	}
	piece->next = pool->free;
	pool->free = piece;
	pool->count++;
}

#endif
