/* A mistake of PE 0, by its name. The other PE waits at a barrier, and must end, too. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <dibber_shmem.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	const char *mistake = argv[argc - 1];
	static int outside;
	int *word, value = 1;

	if (!strcmp(mistake, "early"))
		shmem_quiet();
	shmem_init();
	word = shmem_malloc(sizeof(*word));
	if (shmem_my_pe()) {
		shmem_barrier_all();
		return 0;
	}
	if (!strcmp(mistake, "outside"))
		shmem_int_put(&outside, &value, 1, 1);
	else if (!strcmp(mistake, "nobody"))
		shmem_int_put(word, &value, 1, 2);
	else if (!strcmp(mistake, "stride"))
		shmem_int_iput(word, &value, 1 << 20, 1, 2, 1);
	else if (!strcmp(mistake, "own"))
		shmem_int_atomic_add(word, 1, 0);
	else if (!strcmp(mistake, "killed"))
		raise(SIGKILL);
	return 0;
}
