/* Each call of /dev/dibberN, with good arguments and with each kind of bad one:
 * driver_calls FIRMWARE /dev/dibber0 /dev/dibber1 */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "driver.h"

#define PAGE 4096u

static const char *card;

static void set_parameter(const char *name, const char *value)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/sys/module/dibber/parameters/%s", name);
	fd = open(path, O_WRONLY);
	expect(name, write(fd, value, strlen(value)), (long)strlen(value));
	close(fd);
}

/* In a process of its own, so that it ends as another user's. */
static void as_user(void (*action)(void))
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		action();
		fflush(stdout);
		_exit(wrong);
	}
	waitpid(child, &status, 0);
	wrong |= status != 0;
}

static void test_read_only_door(void)
{
	struct dibber_endpoint_open open_it;
	struct dibber_register access = { .offset = DIBBER_HOST_MAGIC };
	struct dibber_info info;
	int fd = open(card, O_RDONLY);

	expect("info", call(fd, DIBBER_IOC_INFO, &info), 0);
	expect("abi", info.abi, DIBBER_ABI);
	expect("hash", info.interface_hash == DIBBER_INTERFACE_HASH, 1);
	expect("endpoints", info.endpoints, DIBBER_ENDPOINTS);
	expect("endpoint", info.endpoint, 0);
	expect("register", call(fd, DIBBER_IOC_REGISTER, &access), 0);
	expect("magic", access.value == DIBBER_MAGIC, 1);
	expect("an endpoint by a read-only file", open_number(fd, 1, &open_it), -EACCES);
	close(fd);
}

static void expect_register(int fd, const char *what, uint32_t offset, int wanted)
{
	struct dibber_register access = { .offset = offset };

	expect(what, call(fd, DIBBER_IOC_REGISTER, &access), wanted);
}

static void read_as_user(void)
{
	int fd = open(card, O_RDWR);

	if (setuid(1000))
		wrong = 1;
	expect_register(fd, "a register by a user", DIBBER_HOST_CYCLES_LOW, 0);
	expect_register(fd, "the SRAM by a user", DIBBER_FIRMWARE_BASE, -EACCES);
}

static void test_registers(void)
{
	int fd = open(card, O_RDONLY);

	expect_register(fd, "unaligned", DIBBER_HOST_MAGIC + 2, -EACCES);
	expect_register(fd, "the MSI-X table", DIBBER_MSIX_TABLE_BASE, -EACCES);
	expect_register(fd, "SRAM", DIBBER_FIRMWARE_BASE, 0);
	expect_register(fd, "behind the SRAM", DIBBER_FIRMWARE_BASE + DIBBER_SRAM_MAX, -EACCES);
	expect_register(fd, "a slot", DIBBER_ENDPOINT_BASE, -EACCES);
	expect_register(fd, "PROGRAM",
			DIBBER_ENDPOINT_BASE + DIBBER_DOORBELL_OFFSET + DIBBER_DOORBELL_PROGRAM, 0);
	expect_register(fd, "behind BAR 0", DIBBER_BAR0_SIZE, -EACCES);
	expect_register(fd, "far behind it", 0xfffffffcu, -EACCES);
	close(fd);
	as_user(read_as_user);
}

static void expect_open(int fd, const char *what, uint32_t number, uint32_t cq, uint32_t eq,
			int wanted)
{
	struct dibber_endpoint_open open_it = { .number = number,
						.cq_entries = cq,
						.eq_entries = eq };

	expect(what, call(fd, DIBBER_IOC_ENDPOINT_OPEN, &open_it), wanted);
}

static void test_opening(void)
{
	int fd = open(card, O_RDWR), other = open(card, O_RDWR), fds[DIBBER_ENDPOINTS];
	struct dibber_endpoint_open open_it;

	expect("no such call", call(fd, _IO(0xd1, 0x3f), NULL), -ENOTTY);
	expect("a bad pointer", call(fd, DIBBER_IOC_ENDPOINT_OPEN, NULL), -EFAULT);
	expect("a bad pointer to read", call(fd, DIBBER_IOC_INFO, (void *)1), -EFAULT);
	expect_open(fd, "no completions", 1, 0, 64, -EINVAL);
	expect_open(fd, "fewer completions than slots", 1, 16, 64, -EINVAL);
	expect_open(fd, "65 completions", 1, 65, 64, -EINVAL);
	expect_open(fd, "too many completions", 1, 2 * DIBBER_QUEUE_MAX_ENTRIES, 64, -EINVAL);
	expect_open(fd, "no events", 1, 64, 0, -EINVAL);
	expect_open(fd, "the driver's endpoint", 0, 64, 64, -EBUSY);
	expect_open(fd, "no such endpoint", DIBBER_ENDPOINTS, 64, 64, -EINVAL);
	expect("closing none", call(fd, DIBBER_IOC_ENDPOINT_CLOSE, NULL), -ENOTCONN);
	expect_open(fd, "endpoint 3", 3, 64, 64, 0);
	expect_open(fd, "again", 4, 64, 64, -EISCONN);
	expect_open(other, "a taken endpoint", 3, 64, 64, -EBUSY);
	expect("closing", call(fd, DIBBER_IOC_ENDPOINT_CLOSE, NULL), 0);
	expect("closing again", call(fd, DIBBER_IOC_ENDPOINT_CLOSE, NULL), -ENOTCONN);
	expect_open(other, "a free endpoint", 3, DIBBER_QUEUE_MAX_ENTRIES, 1, 0);
	expect_open(fd, "another for the same file", 4, 64, 64, 0);
	close(fd);
	close(other);
	for (unsigned int i = 1; i < DIBBER_ENDPOINTS; i++) {
		fds[i] = open(card, O_RDWR);
		expect("any endpoint", open_number(fds[i], DIBBER_ANY_ENDPOINT, &open_it), 0);
		expect("its number", open_it.number, i);
	}
	fds[0] = open(card, O_RDWR);
	expect("one more", open_number(fds[0], DIBBER_ANY_ENDPOINT, &open_it), -ENOSPC);
	for (unsigned int i = 0; i < DIBBER_ENDPOINTS; i++)
		close(fds[i]);
}

static void expect_mmap(int fd, const char *what, size_t length, int protection, int flags,
			uint64_t offset, long wanted)
{
	void *memory = mmap(NULL, length, protection, flags, fd, (off_t)offset);

	expect(what, memory == MAP_FAILED ? -errno : 0, wanted);
	if (memory != MAP_FAILED)
		munmap(memory, length);
}

static void test_mapping(void)
{
	int fd = open(card, O_RDWR), none = open(card, O_RDWR);
	struct dibber_endpoint_open o;
	const int both = PROT_READ | PROT_WRITE;

	expect("open", open_number(fd, 2, &o), 0);
	expect_mmap(none, "no endpoint", PAGE, both, MAP_SHARED, o.window, -EPERM);
	expect_mmap(fd, "private", PAGE, both, MAP_PRIVATE, o.window, -EINVAL);
	expect_mmap(fd, "executable", PAGE, both | PROT_EXEC, MAP_SHARED, o.window, -EINVAL);
	expect_mmap(fd, "another's window", PAGE, both, MAP_SHARED, o.window / 2, -EINVAL);
	expect_mmap(fd, "an offset that is the same in 32 bits", PAGE, both, MAP_SHARED,
		    o.window + (1ull << 56), -EINVAL);
	expect_mmap(fd, "no remote window", PAGE, both, MAP_SHARED,
		    (uint64_t)(DIBBER_ENDPOINTS + 2) << 24, -EINVAL);
	expect_mmap(fd, "behind the window", PAGE, both, MAP_SHARED, o.window + 2 * PAGE, -EINVAL);
	expect_mmap(fd, "more than the window", 3 * PAGE, both, MAP_SHARED, o.window, -EINVAL);
	expect_mmap(fd, "queues to write", PAGE, both, MAP_SHARED, o.queues, -EACCES);
	expect_mmap(fd, "more than the queues", o.queue_bytes + PAGE, PROT_READ, MAP_SHARED,
		    o.queues, -EINVAL);
	expect_mmap(fd, "behind the queues", PAGE, PROT_READ, MAP_SHARED, o.queues + o.queue_bytes,
		    -EINVAL);
	expect_mmap(fd, "the doorbell page alone", PAGE, both, MAP_SHARED, o.window + PAGE, 0);
	close(fd);
	close(none);
}

static void test_commands_and_interrupts(void)
{
	struct dibber_command nop = { .opcode = DIBBER_OPCODE_NOP, .flags = DIBBER_FLAG_SOLICIT };
	struct dibber_command administrator = { .opcode = DIBBER_OPCODE_REGION_ADD };
	struct dibber_eventfd events = { .fd = eventfd(0, 0) };
	struct dibber_eventfd bad = { .fd = 999 };
	struct pollfd poller;
	struct endpoint e;
	uint64_t count;

	expect("endpoint", open_endpoint(card, &e), 0);
	poller = (struct pollfd){ .fd = e.fd, .events = POLLIN };
	expect("no eventfd", call(e.fd, DIBBER_IOC_EVENTFD, &bad), -EBADF);
	expect("eventfd", call(e.fd, DIBBER_IOC_EVENTFD, &events), 0);
	expect("nothing to poll yet", poll(&poller, 1, 0), 0);
	submit(&e, &nop);
	expect("NOP", completed(&e), DIBBER_STATUS_OK);
	expect("read of the eventfd", read(events.fd, &count, sizeof(count)), sizeof(count));
	expect("poll", poll(&poller, 1, 30000), 1);
	expect("read", read(e.fd, &count, sizeof(count)), sizeof(count));
	expect("interrupts", (long)count, 1);
	expect("polled", poll(&poller, 1, 0), 0);
	events.fd = -1;
	expect("no eventfd any more", call(e.fd, DIBBER_IOC_EVENTFD, &events), 0);
	submit(&e, &administrator);
	expect("an administrator's command", completed(&e), DIBBER_STATUS_BAD_OPCODE);
	expect("mprotect of the queues",
	       mprotect((void *)e.queues, e.open.queue_bytes, PROT_READ | PROT_WRITE) ? -errno : 0,
	       -EACCES);
	/* What its endpoint leaves behind reads as ones, and takes writes. */
	expect("closing", call(e.fd, DIBBER_IOC_ENDPOINT_CLOSE, NULL), 0);
	expect("the window's end", *doorbell(&e, DIBBER_DOORBELL_PROGRAM), 0xffffffffl);
	expect("the queues' end", e.queues[0].phase, 0xffffffffl);
	submit(&e, &nop);
	close_endpoint(&e);
}

static void test_regions(void)
{
	uint8_t *memory =
		mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *constant = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct dibber_region_add add = { .reserved = 1, .length = 1, .rights = 1 };
	uint32_t keys[DIBBER_REGIONS];
	struct endpoint e;
	long long before = pinned_pages();
	int fd = open(card, O_RDWR);

	add.address = (uintptr_t)memory;
	expect("a region without an endpoint", add_region(fd, memory, 1, 1, &add), -ENOTCONN);
	close(fd);
	expect("endpoint", open_endpoint(card, &e), 0);
	add.reserved = 1;
	expect("reserved", call(e.fd, DIBBER_IOC_REGION_ADD, &add), -EINVAL);
	expect("no bytes", add_region(e.fd, memory, 0, 1, &add), -EINVAL);
	expect("no rights", add_region(e.fd, memory, 1, 0, &add), -EINVAL);
	expect("unknown rights", add_region(e.fd, memory, 1, 0x10, &add), -EINVAL);
	expect("beyond the end", add_region(e.fd, memory, UINT64_MAX, 1, &add), -EINVAL);
	expect("the kernel's memory", add_region(e.fd, (void *)(-1ul << 40), 1, 1, &add), -EINVAL);
	expect("nothing there", add_region(e.fd, (void *)PAGE, 1, 1, &add), -EFAULT);
	expect("a hole behind it", add_region(e.fd, memory, 1ul << 24, 1, &add), -EFAULT);
	expect("constant memory to write", add_region(e.fd, constant, 1, ALL_RIGHTS, &add),
	       -EFAULT);
	expect("the window", add_region(e.fd, (void *)e.window, 1, 1, &add), -EFAULT);
	expect("nothing is left pinned", (long)(pinned_pages() - before), 0);
	expect("constant memory to read", add_region(e.fd, constant, PAGE, 1, &add), 0);
	expect("removal", remove_region(e.fd, add.key), 0);
	expect("64 pages", add_region(e.fd, memory + 5, 63 * PAGE, ALL_RIGHTS, &add), 0);
	expect("pinned", (long)(pinned_pages() - before), 64);
	expect("another key", remove_region(e.fd, add.key + 1), -ENOENT);
	expect("removal", remove_region(e.fd, add.key), 0);
	expect("removal again", remove_region(e.fd, add.key), -ENOENT);
	for (unsigned int i = 0; i < DIBBER_REGIONS; i++) {
		expect("region", add_region(e.fd, memory + 3 * i, 1, 1, &add), 0);
		keys[i] = add.key;
		for (unsigned int j = 0; j < i; j++)
			wrong |= keys[i] == keys[j];
	}
	expect("one more", add_region(e.fd, memory, 1, 1, &add), -ENOSPC);
	expect("one less", remove_region(e.fd, keys[20]), 0);
	expect("one more", add_region(e.fd, memory, 1, 1, &add), 0);
	expect("one less", remove_region(e.fd, add.key), 0);
	expect("above all memory", add_region(e.fd, (void *)PAGE, 1ul << 40, 1, &add), -ENOMEM);
	close_endpoint(&e);
	expect("pinned behind a close", (long)(pinned_pages() - before), 0);
	munmap(memory, 64 * PAGE);
	munmap(constant, PAGE);
}

static void exceed_limits(void)
{
	const struct rlimit eight = { 8 * PAGE, 8 * PAGE };
	uint8_t *memory =
		mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open(card, O_RDWR), second = open(card, O_RDWR), third = open(card, O_RDWR);
	struct dibber_endpoint_open o;
	struct dibber_region_add add, other;

	if (setrlimit(RLIMIT_MEMLOCK, &eight) || setuid(1000))
		wrong = 1;
	expect("endpoint", open_number(fd, DIBBER_ANY_ENDPOINT, &o), 0);
	expect("second endpoint", open_number(second, DIBBER_ANY_ENDPOINT, &o), 0);
	expect("third endpoint", open_number(third, DIBBER_ANY_ENDPOINT, &o), -EDQUOT);
	expect("above RLIMIT_MEMLOCK", add_region(fd, memory, 9 * PAGE, 1, &add), -ENOMEM);
	expect("pages by quota", add_region(fd, memory, 6 * PAGE, 1, &add), -EDQUOT);
	expect("region", add_region(fd, memory, PAGE, 1, &add), 0);
	expect("second region", add_region(second, memory, PAGE, 1, &other), 0);
	expect("third region", add_region(fd, memory, PAGE, 1, &add), -EDQUOT);
	expect("removal", remove_region(second, other.key), 0);
	expect("third region then", add_region(fd, memory, 4 * PAGE, 1, &add), 0);
	expect("another file's region", remove_region(second, add.key), -ENOENT);
}

static void test_limits(void)
{
	set_parameter("user_endpoints", "2");
	set_parameter("user_regions", "2");
	set_parameter("user_pages", "5");
	as_user(exceed_limits);
	set_parameter("user_endpoints", "0");
	set_parameter("user_regions", "0");
	set_parameter("user_pages", "0");
}

static int inherited;
static struct dibber_endpoint_open inherited_open;

static void use_inherited(void)
{
	struct dibber_region_add add;
	uint64_t count = 0;

	expect("a region by a child", add_region(inherited, &count, 1, 1, &add), -EPERM);
	expect("closing by a child", call(inherited, DIBBER_IOC_ENDPOINT_CLOSE, NULL), -EPERM);
	expect("reading by a child", read(inherited, &count, 8) < 0 ? -errno : 0, -EPERM);
	expect_mmap(inherited, "a mapping by a child", PAGE, PROT_READ, MAP_SHARED,
		    inherited_open.window, -EPERM);
	expect("an endpoint by a child", open_number(inherited, 5, &inherited_open), -EPERM);
}

static void test_children(void)
{
	inherited = open(card, O_RDWR);
	expect("endpoint", open_number(inherited, 1, &inherited_open), 0);
	as_user(use_inherited);
	expect("closing", call(inherited, DIBBER_IOC_ENDPOINT_CLOSE, NULL), 0);
	close(inherited);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} tests[] = {
		{ "read_only_door", test_read_only_door },
		{ "registers", test_registers },
		{ "opening", test_opening },
		{ "mapping", test_mapping },
		{ "commands_and_interrupts", test_commands_and_interrupts },
		{ "regions", test_regions },
		{ "limits", test_limits },
		{ "children", test_children },
	};
	int all = 0;

	if (argc != 4)
		return 2;
	card = argv[2];
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		wrong = 0;
		tests[i].run();
		printf("calls %s %s\n", tests[i].name, wrong ? "wrong" : "right");
		fflush(stdout);
		all |= wrong;
	}
	return all;
}
