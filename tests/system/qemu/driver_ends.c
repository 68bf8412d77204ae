/* How a card ends under its users: a function reset, one that fails, an error that PCIe reports,
 * its removal; and what is refused, so that it does not end: a suspend, another control program. It
 * says `ends NAME right` or `wrong` for each test.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <limits.h>
#include <signal.h>
#include <sys/wait.h>

#include <dibber/dibber.h>

#include "driver_net.h"

#define CARD   "/dev/dibber0"
#define DEVICE "/sys/class/misc/dibber0/device"
#define MEMORY (64 * 4096)

/* The control program as the driver asks for it, and where it is meanwhile. */
#define PROGRAM "/lib/firmware/dibber/mcp.dibfw"
#define AWAY	"/lib/firmware/dibber/away"
#define OTHER	"/other.dibfw"
#define LARGEST (256 * 1024)

/* Seconds of the wall clock that a busy machine needs to load the program into a simulated card. */
#define RECOVERY 600.0

static int write_file(const char *path, const void *bytes, size_t length)
{
	int fd = open(path, O_WRONLY), rc;

	if (fd < 0)
		return -errno;
	rc = write(fd, bytes, length) == (ssize_t)length ? 0 : -errno;
	close(fd);
	return rc;
}

/* A user of the card: an endpoint with its mappings, and registered memory. */
struct user {
	struct endpoint e;
	uint8_t *memory;
	struct dibber_region_add add;
};

static void begin_user(struct user *u)
{
	u->memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	expect("endpoint", open_endpoint(CARD, &u->e), 0);
	expect("region", add_region(u->e.fd, u->memory, MEMORY, ALL_RIGHTS, &u->add), 0);
}

/* A command with an opcode that does not exist is refused, which shows that the control program
 * answers. */
static void command(struct user *u)
{
	struct dibber_command command = { .opcode = 0xee };

	submit(&u->e, &command);
	expect("a command is answered", completed(&u->e), DIBBER_STATUS_BAD_OPCODE);
}

/* The user hears of the end: each call says so, and mappings show ones that take writes. */
static void expect_end(struct user *u)
{
	struct pollfd poller = { .fd = u->e.fd, .events = POLLIN };
	struct dibber_endpoint_open open;
	struct dibber_region_add add;
	struct dibber_info info;
	uint64_t count;

	expect("sleepers are woken", poll(&poller, 1, 60000), 1);
	expect("hang-up", poller.revents & POLLHUP, POLLHUP);
	expect("doorbell", *doorbell(&u->e, DIBBER_DOORBELL_PROGRAM) == 0xffffffff, 1);
	expect("queue", u->e.queues[0].cookie == 0xffffffff, 1);
	*doorbell(&u->e, DIBBER_DOORBELL_COMMAND_PRODUCER) = 1;
	u->e.window[0] = 1;
	expect("info", call(u->e.fd, DIBBER_IOC_INFO, &info), -ENODEV);
	expect("region", add_region(u->e.fd, u->memory, MEMORY, ALL_RIGHTS, &add), -ENODEV);
	expect("withdrawal", remove_region(u->e.fd, u->add.key), -ENODEV);
	expect("opening", open_number(u->e.fd, DIBBER_ANY_ENDPOINT, &open), -ENODEV);
	expect("read", read(u->e.fd, &count, sizeof(count)) < 0 ? -errno : 0, -ENODEV);
	expect("pinned", (long)pinned_pages(), 0);
	close_endpoint(&u->e);
	munmap(u->memory, MEMORY);
}

static void use_again(void)
{
	struct user u = { 0 };

	begin_user(&u);
	command(&u);
	close_endpoint(&u.e);
	munmap(u.memory, MEMORY);
}

static void wait_for_carrier(void)
{
	expect("carrier", wait_running(NEAR, "dib0", 1) && wait_running(FAR, "dib1", 1), 1);
}

static unsigned long long received(void)
{
	return statistic(FAR, "dib1", "records_received");
}

/* Frames travel: the far end gets some more. */
static void expect_frames(void)
{
	unsigned long long before = received();
	double end = now() + NET_PATIENCE;

	while (received() < before + 20 && now() < end)
		usleep(20000);
	expect("frames", received() >= before + 20, 1);
}

/* The function is reset while a process and the network device use the card. */
static void test_reset(void)
{
	struct user u = { 0 };

	begin_user(&u);
	command(&u);
	expect("reset", write_file(DEVICE "/reset", "1", 1), 0);
	expect_end(&u);
	use_again();
	wait_for_carrier();
	expect_frames();
}

static uint8_t program[LARGEST];

static size_t read_program(const char *path)
{
	int fd = open(path, O_RDONLY);
	ssize_t length = read(fd, program, sizeof(program));

	if (fd < 0 || length <= 0)
		fatal(path);
	close(fd);
	return (size_t)length;
}

static void write_program(const char *path, size_t length)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || write(fd, program, length) != (ssize_t)length)
		fatal(path);
	close(fd);
}

/* While the card does not work: its users hear why, and the other end hears nothing of it. */
static void expect_failed(void)
{
	struct dibber_register access = { .offset = DIBBER_HOST_CYCLES_LOW };
	struct dibber_info info;
	struct endpoint e;
	int fd = open(CARD, O_RDONLY);

	expect("opening", open_endpoint(CARD, &e), -ESHUTDOWN);
	close_endpoint(&e);
	/* What the driver knows by itself, and what it would have to ask the card for. */
	expect("info", call(fd, DIBBER_IOC_INFO, &info), 0);
	expect("register", call(fd, DIBBER_IOC_REGISTER, &access), -ESHUTDOWN);
	close(fd);
	expect("dib0's carrier", is_running(NEAR, "dib0"), 0);
	expect("dib1's carrier", wait_running(FAR, "dib1", 0), 1);
	expect("pinned", (long)pinned_pages(), 0);
}

/* A reset fails, because the control program cannot be loaded: its file is gone, then damaged. A
 * later reset finds it again, and all goes on. */
static void test_failed_reset(void)
{
	struct user u = { 0 };
	size_t length;

	begin_user(&u);
	command(&u);
	expect("away", rename(PROGRAM, AWAY) ? -errno : 0, 0);
	expect("reset without a program", write_file(DEVICE "/reset", "1", 1), 0);
	expect_end(&u);
	expect_failed();
	length = read_program(AWAY);
	program[length / 2] ^= 4;
	write_program(PROGRAM, length);
	expect("reset with a damaged program", write_file(DEVICE "/reset", "1", 1), 0);
	expect_failed();
	expect("back", rename(AWAY, PROGRAM) ? -errno : 0, 0);
	expect("reset", write_file(DEVICE "/reset", "1", 1), 0);
	use_again();
	wait_for_carrier();
	expect_frames();
}

/* CRC-32 of IEEE 802.3. */
static uint32_t crc_of(const uint8_t *bytes, size_t length)
{
	uint32_t crc = 0xffffffff;

	for (size_t i = 0; i < length; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

/* The images of the program with other identities, which are right otherwise. */
static void make_other_program(void)
{
	size_t length = read_program(PROGRAM), at = 0;

	while (at < length) {
		const size_t first = offsetof(struct dibber_firmware_header, entry);
		struct dibber_firmware_header header;

		memcpy(&header, program + at, sizeof(header));
		header.identity ^= 1;
		memcpy(program + at, &header, sizeof(header));
		header.crc = crc_of(program + at + first, sizeof(header) - first + header.bytes);
		memcpy(program + at, &header, sizeof(header));
		at += sizeof(header) + header.bytes;
	}
	write_program(OTHER, length);
}

/* A control program cannot be loaded under users: another one is refused, and the one that runs is
 * not loaded again. The users hear of neither. */
static void test_load(void)
{
	struct user u = { 0 };
	struct dib_card *card;

	make_other_program();
	begin_user(&u);
	command(&u);
	expect("open", dib_open(CARD, NULL, &card), 0);
	expect("another program", dib_firmware_load(card, OTHER), DIB_ERR_IN_USE);
	printf("ends load says: %s\n", dib_last_reason());
	command(&u);
	expect("the same program", dib_firmware_load(card, PROGRAM), 0);
	command(&u);
	dib_close(card);
	close_endpoint(&u.e);
	munmap(u.memory, MEMORY);
	wait_for_carrier();
	expect_frames();
}

/* drivers/pci/pcie/aer_inject.c: struct aer_error_inj. */
struct error_injection {
	uint8_t bus, dev, fn;
	uint32_t uncor_status, cor_status, header_log[4], domain;
};

#define UNCORRECTABLE_DATA_LINK (1u << 4)  /* fatal: PCIe Base 3.0, 7.10.4 */
#define UNCORRECTABLE_POISONED	(1u << 12) /* not fatal at first */

static void report_error(uint32_t status)
{
	struct error_injection error = { .uncor_status = status };
	char path[PATH_MAX], *port;
	unsigned int bus, dev, fn;

	/* The root port has the capability, and what it reports concerns all that is behind it. */
	if (!realpath(DEVICE, path))
		fatal(DEVICE);
	*strrchr(path, '/') = 0;
	port = strrchr(path, '/') + 1;
	if (sscanf(port, "%*x:%x:%x.%x", &bus, &dev, &fn) != 3)
		fatal(port);
	error.bus = (uint8_t)bus;
	error.dev = (uint8_t)dev;
	error.fn = (uint8_t)fn;
	expect("injection", write_file("/dev/aer_inject", &error, sizeof(error)), 0);
}

/* The kernel recovers in a thread of its own, which loads the program anew. */
static void wait_for_recovery(void)
{
	double end = now() + RECOVERY;
	int rc;

	do {
		struct endpoint e;

		usleep(100000);
		rc = open_endpoint(CARD, &e);
		if (e.fd >= 0)
			close_endpoint(&e);
	} while (rc == -ESHUTDOWN && now() < end);
	expect("recovery", rc, 0);
}

/* PCIe reports an error, fatal or not. The kernel resets the card, and the driver begins anew. */
static void test_errors(void)
{
	static const uint32_t kinds[] = { UNCORRECTABLE_DATA_LINK, UNCORRECTABLE_POISONED };

	for (size_t i = 0; i < 2; i++) {
		struct user u = { 0 };

		begin_user(&u);
		report_error(kinds[i]);
		expect_end(&u);
		wait_for_recovery();
		wait_for_carrier();
		use_again();
		expect_frames();
	}
}

/* A system that is to sleep is told no, and nobody hears of it. */
static void test_suspend(void)
{
	struct user u = { 0 };

	begin_user(&u);
	expect("suspend", write_file("/sys/power/state", "freeze", 6), -EBUSY);
	command(&u);
	close_endpoint(&u.e);
	munmap(u.memory, MEMORY);
	wait_for_carrier();
	expect_frames();
}

/* The device is taken out of the system under its users, and found again. */
static void test_remove(void)
{
	struct user u = { 0 };

	begin_user(&u);
	expect("removal", write_file(DEVICE "/remove", "1", 1), 0);
	expect("no interface", (long)if_nametoindex("dib0"), 0);
	expect_end(&u);
	expect("the other end's carrier", wait_running(FAR, "dib1", 0), 1);
	expect("rescan", write_file("/sys/bus/pci/rescan", "1", 1), 0);
	for (int i = 0; i < 6000 && access(CARD, R_OK | W_OK); i++)
		usleep(10000);
	use_again();
	set_address(NEAR, "dib0", "10.34.0.1");
	set_flags(NEAR, "dib0", 1);
	wait_for_carrier();
	expect_frames();
}

int main(int argc, char **argv)
{
	pid_t traffic;
	int all = 0;

	if (argc != 4 || !argv[3])
		return 2;
	setlinebuf(stdout);
	begin_networks();
	begin_interfaces();
	wait_for_carrier();
	traffic = begin_traffic();
#define TEST(name) all |= RUN_TEST("ends", name)
	TEST(reset);
	TEST(failed_reset);
	TEST(load);
	TEST(suspend);
	TEST(errors);
	TEST(remove);
	kill(traffic, SIGKILL);
	waitpid(traffic, NULL, 0);
	set_flags(NEAR, "dib0", 0);
	set_flags(FAR, "dib1", 0);
	return all;
}
