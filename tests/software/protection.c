/* What protection.c says of pages with random rights, against what they were given. Linked with
 * --wrap=ioctl the kernel does not know the question for one mapping. */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "protection.h"

#define PAGES 24u
#define TRIES 3000u

int __wrap_ioctl(int fd, unsigned long request, void *argument);

int __wrap_ioctl(int fd, unsigned long request, void *argument)
{
	(void)fd;
	(void)request;
	(void)argument;
	errno = ENOTTY;
	return -1;
}

int main(void)
{
	static const int rights[] = { PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE,
				      PROT_READ | PROT_WRITE, PROT_READ | PROT_EXEC };
	uint8_t *memory = mmap(NULL, PAGES * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int given[PAGES] = { 0 };

	srand(1);
	for (unsigned int i = 0; i < TRIES; i++) {
		unsigned int page = (unsigned int)rand() % PAGES;
		uint64_t begin = (unsigned int)rand() % (PAGES * 4096),
			 length = 1 + (unsigned int)rand() % (PAGES * 4096 - begin);
		bool writable = rand() & 1, expected = true;

		given[page] = rights[(unsigned int)rand() % 5];
		if (rand() % 8 == 0) {
			munmap(memory + page * 4096, 4096);
			given[page] = 0;
		} else if (mmap(memory + page * 4096, 4096, given[page],
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
			return 2;
		}
		if (rand() % 2)
			length = length % 8192 + 1 < length ? length % 8192 + 1 : length;
		for (uint64_t p = begin / 4096; p <= (begin + length - 1) / 4096; p++)
			expected &=
				(given[p] & PROT_READ) && (!writable || (given[p] & PROT_WRITE));
		if ((dib_check_memory(memory + begin, length, writable) == 0) != expected) {
			printf("%u: %llu bytes from %llu, %d\n", i, (unsigned long long)length,
			       (unsigned long long)begin, writable);
			return 1;
		}
	}
	return 0;
}
