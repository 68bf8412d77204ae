/* Random transfers between PEs by all calls of dibber_shmem.h.
 *
 *	operations SEED COUNT
 *
 * In each round one PE works on the heap of another one, which a copy of its own foresees. At the
 * end PE 0 prints "SHARE BYTES": how fast 64 KiB by shmem_double_iput() at stride 4 are, in percent
 * of a contiguous put.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <dibber_shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS	 4096
#define ELEMENTS 8192

static uint64_t state;

/* xorshift64*, Vigna 2016. All PEs draw the same numbers. */
static int draw(int below)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (int)((state * UINT64_C(2685821657736338717) >> 32) % (uint64_t)below);
}

#define need(condition, ...)                                                          \
	do {                                                                          \
		if (!(condition)) {                                                   \
			fprintf(stderr, "PE %d, line %d: ", shmem_my_pe(), __LINE__); \
			fprintf(stderr, __VA_ARGS__);                                 \
			fprintf(stderr, "\n");                                        \
			shmem_global_exit(3);                                         \
		}                                                                     \
	} while (0)

static int32_t *heap, *local;		  /* symmetric */
static int32_t outside[WORDS];		  /* not symmetric */
static int32_t shadow[WORDS], got[WORDS]; /* what the other's heap has; what a get brings */

static void fill(int32_t *words, unsigned int seed)
{
	for (unsigned int i = 0; i < WORDS; i++)
		words[i] = (int32_t)((seed + i) * 2654435761u);
}

/* A transfer of `from` with the heap of `to`. */
static void round_of(int from, int to)
{
	int kind = draw(6), blocks = 1 + draw(200),
	    block = kind == 4 || kind == 5 ? 1 + draw(4) : 1;
	int there = (block + draw(4)) * (draw(4) ? 1 : -1),
	    here = (block + draw(5)) * (draw(4) ? 1 : -1);
	unsigned int seed = (unsigned int)draw(1 << 30);
	int32_t *mine = draw(2) ? local : outside, *near, *far;
	int near_at = here < 0 ? -here * blocks : draw(100),
	    far_at = there < 0 ? -there * blocks : draw(100);

	fill(heap, seed + 1);
	fill(mine, seed);
	shmem_barrier_all();
	fill(shadow, seed + 1);
	fill(got, seed);
	near = mine + near_at;
	far = heap + far_at;
	for (int i = 0; i < blocks; i++)
		for (int k = 0; k < block; k++) {
			if (kind % 2 == 0)
				shadow[far_at + i * there + k] = got[near_at + i * here + k];
		}
	if (kind % 2)
		for (int i = 0; i < blocks; i++)
			for (int k = 0; k < block; k++)
				got[near_at + i * here + k] = shadow[far_at + i * there + k];
	if (shmem_my_pe() == from) {
		switch (kind) {
		case 0:
		case 2:
			if (seed % 2)
				shmem_int32_iput(far, near, there, here, (size_t)blocks, to);
			else
				shmem_int_iput(far, near, there, here, (size_t)blocks, to);
			break;
		case 1:
		case 3:
			shmem_int32_iget(near, far, here, there, (size_t)blocks, to);
			break;
		case 4:
			shmem_uint32_ibput((uint32_t *)far, (uint32_t *)near, there, here,
					   (size_t)block, (size_t)blocks, to);
			break;
		default:
			shmem_uint32_ibget((uint32_t *)near, (uint32_t *)far, here, there,
					   (size_t)block, (size_t)blocks, to);
		}
		if (kind % 2)
			need(!memcmp(mine, got, sizeof(got)), "a get of kind %d", kind);
	}
	shmem_barrier_all();
	if (shmem_my_pe() == to && kind % 2 == 0)
		need(!memcmp(heap, shadow, sizeof(shadow)), "a put of kind %d, %d blocks", kind,
		     blocks);
	shmem_barrier_all();
}

static void plain(int from, int to)
{
	size_t words = (size_t)(1 + draw(draw(2) ? 9 : 900));
	unsigned int seed = (unsigned int)draw(1 << 30);

	fill(heap, seed);
	fill(local, seed + 1);
	fill(outside, seed + 2);
	shmem_barrier_all();
	if (shmem_my_pe() == from) {
		shmem_int32_put_nbi(heap + 1, local, words, to);
		shmem_int32_put(heap + 2000, outside, words, to);
		shmem_int32_p(heap + 4000, 77, to);
		shmem_quiet();
		need(shmem_int32_g(heap + 4000, to) == 77, "a single value");
		shmem_int32_get(outside, heap + 1, words, to);
		need(!memcmp(outside, local, 4 * words), "a get of what was put");
		shmem_int32_get_nbi(local + 3000, heap + 2000, words, to);
		shmem_quiet();
		for (size_t i = 0; i < words; i++)
			need(local[3000 + i] == (int32_t)((seed + 2 + i) * 2654435761u), "word %zu",
			     i);
	}
	shmem_barrier_all();
	need(shmem_my_pe() != to || heap[0] == (int32_t)(seed * 2654435761u), "a word beside it");
	shmem_barrier_all();
}

/* All but PE 0 add to a word of PE 0, which waits for the sum. */
static void atomics(uint64_t *word, int *flag)
{
	int number = shmem_my_pe(), count = shmem_n_pes();

	*word = 0;
	*flag = -1;
	shmem_barrier_all();
	if (number) {
		uint64_t former = shmem_uint64_atomic_fetch_add(word, 5, 0);

		need(former % 5 == 0 && former < 5 * (uint64_t)count, "a sum of %d", (int)former);
		shmem_uint64_atomic_inc(word, 0);
		while (shmem_uint64_atomic_fetch(word, 0) % 6 &&
		       shmem_uint64_atomic_fetch(word, 0) % 5)
			;
	} else {
		shmem_uint64_wait_until(word, SHMEM_CMP_EQ, 6 * (uint64_t)(count - 1));
		need(shmem_uint64_atomic_fetch(word, 0) == 6 * (uint64_t)(count - 1), "the sum");
	}
	shmem_barrier_all();
	if (number == 1) {
		need(shmem_int_atomic_swap(flag, -7, 0) == -1, "a swap");
		need(shmem_int_atomic_compare_swap(flag, 3, 9, 0) == -7, "a compare that differs");
		need(shmem_int_atomic_compare_swap(flag, -7, 9, 0) == -7,
		     "a compare that is equal");
		shmem_int_atomic_add(flag, -4, 0);
		need(shmem_int_atomic_fetch(flag, 0) == 5, "an added value");
		shmem_int_atomic_set(flag, 11, 0);
	}
	if (number == 0)
		shmem_int_wait_until(flag, SHMEM_CMP_EQ, 11);
	shmem_barrier_all();
}

static void heaps(void)
{
	char *one = shmem_malloc(1000), *two = shmem_align(4096, 10), *three;

	need(one && two && (uintptr_t)two % 4096 == 0, "memory of the heap");
	need(!shmem_malloc((size_t)1 << 40) && !shmem_malloc(0), "too much and nothing");
	need(shmem_ptr(one, shmem_my_pe()) == one && !shmem_ptr(one, shmem_my_pe() ^ 1),
	     "shmem_ptr");
	shmem_free(one);
	three = shmem_calloc(10, 100);
	need(three == one && !three[999], "a block that was freed is not used again");
	shmem_free(two);
	shmem_free(three);
	shmem_free(NULL);
}

static void timed(void)
{
	double *room = shmem_malloc(4 * ELEMENTS * sizeof(double)), begin, contiguous = 0,
	       strided = 0;

	for (int i = 0; i < 2 && shmem_my_pe() == 0; i++) {
		begin = dibber_shmem_seconds();
		shmem_double_put(room, room, ELEMENTS, 1);
		contiguous = dibber_shmem_seconds() - begin;
		begin = dibber_shmem_seconds();
		shmem_double_iput(room, room, 4, 1, ELEMENTS, 1);
		strided = dibber_shmem_seconds() - begin;
	}
	if (shmem_my_pe() == 0)
		printf("%.2f\n", 100 * contiguous / strided);
	shmem_free(room);
}

int main(int argc, char **argv)
{
	uint64_t *word;
	int *flag;

	shmem_init();
	state = strtoull(argv[1], NULL, 0) * 2 + 1;
	heap = shmem_malloc(WORDS * sizeof(*heap));
	local = shmem_malloc(WORDS * sizeof(*local));
	word = shmem_malloc(sizeof(*word));
	flag = shmem_malloc(sizeof(*flag));
	for (int i = 0; i < atoi(argv[argc - 1]); i++) {
		int from = draw(shmem_n_pes());

		round_of(from, draw(shmem_n_pes()));
		if (i % 8 == 0)
			plain(from, (from + 1) % shmem_n_pes());
	}
	atomics(word, flag);
	heaps();
	timed();
	shmem_finalize();
	return 0;
}
