/* The pool of handles alone: no address comes twice, closed handles stay recognisable, and their
 * memory goes back. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handle.h"

#define HANDLES	 1000000u
#define SAMPLES	 1000u
#define MOST_KIB 4096 /* of growth; the handles together have 61 MiB */

static long resident_kib(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];
	long kib = 0;

	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "VmRSS: %ld", &kib);
	if (file)
		fclose(file);
	return kib;
}

int main(void)
{
	static struct dib_handle *old[SAMPLES];
	struct dib_handle *last = NULL, *kept = NULL;
	long before = resident_kib(), grown;

	for (uint32_t i = 0; i < HANDLES; i++) {
		struct dib_handle *handle = dib_handle_new(DIB_KIND_REGION, sizeof(*handle) + 40);

		if (!handle || handle == last || handle->life) {
			printf("handle %u\n", i);
			return 1;
		}
		handle->life = DIB_LIFE_OPEN;
		if (i == HANDLES / 2 + 2)
			kept = handle;
		if (i % (HANDLES / SAMPLES) == 0)
			old[i / (HANDLES / SAMPLES)] = handle;
		if (i % (HANDLES / SAMPLES) == 1 &&
		    dib_handle_check(last, DIB_KIND_REGION) != DIB_ERR_CLOSED)
			return 2;
		last = handle;
		if (handle != kept)
			dib_handle_end(handle);
	}
	grown = resident_kib() - before;
	for (uint32_t i = 0; i < SAMPLES; i++) {
		if (old[i] != kept && dib_handle_check(old[i], DIB_KIND_REGION) != DIB_ERR_CLOSED)
			return 3;
		for (uint32_t j = 0; j < i; j++) {
			if (old[i] == old[j])
				return 4;
		}
	}
	if (dib_handle_check(kept, DIB_KIND_REGION) ||
	    dib_handle_check(kept, DIB_KIND_CARD) != DIB_ERR_ARGUMENT)
		return 5;
	printf("%ld KiB more\n", grown);
	return grown > MOST_KIB;
}
