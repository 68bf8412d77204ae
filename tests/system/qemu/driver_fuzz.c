/* Calls at random of /dev/dibber0: ioctls with arguments that are right, nearly right or no
 * arguments at all, mmap(), munmap(), read(), poll(), fork() and close(), from several open files.
 * Each call must succeed or fail with an errno that docs/driver.md has, and nothing may be left.
 *
 * driver_fuzz FIRMWARE /dev/dibber0 /dev/dibber1 [SEED CALLS]
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include "driver.h"

#define FILES	 6
#define MAPPINGS 16
#define PAGE	 4096u
#define MEMORY	 (64 * PAGE)
#define CALLS	 3000

union argument {
	struct dibber_info info;
	struct dibber_register access;
	struct dibber_endpoint_open open;
	struct dibber_region_add add;
	struct dibber_region_remove remove;
	struct dibber_eventfd eventfd;
	struct dibber_window_map map;
	struct dibber_window_unmap unmap;
	uint8_t bytes[256];
};

static const unsigned long calls[] = {
	DIBBER_IOC_INFO,	 DIBBER_IOC_REGISTER,	    DIBBER_IOC_ENDPOINT_OPEN,
	DIBBER_IOC_REGION_ADD,	 DIBBER_IOC_REGION_ADD,	    DIBBER_IOC_REGION_REMOVE,
	DIBBER_IOC_EVENTFD,	 DIBBER_IOC_ENDPOINT_CLOSE, DIBBER_IOC_WINDOW_MAP,
	DIBBER_IOC_WINDOW_UNMAP,
};
#define CALL_COUNT (sizeof(calls) / sizeof(calls[0]))

/* What may come; never ESHUTDOWN, ENODEV, ETIMEDOUT, EPROTO or EIO, for the card works. */
static const int allowed[] = { EINVAL, EFAULT, EACCES, EPERM,  EBUSY,  ENOTCONN, EISCONN,
			       ENOSPC, EDQUOT, ENOMEM, ENOENT, ENOTTY, EBADF,	 EOPNOTSUPP };

static const char *card;
static uint8_t *memory;
static unsigned long tally[2]; /* of calls that failed, that succeeded */

/* Of each open file. */
static struct file {
	int fd;
	uint32_t keys[4];
	uint64_t place, first; /* of a window */
	struct dibber_endpoint_open open;
} files[FILES];

static struct {
	void *address;
	size_t length;
} mappings[MAPPINGS];

static uint64_t any(void)
{
	static const uint64_t special[] = { 0,
					    1,
					    7,
					    8,
					    64,
					    4095,
					    4096,
					    65536,
					    65537,
					    0x7fffffff,
					    0x80000000,
					    0xffffffff,
					    0x100000000,
					    0x7ffffffff000,
					    0x800000000000,
					    0xffffffffffffffff };
	uint64_t value = (uint64_t)random() << 33 ^ (uint64_t)random() << 11 ^ (uint64_t)random();

	switch (random() % 4) {
	case 0:
		return special[(size_t)random() % (sizeof(special) / sizeof(special[0]))];
	case 1:
		return value;
	default:
		return value >> random() % 64;
	}
}

static void check(const char *what, long result)
{
	tally[result >= 0]++;
	if (result >= 0)
		return;
	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
		if (-result == allowed[i])
			return;
	}
	expect(what, result, 0);
}

static void fill(unsigned long number, const struct file *f, union argument *a)
{
	memset(a, 0, sizeof(*a));
	switch (number) {
	case DIBBER_IOC_REGISTER:
		a->access.offset = (uint32_t)random() % DIBBER_BAR0_SIZE & ~3u;
		break;
	case DIBBER_IOC_ENDPOINT_OPEN:
		a->open.number = random() & 1 ? DIBBER_ANY_ENDPOINT : (uint32_t)random() % 9;
		a->open.cq_entries = 32u << random() % 8;
		a->open.eq_entries = 1u << random() % 8;
		break;
	case DIBBER_IOC_REGION_ADD:
		a->add.address = (uintptr_t)memory + (uint64_t)random() % MEMORY;
		a->add.length =
			(uint64_t)random() % ((uintptr_t)memory + MEMORY - a->add.address) + 1;
		a->add.rights = (uint32_t)random() % 15 + 1;
		break;
	case DIBBER_IOC_REGION_REMOVE:
		a->remove.key = f->keys[random() % 4];
		break;
	case DIBBER_IOC_EVENTFD:
		a->eventfd.fd = (int)(random() % 8) - 1;
		break;
	case DIBBER_IOC_WINDOW_MAP:
		a->map.length = (uint64_t)random() % (4 * DIBBER_APERTURE_PAGE) + 1;
		a->map.key = (uint32_t)random();
		a->map.node = (uint16_t)(random() % 2);
		a->map.access = (uint32_t)random() % 7 + 1;
		break;
	case DIBBER_IOC_WINDOW_UNMAP:
		a->unmap.first = (uint32_t)f->first;
		break;
	}
	/* Some are nearly right: one word of anything. */
	if (random() % 4 == 0) {
		uint64_t word = any();

		memcpy(a->bytes + random() % 10 * 4, &word, random() & 1 ? 4 : 8);
	}
}

static void fuzz_ioctl(struct file *f)
{
	unsigned long number = calls[(size_t)random() % CALL_COUNT];
	union argument a;
	long rc;

	fill(number, f, &a);
	switch (random() % 16) {
	case 0: /* another number, or another size */
		number ^= 1ul << random() % 32;
		check("unknown ioctl", call(f->fd, number, &a));
		return;
	case 1: /* no memory there */
		check("ioctl to nowhere", call(f->fd, number, (void *)(uintptr_t)any()));
		return;
	case 2: /* memory that ends too early */
		check("ioctl to an end", call(f->fd, number, memory + MEMORY - 4));
		return;
	case 3: /* memory that can only be read */
		check("ioctl to a constant", call(f->fd, number, (void *)calls));
		return;
	}
	rc = call(f->fd, number, &a);
	check("ioctl", rc);
	if (rc)
		return;
	if (number == DIBBER_IOC_ENDPOINT_OPEN)
		f->open = a.open;
	if (number == DIBBER_IOC_REGION_ADD)
		f->keys[random() % 4] = a.add.key;
	if (number == DIBBER_IOC_WINDOW_MAP) {
		f->place = a.map.place;
		f->first = a.map.first;
	}
}

static void fuzz_mmap(const struct file *f)
{
	size_t place = (size_t)random() % MAPPINGS;
	uint64_t offset = random() & 1 ? f->open.window : f->open.queues;
	size_t length = (size_t)(random() % 4 + 1) * PAGE;
	int protection = random() % 8 ? PROT_READ : (int)(random() % 8);
	void *address;

	if (mappings[place].address) {
		munmap(mappings[place].address, mappings[place].length);
		mappings[place].address = NULL;
		return;
	}
	if (f->place && random() % 4 == 0)
		offset = f->place + (f->first << 16);
	if (random() % 4 == 0)
		offset = any() & ~(uint64_t)(PAGE - 1);
	if (random() % 8 == 0)
		length = (size_t)(any() % (1u << 30));
	address = mmap(NULL, length, protection, random() % 8 ? MAP_SHARED : MAP_PRIVATE, f->fd,
		       (off_t)offset);
	if (address == MAP_FAILED) {
		/* The offset alone may be too large for mmap(). */
		if (errno != EOVERFLOW)
			check("mmap", -errno);
		return;
	}
	check("mmap", 0);
	mappings[place].address = address;
	mappings[place].length = length;
	if (protection & PROT_READ) {
		/* A load of a page of the remote window may take 10 ms of the card. */
		for (size_t at = 0; at < length && (offset != f->place + (f->first << 16) || !at);
		     at += PAGE)
			*(volatile uint32_t *)((uint8_t *)address + at);
	}
}

static void open_file(struct file *f)
{
	memset(f, 0, sizeof(*f));
	f->fd = open(card, (random() % 8 ? O_RDWR : O_RDONLY) | O_NONBLOCK);
	if (f->fd < 0)
		expect("open", -errno, 0);
}

/* A child has the files and none of the rights. */
static void fuzz_child(void)
{
	pid_t child = fork();
	int status = -1;

	if (child == 0) {
		for (int i = 0; i < 20; i++)
			fuzz_ioctl(&files[random() % FILES]);
		_exit(wrong);
	}
	waitpid(child, &status, 0);
	expect("a child", status, 0);
}

static void step(void)
{
	struct file *f = &files[random() % FILES];
	struct pollfd poller = { .fd = f->fd, .events = (short)random() };
	char bytes[16];
	ssize_t length;

	switch (random() % 64) {
	case 0:
		close(f->fd);
		open_file(f);
		return;
	case 1:
		length = read(f->fd, random() & 1 ? bytes : NULL, (size_t)random() % 17);
		if (length < 0 && errno != EAGAIN)
			check("read", -errno);
		return;
	case 2:
		poll(&poller, 1, 0);
		return;
	case 3:
		fuzz_child();
		return;
	case 4 ... 15:
		fuzz_mmap(f);
		return;
	default:
		fuzz_ioctl(f);
	}
}

int main(int argc, char **argv)
{
	unsigned int seed = argc > 4 ? (unsigned int)atoi(argv[4]) : 1;
	unsigned long count = argc > 5 ? strtoul(argv[5], NULL, 0) : CALLS;
	int eventfds[2] = { eventfd(0, 0), eventfd(0, 0) };

	if (argc < 4)
		return 2;
	card = argv[2];
	srandom(seed);
	memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* Behind it nothing is mapped. */
	munmap(memory + MEMORY - PAGE, PAGE);
	for (int i = 0; i < FILES; i++)
		open_file(&files[i]);
	for (unsigned long n = 0; n < count && !wrong; n++)
		step();
	for (int i = 0; i < MAPPINGS; i++) {
		if (mappings[i].address)
			munmap(mappings[i].address, mappings[i].length);
	}
	for (int i = 0; i < FILES; i++)
		close(files[i].fd);
	close(eventfds[0]);
	close(eventfds[1]);
	expect("pinned", (long)pinned_pages(), 0);
	/* All endpoints are free, and the card serves. */
	for (unsigned int i = 1; i < DIBBER_ENDPOINTS && !wrong; i++) {
		struct dibber_command nop = { .opcode = DIBBER_OPCODE_NOP };
		struct endpoint e;

		expect("open", open_endpoint(card, &e), 0);
		if (wrong)
			break;
		submit(&e, &nop);
		close_endpoint(&e);
	}
	printf("fuzz %lu failed, %lu succeeded, %s\n", tally[0], tally[1],
	       wrong ? "wrong" : "right");
	return wrong;
}
