/* The library on /dev/dibberN: transfers between two cards, protection between processes, and a
 * card that is taken away: driver_pairs FIRMWARE /dev/dibber0 /dev/dibber1 */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <linux/seccomp.h>
#include <signal.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "driver_library.h"
#include "driver_net.h"

#define BYTES	 300000u
#define PATIENCE 60000000000u /* nanoseconds */

/* Of the heap, so that its pages lie anywhere and nothing of it is shared. */
static uint8_t *random_memory(void)
{
	uint8_t *memory = malloc(BYTES);

	for (uint32_t i = 0; i < BYTES; i++)
		memory[i] = (uint8_t)random();
	return memory;
}

static void close_end(struct end *e)
{
	succeeds("unregister", dib_unregister(e->region));
	dib_endpoint_close(e->endpoint);
	dib_close(e->card);
	free(e->memory);
}

/* The status of the next completion, or minus 1. */
static int status_of(struct dib_endpoint *endpoint)
{
	struct dib_completion completion;
	int rc;

	while ((rc = dib_poll(endpoint, &completion, 1)) == 0) {
		rc = dib_wait(endpoint, PATIENCE);
		if (rc <= 0)
			break;
	}
	if (rc == 1)
		return completion.status;
	printf("no completion: %d %s\n", rc, rc < 0 ? dib_last_reason() : "");
	wrong = 1;
	return -1;
}

static void test_bytes(struct end *a, struct end *b)
{
	uint8_t *expected = malloc(BYTES);

	for (unsigned int i = 0; i < 40; i++) {
		struct end *from = i & 1 ? b : a, *to = i & 1 ? a : b;
		struct dib_delivery delivery = { .node = (uint16_t)!(i & 1) };
		uint32_t length = (uint32_t)random() % (i % 4 ? 9000 : 100000) + 1;
		uint32_t source = (uint32_t)random() % (BYTES - length);
		uint32_t target = (uint32_t)random() % (BYTES - length);

		memcpy(expected, to->memory, BYTES);
		memcpy(expected + target, from->memory + source, length);
		succeeds("put", dib_put(from->endpoint, &delivery, dib_key(from->region), source,
					dib_key(to->region), target, length));
		expect("put", status_of(from->endpoint), DIBBER_STATUS_OK);
		expect("bytes", memcmp(expected, to->memory, BYTES) != 0, 0);
		delivery.node = (uint16_t)(i & 1);
		memcpy(expected, to->memory, BYTES);
		memcpy(expected + source, from->memory + target, length);
		succeeds("get", dib_get(to->endpoint, &delivery, dib_key(from->region), target,
					dib_key(to->region), source, length));
		expect("get", status_of(to->endpoint), DIBBER_STATUS_OK);
		expect("bytes", memcmp(expected, to->memory, BYTES) != 0, 0);
	}
	free(expected);
}

static uint32_t doorbells_of(struct dib_card *card)
{
	struct dib_card_info info;

	succeeds("info", dib_card_info(card, &info));
	for (unsigned int i = 0; i < DIBBER_COUNTERS; i++) {
		if (!strcasecmp(info.counters[i].name, "doorbells"))
			return info.counters[i].value;
	}
	return 0;
}

/* A system call but read, write and exit would kill this process (seccomp(2), strict mode). */
static void put_without_system_calls(const char *uri, uint32_t target)
{
	struct dib_delivery delivery = { .node = 1 };
	struct dib_completion completion;
	struct end e = { 0 };
	int rc = 0;

	open_end(&e, uri, 0, 2, random_memory(), BYTES);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		_exit(1);
	for (int i = 0; i < 8 && rc == 0; i++) {
		if (dib_put(e.endpoint, &delivery, dib_key(e.region), 0, target, 0, 4096))
			syscall(SYS_exit, 2);
		do {
			rc = dib_poll(e.endpoint, &completion, 1);
		} while (rc == 0);
		rc = rc == 1 && completion.status == DIBBER_STATUS_OK ? 0 : 3;
	}
	syscall(SYS_exit, rc);
}

static void test_no_system_calls(struct end *a, struct end *b, const char *uri)
{
	uint32_t before = doorbells_of(a->card), key = dib_key(b->region);
	int status = -1;
	pid_t child = fork();

	if (child == 0)
		put_without_system_calls(uri, key);
	waitpid(child, &status, 0);
	expect("puts without a system call", status, 0);
	/* 8, and those of the administrator: open, register, withdraw, close. */
	expect("doorbells", doorbells_of(a->card) - before, 8 + 4);
}

static void be_another(const char *uri, int tell)
{
	struct end e = { 0 };
	uint32_t key;

	open_end(&e, uri, 0, 3, random_memory(), BYTES);
	key = dib_key(e.region);
	if (write(tell, &key, sizeof(key)) != sizeof(key))
		_exit(1);
	pause();
}

static void test_protection(struct end *a, struct end *b, const char *uri)
{
	struct dib_delivery to_b = { .node = 1 }, to_a = { .node = 0 };
	struct dib_endpoint *taken;
	struct dib_region *region;
	uint32_t key = 0;
	int ends[2], status;
	pid_t child;

	fails("the driver's endpoint", dib_endpoint_open(a->card, 0, NULL, &taken), DIB_ERR_IN_USE);
	fails("another node number", dib_node_set(a->card, 5), DIB_ERR_IN_USE);
	fails("a register", dib_register_write(a->card, DIBBER_HOST_MCP_CONTROL, 0),
	      DIB_ERR_IN_USE);
	fails("no memory", dib_register(a->endpoint, (void *)4096, 1, 1, &region),
	      DIB_ERR_ARGUMENT);
	if (pipe(ends))
		wrong = 1;
	child = fork();
	if (child == 0)
		be_another(uri, ends[1]);
	expect("the other process", read(ends[0], &key, sizeof(key)), sizeof(key));
	fails("its endpoint", dib_endpoint_open(a->card, 3, NULL, &taken), DIB_ERR_IN_USE);
	succeeds("put of its memory",
		 dib_put(a->endpoint, &to_b, key, 0, dib_key(b->region), 0, 100));
	expect("its memory as a source", status_of(a->endpoint), DIBBER_STATUS_NOT_OWNER);
	succeeds("put to it", dib_put(b->endpoint, &to_a, dib_key(b->region), 0, key, 0, 100));
	expect("its memory as a target", status_of(b->endpoint), DIBBER_STATUS_OK);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	succeeds("put to the dead",
		 dib_put(b->endpoint, &to_a, dib_key(b->region), 0, key, 0, 100));
	expect("a dead process's key", status_of(b->endpoint), DIBBER_STATUS_REMOTE_BAD_KEY);
	close(ends[0]);
	close(ends[1]);
}

static void test_interrupt(struct end *a, struct end *b)
{
	struct dib_delivery delivery = { .node = 1,
					 .endpoint = 1,
					 .flags = DIBBER_FLAG_NOTICE | DIBBER_FLAG_INTERRUPT,
					 .notice = 5 };
	struct dib_event event = { 0 };
	struct pollfd poller = { .fd = dib_event_fd(b->endpoint), .events = POLLIN };

	succeeds("descriptor", poller.fd);
	succeeds("put",
		 dib_put(a->endpoint, &delivery, dib_key(a->region), 0, dib_key(b->region), 0, 64));
	expect("sleep", poll(&poller, 1, 60000), 1);
	expect("event", dib_poll_events(b->endpoint, &event, 1), 1);
	expect("notice", event.notice, 5);
	expect("put", status_of(a->endpoint), DIBBER_STATUS_OK);
}

/* Take card 0 from the driver while an endpoint of it is open and its network device sends. */
static void test_unbind(struct end *a)
{
	pid_t traffic;
	struct dib_delivery delivery = { .node = 1 };
	struct pollfd poller = { .fd = dib_event_fd(a->endpoint), .events = POLLIN };
	struct dib_completion completion;
	char link[256] = "";
	struct dib_region *region;
	int unbind = open("/sys/bus/pci/drivers/dibber/unbind", O_WRONLY), rc;
	char *address;

	begin_networks();
	begin_interfaces();
	expect("carrier", wait_running(NEAR, "dib0", 1), 1);
	traffic = begin_traffic();
	while (statistic(NEAR, "dib0", "records_received") < 50)
		usleep(20000);
	if (readlink("/sys/class/misc/dibber0/device", link, sizeof(link) - 1) < 0)
		wrong = 1;
	address = strrchr(link, '/');
	address = address ? address + 1 : link;
	expect("unbind", write(unbind, address, strlen(address)), (long)strlen(address));
	close(unbind);
	expect("no interface", (long)if_nametoindex("dib0"), 0);
	expect("pinned behind unbind", (long)pinned_pages() > 0, 1); /* card 1's are left */
	expect("sleepers are woken", poll(&poller, 1, 60000), 1);
	fails("register", dib_register(a->endpoint, a->memory, 100, 1, &region), DIB_ERR_LOST);
	/* It goes into the pages that are there in place of slots and doorbells. */
	succeeds("put", dib_put(a->endpoint, &delivery, 1, 0, 1, 0, 100));
	for (int i = 0; (rc = dib_poll(a->endpoint, &completion, 1)) == 0 && i < 1000000; i++)
		;
	fails("poll", rc, DIB_ERR_LOST);
	kill(traffic, SIGKILL);
	waitpid(traffic, NULL, 0);
}

int main(int argc, char **argv)
{
	struct end a = { 0 }, b = { 0 };
	int all = 0;

	if (argc != 4)
		return 2;
	firmware = argv[1];
	open_end(&a, argv[2], 0, 1, random_memory(), BYTES);
	open_end(&b, argv[3], 1, 1, random_memory(), BYTES);
#define TEST(name, ...) all |= RUN_TEST("pairs", name, __VA_ARGS__)
	all = wrong;
	TEST(bytes, &a, &b);
	TEST(no_system_calls, &a, &b, argv[2]);
	TEST(protection, &a, &b, argv[2]);
	TEST(interrupt, &a, &b);
	TEST(unbind, &a);
	wrong = 0;
	close_end(&b);
	dib_close(a.card);
	return all | wrong;
}
