/* Eight processes on one card, beside its network device, and each tries what it may not do:
 * driver_crowd FIRMWARE /dev/dibber0 /dev/dibber1
 *
 * On a card with 8 endpoints processes wait until one is free; on one with 16 all have one at the
 * same time. It says `crowd NAME right` or `wrong` for each process and for the whole.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>

#include "driver_net.h"

#define PROCESSES 8u
#define ROUNDS	  6u
#define SLICE	  8192u
#define PAGE	  4096u
#define WAITS	  60000 /* of 1 ms */

/* The driver has one for itself, and two for the network device. */
#define ALL_AT_ONCE (DIBBER_ENDPOINTS >= PROCESSES + 3)

/* What processes tell each other: a key of each, or 0. */
static volatile uint32_t *keys;

/* How many have an endpoint. */
static _Atomic unsigned int *present;

static int run(struct endpoint *e, struct dibber_command command)
{
	submit(e, &command);
	return completed(e);
}

static struct dibber_command put(uint32_t from, uint64_t offset, uint32_t to, uint64_t at,
				 uint32_t length)
{
	return (struct dibber_command){
		.opcode = DIBBER_OPCODE_PUT,
		.node = 1,
		.length = length,
		.source = { .key = from, .block = length, .offset = offset },
		.target = { .key = to, .block = length, .offset = at },
	};
}

static int wait_for_endpoint(struct endpoint *e)
{
	int waits = 0, rc;

	while ((rc = open_endpoint("/dev/dibber0", e)) == -ENOSPC && waits < WAITS) {
		close(e->fd);
		usleep(1000);
		waits++;
	}
	expect("endpoint", rc, 0);
	return waits;
}

/* What is another's, or nobody's. */
static void trespass(struct endpoint *e, unsigned int round, uint32_t own, uint32_t stranger,
		     uint32_t far)
{
	struct dibber_command administrator = { .opcode = DIBBER_OPCODE_REGION_ADD };
	struct dibber_endpoint_open open_again;
	struct dibber_region_add add;
	void *memory;
	int status, fd;

	switch (round % 6) {
	case 0: /* its key; it may have ended meanwhile */
		status = stranger ? run(e, put(stranger, 0, far, 0, 64)) : DIBBER_STATUS_NOT_OWNER;
		if (status != DIBBER_STATUS_BAD_KEY)
			expect("a stranger's memory", status, DIBBER_STATUS_NOT_OWNER);
		break;
	case 1:
		expect("a key of nobody", run(e, put(own, 0, far + DIBBER_REGIONS, 0, 64)),
		       DIBBER_STATUS_REMOTE_BAD_KEY);
		break;
	case 2: /* its slots and doorbells */
		for (uint64_t number = 0; number < DIBBER_ENDPOINTS; number++) {
			if (number == e->open.number)
				continue;
			memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, e->fd,
				      (off_t)(number << 24));
			expect("a stranger's doorbells", memory == MAP_FAILED ? -errno : 0,
			       -EINVAL);
		}
		memory = mremap((void *)e->window, 2 * PAGE, 4 * PAGE, MREMAP_MAYMOVE);
		expect("pages behind its own", memory == MAP_FAILED ? -errno : 0, -EFAULT);
		break;
	case 3: /* its endpoint */
		fd = open("/dev/dibber0", O_RDWR);
		expect("a taken endpoint", open_number(fd, e->open.number, &open_again), -EBUSY);
		expect("the network's endpoint", open_number(fd, 6, &open_again), -EBUSY);
		close(fd);
		break;
	case 4:
		expect("an administrator's command", run(e, administrator),
		       DIBBER_STATUS_BAD_OPCODE);
		break;
	case 5: /* memory of the kernel */
		expect("the kernel's memory",
		       add_region(e->fd, (void *)0xffff888000000000, PAGE, ALL_RIGHTS, &add),
		       -EINVAL);
		expect("a stranger's region", remove_region(e->fd, stranger), -ENOENT);
	}
}

static void live(unsigned int number, uint32_t far)
{
	uint8_t *memory =
		mmap(NULL, 2 * SLICE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct dibber_region_add add = { 0 };
	struct endpoint e;
	int waits = wait_for_endpoint(&e);

	if (wrong)
		_exit(1);
	++*present;
	for (int i = 0; ALL_AT_ONCE && *present < PROCESSES && i < WAITS; i++)
		usleep(1000);
	if (ALL_AT_ONCE) {
		expect("processes with an endpoint", *present, PROCESSES);
		expect("waits", waits, 0);
	}
	srandom(number + 1);
	expect("region", add_region(e.fd, memory, 2 * SLICE, ALL_RIGHTS, &add), 0);
	keys[number] = add.key;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		uint32_t length = (uint32_t)random() % SLICE + 1;
		uint32_t at = (uint32_t)random() % (SLICE - length + 1);
		struct dibber_command command = put(add.key, at, far, number * SLICE + at, length);

		for (uint32_t i = 0; i < SLICE; i++)
			memory[i] = (uint8_t)random();
		if (round == ROUNDS - 1) {
			memset(memory, (int)number + 1, SLICE);
			command = put(add.key, 0, far, number * SLICE, SLICE);
			length = SLICE;
			at = 0;
		}
		expect("put", run(&e, command), DIBBER_STATUS_OK);
		command.opcode = DIBBER_OPCODE_GET;
		command.source = command.target;
		command.target =
			(struct dibber_walk){ .key = add.key, .block = length, .offset = SLICE };
		expect("get", run(&e, command), DIBBER_STATUS_OK);
		expect("bytes", memcmp(memory + at, memory + SLICE, length) != 0, 0);
		trespass(&e, round + number, add.key, keys[(number + 1) % PROCESSES], far);
	}
	keys[number] = 0;
	printf("crowd process_%u %s\n", number, wrong ? "wrong" : "right");
	printf("crowd waited %d\n", waits);
	_exit(wrong);
}

static int are_all(const uint8_t *bytes, size_t length, uint8_t value)
{
	while (length && bytes[length - 1] == value)
		length--;
	return length == 0;
}

int main(int argc, char **argv)
{
	uint8_t *memory = mmap(NULL, PROCESSES * SLICE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned long long near_before, far_before;
	struct dibber_region_add add;
	struct endpoint far;
	double begin = now();
	pid_t traffic;

	if (argc != 4 || !argv[3])
		return 2;
	setlinebuf(stdout);
	keys = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	present = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	begin_networks();
	begin_interfaces();
	expect("carrier", wait_running(NEAR, "dib0", 1) && wait_running(FAR, "dib1", 1), 1);
	expect("the far endpoint", open_endpoint("/dev/dibber1", &far), 0);
	expect("region", add_region(far.fd, memory, PROCESSES * SLICE, ALL_RIGHTS, &add), 0);
	traffic = begin_traffic();
	near_before = statistic(NEAR, "dib0", "records_received");
	far_before = statistic(FAR, "dib1", "records_received");
	for (unsigned int i = 0; i < PROCESSES; i++) {
		if (fork() == 0)
			live(i, add.key);
	}
	for (unsigned int i = 0; i < PROCESSES; i++) {
		int status = -1;

		wait(&status);
		expect("a process", status, 0);
	}
	expect("frames to the near end", statistic(NEAR, "dib0", "records_received") > near_before,
	       1);
	expect("frames to the far end", statistic(FAR, "dib1", "records_received") > far_before, 1);
	expect("carrier", is_running(NEAR, "dib0") && is_running(FAR, "dib1"), 1);
	kill(traffic, SIGKILL);
	waitpid(traffic, NULL, 0);
	for (unsigned int i = 0; i < PROCESSES; i++)
		expect("its slice", are_all(memory + i * SLICE, SLICE, (uint8_t)(i + 1)), 1);
	close_endpoint(&far);
	set_flags(NEAR, "dib0", 0);
	set_flags(FAR, "dib1", 0);
	expect("pinned", (long)pinned_pages(), 0);
	printf("crowd all %s\n", wrong ? "wrong" : "right");
	printf("took crowd %u ms\n", (unsigned int)((now() - begin) * 1e3));
	return wrong;
}
