/* Registrations that are kept, and memory that goes away below them.
 *
 * Side 0 sends and side 1 receives. Both use memory that they free, move, discard and map anew at
 * the same address. Every message is compared. The provider's counts say that registrations were
 * found again, and dropped each time that their memory went away.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "both.h"

#define BYTES  40960u
#define PLACES 20 /* more than are kept */

static struct {
	uint64_t hits, misses, gone;
} counts;

static void look(void)
{
	void (*get)(void *);
	char path[4096];

	snprintf(path, sizeof(path), "%s/libdibber-fi.so", getenv("FI_PROVIDER_PATH"));
	*(void **)&get = dlsym(dlopen(path, RTLD_NOW | RTLD_NOLOAD), "dibber_fi_cache_counts");
	need(get != NULL, "no counts");
	get(&counts);
}

static uint8_t *map(void *place)
{
	uint8_t *bytes = mmap(place, BYTES, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | (place ? MAP_FIXED : 0), -1, 0);

	need(bytes != MAP_FAILED, "mmap");
	return bytes;
}

/* One message with bytes that nobody sent before. */
static void pass(uint8_t *bytes)
{
	static unsigned int number;

	number++;
	for (unsigned int i = 0; i < BYTES; i++)
		bytes[i] = side ? 0xee : (uint8_t)(i * 7 + (i >> 8) + number * 31);
	if (side)
		post(fi_recv(ep, bytes, BYTES, NULL, peer, bytes));
	else
		post(fi_send(ep, bytes, BYTES, NULL, peer, bytes));
	wait_for(bytes);
	for (unsigned int i = 0; i < BYTES; i++)
		need(bytes[i] == (uint8_t)(i * 7 + (i >> 8) + number * 31), "byte %u of message %u",
		     i, number);
	meet();
}

/* Where the kernel refuses userfaultfd, as many containers do, nothing is kept. */
static int is_watched(void)
{
	int fd = (int)syscall(SYS_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void expect(uint64_t misses, uint64_t hits, uint64_t gone, const char *after)
{
	look();
	if (!is_watched())
		misses = hits = gone = 0;
	need(counts.misses == misses && counts.hits == hits && counts.gone == gone,
	     "%llu made, %llu found, %llu gone after %s", (unsigned long long)counts.misses,
	     (unsigned long long)counts.hits, (unsigned long long)counts.gone, after);
}

static void body(void)
{
	uint8_t *bytes, *other, *place[PLACES];

	open_endpoint(FI_MSG, FI_MR_PROV_KEY);
	bytes = map(NULL);
	pass(bytes);
	pass(bytes);
	expect(1, 1, 0, "two messages");
	/* The same address, other pages. */
	need(munmap(bytes, BYTES) == 0, "munmap");
	need(map(bytes) == bytes, "the same address");
	pass(bytes);
	expect(2, 1, 1, "munmap");
	map(bytes);
	pass(bytes);
	expect(3, 1, 2, "a mapping over it");
	need(madvise(bytes + 4096, 4096, MADV_DONTNEED) == 0, "madvise");
	pass(bytes);
	expect(4, 1, 3, "madvise of one page");
	other = mremap(bytes, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, map(NULL));
	need(other != MAP_FAILED, "mremap");
	need(map(bytes) == bytes, "the former address");
	pass(bytes);
	expect(5, 1, 4, "mremap");
	pass(other);
	expect(6, 1, 4, "the place it went to");
	/* The one that was used least lately makes room. */
	for (int i = 0; i < PLACES; i++) {
		place[i] = map(NULL);
		pass(place[i]);
	}
	pass(place[PLACES - 1]);
	expect(6 + PLACES, 2, 4, "many places");
	pass(place[0]);
	expect(7 + PLACES, 2, 4, "the first of many");
	close_endpoint();
}

int main(void)
{
	return run_both(body);
}
