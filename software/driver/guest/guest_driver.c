/* Init of a test guest with dibber.ko: loads it for its cards, at most four, runs each program of
 * /tests as `PROGRAM FIRMWARE URI URI [SEED COUNT]`, then takes the driver away. Seed and count
 * stand in the file of /arguments that has the program's name, if there is one. What a program says
 * is on the console; its exit code is told by its name, and `took` tells its time. `pinned` is what
 * the kernel counts as pinned in the end.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"
#include "guest.h"

#define TESTS	  "/tests"
#define MODULES	  "/modules"
#define ARGUMENTS "/arguments"
#define FIRMWARE  "/lib/firmware/dibber/mcp.dibfw"

static void run(const char *path, const char *name)
{
	char seed[32] = "", count[32] = "";
	struct timespec begin, end;
	int status = -1;
	FILE *file;
	pid_t child;

	snprintf(seed, sizeof(seed), ARGUMENTS "/%.16s", name);
	file = fopen(seed, "r");
	if (file && fscanf(file, "%31s %31s", seed, count) != 2)
		guest_fail(name);
	if (file)
		fclose(file);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	child = fork();
	if (child < 0)
		guest_fail("fork");
	if (child == 0) {
		execl(path, path, FIRMWARE, "/dev/dibber0", "/dev/dibber1", file ? seed : NULL,
		      count, (char *)NULL);
		guest_fail(path);
	}
	waitpid(child, &status, 0);
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("took %s %.1f s\n", name,
	       (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec));
	guest_say(name, (unsigned int)status);
	guest_say("pinned", (unsigned long long)pinned_pages());
}

/* Documentation/ABI/testing/dev-kmsg: "priority,number,microseconds,…;text". */
static unsigned long long time_of(const char *line)
{
	unsigned long long microseconds = 0;

	sscanf(line, "%*u,%*u,%llu", &microseconds);
	return microseconds;
}

/* What the kernel has said of the driver, and of anything that went wrong: `log MICROSECONDS TEXT`.
 */
static void show_log(void)
{
	static const char *const signs[] = { "dibber", "BUG",  "WARNING",	 "RIP:",
					     "Oops",   "hung", "waiting for dib" };
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
	char line[8192];
	ssize_t length;

	while ((length = read(fd, line, sizeof(line) - 1)) > 0) {
		line[length] = 0;
		line[strcspn(line, "\n")] = 0;
		for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
			if (strstr(line, signs[i])) {
				printf("log %llu %s\n", time_of(line), strchr(line, ';') + 1);
				break;
			}
		}
	}
	close(fd);
}

static void load(const char *path, const char *name)
{
	(void)name;
	guest_load_module(path, "");
}

static unsigned long long count_cards(void)
{
	unsigned long long count = 0;
	char path[32];

	for (int number = 0; number < 4; number++) {
		snprintf(path, sizeof(path), "/dev/dibber%d", number);
		count += !access(path, F_OK);
	}
	return count;
}

int main(void)
{
	guest_begin();
	guest_for_each(MODULES, load);
	guest_load_module("/dibber.ko", "node=0,1,2,3");
	guest_say("cards", count_cards());
	guest_for_each(TESTS, run);
	guest_say("unloaded", syscall(SYS_delete_module, "dibber", O_NONBLOCK) == 0);
	guest_say("nodes_left", (unsigned long long)!access("/dev/dibber0", F_OK));
	show_log();
	guest_end();
}
