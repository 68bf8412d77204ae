/* Puts and gets, contiguous and strided: one command each. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <string.h>

#include "shmem.h"

/* Memory of this PE during a transfer. */
struct local {
	uint32_t key;
	uint64_t offset; /* of the first byte that is given */
	struct dib_region *region;
};

static struct local hold(const void *memory, uint64_t bytes, unsigned int rights)
{
	struct local local = { .key = dib_key(pe.region) };

	if (in_heap(memory, bytes)) {
		local.offset = (uintptr_t)memory - (uintptr_t)pe.heap;
		return local;
	}
	check(dib_register(pe.endpoint, (void *)(uintptr_t)memory, bytes, rights, &local.region),
	      "local memory");
	local.key = dib_key(local.region);
	return local;
}

/* Memory outside the heap is held until the command has ended. */
static void end(const struct local *local, const struct operation *operation, bool waits)
{
	if (waits || local->region)
		wait_for(operation);
	if (local->region)
		check(dib_unregister(local->region), "local memory");
}

static void too_long(uint64_t bytes, const char *what)
{
	if (bytes > DIBBER_MAX_LENGTH)
		fail("%s: %llu bytes are too many", what, (unsigned long long)bytes);
}

/* An operation that nobody waits for has no memory of its own. */
static struct operation *of(struct operation *operation, const struct local *local, bool waits)
{
	return waits || local->region ? operation : NULL;
}

static void put(void *dest, const void *source, size_t bytes, int other, bool waits)
{
	uint64_t offset = offset_of(dest, bytes, other, "put");
	struct operation operation = { 0 };
	struct dib_delivery delivery;
	struct local local;

	too_long(bytes, "put");
	if (!bytes)
		return;
	if (other == (int)pe.number) {
		memmove(dest, source, bytes);
		return;
	}
	if (bytes <= DIBBER_INLINE_BYTES) {
		delivery = delivery_to(other, NULL, DIBBER_FLAG_NOTICE);
		issue(dib_put_inline(pe.endpoint, &delivery, source, pe.seats[other].key, offset,
				     (uint32_t)bytes),
		      "put");
		return;
	}
	local = hold(source, bytes, DIBBER_RIGHT_LOCAL_READ);
	delivery = delivery_to(other, of(&operation, &local, waits), DIBBER_FLAG_NOTICE);
	issue(dib_put(pe.endpoint, &delivery, local.key, local.offset, pe.seats[other].key, offset,
		      (uint32_t)bytes),
	      "put");
	end(&local, &operation, waits);
}

static void get(void *dest, const void *source, size_t bytes, int other, bool waits)
{
	uint64_t offset = offset_of(source, bytes, other, "get");
	struct operation operation = { 0 };
	struct dib_delivery delivery;
	struct local local;

	too_long(bytes, "get");
	if (!bytes)
		return;
	if (other == (int)pe.number) {
		memmove(dest, source, bytes);
		return;
	}
	if (bytes <= sizeof(uint64_t) && !in_heap(dest, bytes)) {
		/* A single value goes by way of the heap, because a registration takes longer. */
		void *landing = &((struct control *)(void *)pe.heap)->landing;

		get(landing, source, bytes, other, true);
		memcpy(dest, landing, bytes);
		return;
	}
	local = hold(dest, bytes, DIBBER_RIGHT_LOCAL_WRITE);
	delivery = delivery_to(other, of(&operation, &local, waits), 0);
	issue(dib_get(pe.endpoint, &delivery, pe.seats[other].key, offset, local.key, local.offset,
		      (uint32_t)bytes),
	      "get");
	end(&local, &operation, waits);
}

void shmem_putmem(void *dest, const void *source, size_t bytes, int other)
{
	put(dest, source, bytes, other, true);
}

void shmem_getmem(void *dest, const void *source, size_t bytes, int other)
{
	get(dest, source, bytes, other, true);
}

void shmem_putmem_nbi(void *dest, const void *source, size_t bytes, int other)
{
	put(dest, source, bytes, other, false);
}

void shmem_getmem_nbi(void *dest, const void *source, size_t bytes, int other)
{
	get(dest, source, bytes, other, false);
}

/* Strides ---------------------------------------------------------------------------------------
 */

/* A side of a strided transfer: its walk, and how far it reaches before and behind its address. */
struct side {
	struct dib_walk walk;
	uint64_t before, bytes;
};

static struct side side_of(ptrdiff_t stride, size_t block, size_t blocks, size_t size,
			   const char *what)
{
	struct side side = { .walk = { .block = (uint32_t)(block * size) } };
	int64_t step, span;

	if (__builtin_mul_overflow((int64_t)stride, (int64_t)size, &step) ||
	    __builtin_mul_overflow(step, (int64_t)(blocks - 1), &span) || span == INT64_MIN)
		fail("%s: the stride %lld is too long", what, (long long)stride);
	side.before = span < 0 ? (uint64_t)-span : 0;
	side.bytes = (uint64_t)(span < 0 ? -span : span) + block * size;
	if (step == (int64_t)(block * size)) {
		side.walk.block *= (uint32_t)blocks;
	} else if (blocks > 1) {
		side.walk.levels = 1;
		side.walk.count[0] = (uint32_t)blocks;
		side.walk.stride[0] = step;
	}
	return side;
}

static void copy(uint8_t *dest, const uint8_t *source, int64_t dst, int64_t sst, size_t bytes,
		 size_t blocks)
{
	for (size_t i = 0; i < blocks; i++)
		memcpy(dest + (int64_t)i * dst, source + (int64_t)i * sst, bytes);
}

/* `far` is symmetric memory at the other PE, `near` memory here. */
static void stride(bool gets, void *far, const void *near, ptrdiff_t far_stride,
		   ptrdiff_t near_stride, size_t block, size_t blocks, size_t size, int other)
{
	const char *what = gets ? "iget" : "iput";
	struct operation operation = { 0 };
	struct dib_delivery delivery;
	struct side there, here;
	struct local local;
	uint64_t total, offset;

	if (__builtin_mul_overflow((uint64_t)block, (uint64_t)size, &total) ||
	    __builtin_mul_overflow(total, (uint64_t)blocks, &total))
		total = UINT64_MAX;
	too_long(total, what);
	if (!total) {
		offset_of(far, 0, other, what);
		return;
	}
	there = side_of(far_stride, block, blocks, size, what);
	here = side_of(near_stride, block, blocks, size, what);
	offset = offset_of((const uint8_t *)far - there.before, there.bytes, other, what);
	if (other == (int)pe.number) {
		int64_t far_step = (int64_t)(far_stride * (ptrdiff_t)size);
		int64_t near_step = (int64_t)(near_stride * (ptrdiff_t)size);

		if (gets)
			copy((uint8_t *)(uintptr_t)near, far, near_step, far_step, block * size,
			     blocks);
		else
			copy(far, near, far_step, near_step, block * size, blocks);
		return;
	}
	local = hold((const uint8_t *)near - here.before, here.bytes,
		     gets ? DIBBER_RIGHT_LOCAL_WRITE : DIBBER_RIGHT_LOCAL_READ);
	there.walk.key = pe.seats[other].key;
	there.walk.offset = offset + there.before;
	here.walk.key = local.key;
	here.walk.offset = local.offset + here.before;
	delivery = delivery_to(other, &operation, gets ? 0 : DIBBER_FLAG_NOTICE);
	if (gets)
		issue(dib_get_strided(pe.endpoint, &delivery, &there.walk, &here.walk), what);
	else
		issue(dib_put_strided(pe.endpoint, &delivery, &here.walk, &there.walk), what);
	end(&local, &operation, true);
}

void dibber_shmem_iput(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,
		       size_t nblocks, size_t size, int other)
{
	stride(false, dest, source, dst, sst, bsize, nblocks, size, other);
}

void dibber_shmem_iget(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,
		       size_t nblocks, size_t size, int other)
{
	stride(true, (void *)(uintptr_t)source, dest, sst, dst, bsize, nblocks, size, other);
}
