/* MPI_Wtime() and gettimeofday() in simulated time, for MPI programs that are not changed
 * (LD_PRELOAD).
 *
 * MPI libraries use the clocks of the C library for their own time-outs. So gettimeofday() gives
 * simulated time to the program only, and clock_gettime() stays as it is.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#define NAME "libdibber-fi.so"

double MPI_Wtime(void) __attribute__((visibility("default")));
double PMPI_Wtime(void) __attribute__((visibility("default")));
/* By another name in C: the C library's declaration says that `now` is never NULL. */
int time_of_day(struct timeval *now, void *zone) __asm__("gettimeofday")
	__attribute__((visibility("default")));

/* The provider that libfabric has loaded, or NULL. Its path is in FI_PROVIDER_PATH. */
static uint64_t (*provider(void))(void)
{
	static uint64_t (*now_ps)(void);
	const char *folder = getenv("FI_PROVIDER_PATH");
	char path[4096];
	void *handle;

	if (now_ps || !folder || strlen(folder) + sizeof("/" NAME) > sizeof(path))
		return now_ps;
	strcpy(path, folder);
	strcat(path, "/" NAME);
	handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	if (handle)
		*(void **)&now_ps = dlsym(handle, "dibber_fi_now_ps");
	return now_ps;
}

struct place {
	uintptr_t address;
	bool found;
};

/* Whether a call comes from the program itself. Libraries keep the system's time: the launcher's
 * time-outs are by it. The program is the first object (dl_iterate_phdr(3)). */
static int find_program(struct dl_phdr_info *info, size_t size, void *result)
{
	struct place *place = result;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X &&
		    place->address - begin < info->dlpi_phdr[i].p_memsz)
			place->found = true;
	}
	return 1;
}

static bool is_program(const void *caller)
{
	struct place place = { (uintptr_t)caller, false };

	dl_iterate_phdr(find_program, &place);
	return place.found;
}

/* NetPIPE and other programs measure by gettimeofday(). For the program it goes on from the
 * system's time at its first call behind MPI_Init(), by simulated time. */
int time_of_day(struct timeval *now, void *zone)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static uint64_t begin_us, begin_ps;
	uint64_t (*now_ps)(void) = is_program(__builtin_return_address(0)) ? provider() : NULL;
	uint64_t ps, us;
	struct timespec t;

	(void)zone;
	/* As the C library's: there is nothing to write. */
	if (!now)
		return 0;
	clock_gettime(CLOCK_REALTIME, &t);
	us = (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
	pthread_mutex_lock(&lock);
	/* With the lock, so that no thread has an earlier time than `begin_ps`. */
	ps = now_ps ? now_ps() : 0;
	if (ps && !begin_us) {
		begin_us = us;
		begin_ps = ps;
	}
	pthread_mutex_unlock(&lock);
	if (ps)
		us = begin_us + (ps - begin_ps) / 1000000u;
	now->tv_sec = (time_t)(us / 1000000u);
	now->tv_usec = (suseconds_t)(us % 1000000u);
	return 0;
}

/* Before MPI_Init() has opened the card, it is the system's time. */
double MPI_Wtime(void)
{
	uint64_t (*now_ps)(void) = provider();
	struct timespec t;
	uint64_t ps;

	ps = now_ps ? now_ps() : 0;
	if (ps)
		return (double)ps * 1e-12;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double PMPI_Wtime(void)
{
	return MPI_Wtime();
}
