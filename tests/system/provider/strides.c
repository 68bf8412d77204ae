/* Runs of short writes and reads at constant distances, as engines issue them for a vector.
 *
 *	strides SEED COUNT PROVIDER_KEYS
 *
 * Every byte is compared, those between the blocks too. At the end side 0 prints how many
 * nanoseconds of simulated time 1,000 writes of 8 bytes took.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <dlfcn.h>

#include "both.h"

#define WINDOW	 100000u
#define BLOCKS	 300u
#define ELEMENTS 1000u

static uint64_t seed;
static unsigned int count;
static int provider_keys;
static uint8_t *memory, *shadow, *bytes;
static struct fid_mr *window, *local;
static uint64_t key;

static void wait_for_all(unsigned int entries)
{
	struct fi_cq_tagged_entry entry;

	while (entries--) {
		int error = next_entry(&entry);

		need(!error, "an operation failed: %s", fi_strerror(error));
	}
}

/* One run, sometimes with a block that does not belong to it, or a message in its midst. */
static void run(int writes)
{
	unsigned int block = 1 + (unsigned int)draw(draw(2) ? 16 : 600);
	unsigned int distance = block + (unsigned int)draw(100);
	unsigned int blocks = 1 + (unsigned int)draw(BLOCKS), ends = 0;
	void *desc = draw(2) ? fi_mr_desc(local) : NULL;
	int backwards = (int)draw(2), injects = !draw(4) && writes;

	if (blocks > WINDOW / distance)
		blocks = WINDOW / distance;
	for (unsigned int i = 0; i < blocks * block; i++)
		bytes[i] = writes ? (uint8_t)draw(256) : 0xee;
	for (unsigned int i = 0; i < blocks; i++) {
		unsigned int number = backwards ? blocks - 1 - i : i, place = number * distance;
		uint8_t *at = bytes + number * block;

		if (writes)
			memcpy(shadow + place, at, block);
		if (!writes)
			post(fi_read(ep, at, block, desc, peer, place, key, at));
		else if (injects)
			post(fi_inject_write(ep, at, block, peer, place, key));
		else
			post(fi_write(ep, at, block, desc, peer, place, key, at));
		ends += !injects;
		if (injects)
			memset(at, 0xdd, block); /* the provider has copied it */
		if (!draw(300)) {
			uint8_t one = shadow[7];

			post(fi_write(ep, &one, 1, NULL, peer, 7, key, &one));
			wait_for_all(ends + 1);
			ends = 0;
		}
	}
	if (injects) {
		/* Nothing says that they have ended, but another write after them does. */
		bytes[0] = shadow[7];
		post(fi_write(ep, bytes, 1, NULL, peer, 7, key, bytes));
		ends++;
	}
	wait_for_all(ends);
	for (unsigned int i = 0; i < blocks && !writes; i++)
		need(!memcmp(bytes + i * block, shadow + i * distance, block),
		     "block %u of %u bytes at a distance of %u", i, block, distance);
}

static uint64_t (*clock_ps(void))(void)
{
	static uint64_t (*now_ps)(void);
	char path[4096];

	snprintf(path, sizeof(path), "%s/libdibber-fi.so", getenv("FI_PROVIDER_PATH"));
	*(void **)&now_ps = dlsym(dlopen(path, RTLD_NOW | RTLD_NOLOAD), "dibber_fi_now_ps");
	return now_ps;
}

static void body(void)
{
	uint64_t mine, begin, distant = 1 << 20;
	struct fi_cq_tagged_entry entry;
	uint8_t *theirs = malloc(WINDOW);

	open_endpoint(FI_MSG | FI_TAGGED | FI_RMA, provider_keys ? FI_MR_PROV_KEY : 0);
	memory = calloc(1, WINDOW);
	shadow = calloc(1, WINDOW);
	bytes = malloc(WINDOW);
	check(fi_mr_reg(domain, memory, WINDOW, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 3, 0, &window,
			NULL));
	check(fi_mr_reg(domain, bytes, WINDOW, FI_READ | FI_WRITE, 0, 5, 0, &local, NULL));
	mine = fi_mr_key(window);
	exchange(&mine, &key, sizeof(mine));
	state = seed * 31 + (uint64_t)side + 5;
	for (unsigned int i = 0; i < count; i++)
		run((int)draw(2));
	meet();
	exchange(shadow, theirs, WINDOW);
	need(!memcmp(theirs, memory, WINDOW), "the memory that was written");

	/* The middle of a run leads out of the region: each of its operations fails, and tells it.
	 */
	for (unsigned int i = 0; i < 8; i++)
		post(fi_write(ep, bytes, 8, NULL, peer, distant + 16 * i, key, bytes));
	for (unsigned int i = 0; i < 8; i++)
		need(next_entry(&entry) == FI_EINVAL, "a write outside");
	meet();
	if (side == 0) {
		for (int round = 0; round < 2; round++) {
			begin = clock_ps()();
			for (unsigned int i = 0; i < ELEMENTS; i++)
				post(fi_write(ep, bytes + 8 * i, 8, NULL, peer, 64 * i, key,
					      bytes));
			wait_for_all(ELEMENTS);
		}
		printf("%llu\n", (unsigned long long)(clock_ps()() - begin) / 1000);
	}
	meet();
	check(fi_close(&window->fid));
	check(fi_close(&local->fid));
	close_endpoint();
}

int main(int argc, char **argv)
{
	need(argc == 4, "strides SEED COUNT PROVIDER_KEYS");
	seed = strtoull(argv[1], NULL, 0);
	count = (unsigned int)strtoul(argv[2], NULL, 0);
	provider_keys = atoi(argv[3]);
	return run_both(body);
}
