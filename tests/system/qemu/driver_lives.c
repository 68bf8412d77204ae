/* What is left of processes that were killed, exited or became another program in the middle of
 * something: nothing. driver_lives FIRMWARE /dev/dibber0 /dev/dibber1 [SEED KILLS] */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>

#include "driver.h"

#define PAGE  4096u
#define BYTES (512 * PAGE) /* 2 MiB */

static const char *card;

static void *new_memory(size_t bytes)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Register and withdraw, give commands, open and close, without an end. */
static void live(unsigned int seed)
{
	struct dibber_command nop = { .opcode = DIBBER_OPCODE_NOP };
	uint8_t *memory = new_memory(BYTES);
	struct dibber_region_add add[4];
	struct endpoint e;

	srandom(seed);
	for (;;) {
		if (open_endpoint(card, &e))
			_exit(1);
		for (int i = 0; i < 4; i++) {
			if (add_region(e.fd, memory + random() % BYTES / 2,
				       (uint64_t)random() % (BYTES / 2) + 1, ALL_RIGHTS, &add[i]))
				_exit(1);
			submit(&e, &nop);
		}
		if (remove_region(e.fd, add[random() % 4].key))
			_exit(1);
		close_endpoint(&e);
	}
}

/* All endpoints and regions are free, and no page is pinned. */
static void expect_nothing_left(const char *what)
{
	int fds[DIBBER_ENDPOINTS];
	struct dibber_endpoint_open o;

	expect(what, (long)pinned_pages(), 0);
	for (unsigned int i = 1; i < DIBBER_ENDPOINTS; i++) {
		fds[i] = open(card, O_RDWR);
		expect(what, open_number(fds[i], i, &o), 0);
	}
	for (unsigned int i = 1; i < DIBBER_ENDPOINTS; i++)
		close(fds[i]);
}

static void test_kills(unsigned int seed, unsigned int kills)
{
	int status;
	pid_t child;

	srandom(seed);
	for (unsigned int i = 0; i < kills; i++) {
		useconds_t life = (useconds_t)(random() % 200000);

		child = fork();
		if (child == 0)
			live(seed + i);
		usleep(life);
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
		expect("killed", WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, 1);
		expect("pinned behind a kill", (long)pinned_pages(), 0);
	}
	expect_nothing_left("behind all kills");
	printf("kills %u\n", kills);
}

/* A child that has its parent's file does not keep the endpoint of a parent that is gone. */
static void test_orphan(void)
{
	int ends[2], status;
	struct dibber_endpoint_open o;
	struct dibber_region_add add;
	pid_t parent;
	char byte;
	int fd;

	if (pipe(ends))
		wrong = 1;
	parent = fork();
	if (parent == 0) {
		fd = open(card, O_RDWR);
		if (open_number(fd, 1, &o) || add_region(fd, new_memory(BYTES), BYTES, 1, &add))
			_exit(1);
		if (fork() == 0) {
			/* It waits with the file until the test closes the pipe. */
			close(ends[1]);
			_exit(read(ends[0], &byte, 1) < 0);
		}
		_exit(0);
	}
	waitpid(parent, &status, 0);
	expect("the parent", status, 0);
	expect_nothing_left("while a child has the file");
	close(ends[0]);
	close(ends[1]);
}

/* A program that is executed does not keep the endpoint of the one before. */
static void test_exec(const char *self)
{
	struct dibber_endpoint_open o;
	struct dibber_region_add add;
	int status, fd, ends[2];
	char byte;
	pid_t child;

	if (pipe(ends))
		wrong = 1;
	child = fork();
	if (child == 0) {
		fd = open(card, O_RDWR);
		if (open_number(fd, 1, &o) || add_region(fd, new_memory(BYTES), BYTES, 1, &add))
			_exit(1);
		dup2(ends[0], 0);
		dup2(ends[1], 1);
		execl(self, self, "waits", (char *)NULL);
		_exit(1);
	}
	expect("it runs", read(ends[0], &byte, 1), 1);
	expect_nothing_left("behind exec");
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	close(ends[0]);
	close(ends[1]);
}

int main(int argc, char **argv)
{
	if (argc == 2) {
		printf("!");
		fflush(stdout);
		pause();
	}
	if (argc < 4)
		return 2;
	card = argv[2];
	test_kills(argc > 4 ? (unsigned int)atoi(argv[4]) : 1,
		   argc > 5 ? (unsigned int)atoi(argv[5]) : 20);
	test_orphan();
	test_exec(argv[0]);
	printf("lives %s\n", wrong ? "wrong" : "right");
	return wrong;
}
