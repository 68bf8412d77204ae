/* What it costs to register memory, and how the card reaches it:
 * driver_registration FIRMWARE /dev/dibber0 /dev/dibber1 */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <linux/memfd.h>
#include <time.h>

#include "driver.h"

#define PAGE  4096u
#define BYTES (512 * PAGE) /* 2 MiB */

static const char *card;

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

static void *new_memory(size_t bytes)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* What a registration of `bytes` costs: page size as the driver tells it, microseconds to register
 * and to withdraw. */
static void measure(const char *name, void *memory, uint64_t bytes)
{
	enum { TIMES = 5 };
	struct dibber_region_add add = { 0 };
	struct endpoint e;
	uint64_t begin, added = 0, removed = 0;

	memset(memory, 1, bytes);
	expect("endpoint", open_endpoint(card, &e), 0);
	for (int i = 0; i < TIMES; i++) {
		begin = now_us();
		expect("region", add_region(e.fd, memory, bytes, ALL_RIGHTS, &add), 0);
		added += now_us() - begin;
		begin = now_us();
		expect("removal", remove_region(e.fd, add.key), 0);
		removed += now_us() - begin;
	}
	close_endpoint(&e);
	printf("measured %s %u %llu %llu\n", name, add.page, (unsigned long long)added / TIMES,
	       (unsigned long long)removed / TIMES);
}

/* Two huge pages, the second one first, so that they are no range of bus addresses. */
static void *new_huge_memory(void)
{
	int count = open("/proc/sys/vm/nr_hugepages", O_WRONLY);
	int fd = memfd_create("huge", MFD_HUGETLB | MFD_HUGE_2MB);
	uint8_t *space = new_memory(4 * BYTES);
	uint8_t *memory = space + (BYTES - (uintptr_t)space % BYTES) % BYTES;

	if (write(count, "2", 1) != 1 || ftruncate(fd, 2 * BYTES))
		wrong = 1;
	for (int i = 0; i < 2; i++) {
		/* The file gets the pages by ascending offset. */
		if (mmap(memory + (1 - i) * BYTES, BYTES, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, i * (off_t)BYTES) == MAP_FAILED)
			wrong = 1;
	}
	close(count);
	close(fd);
	return memory;
}

static void test_registration(void)
{
	uint8_t *memory = new_memory(BYTES);

	measure("small", memory, BYTES);
	munmap(memory, BYTES);
	memory = new_huge_memory();
	measure("huge", memory, 2 * BYTES);
	measure("huge-unaligned", memory + 5000, 2 * BYTES - 5000);
	munmap(memory, 2 * BYTES);
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	card = argv[2];
	test_registration();
	return wrong;
}
