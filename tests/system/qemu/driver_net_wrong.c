/* A wrong peer of the network device: a process of the far node greets dib0 as a network device
 * does, gets the key of its ring, and then puts there what cannot be. dib0 must let it go each
 * time, deliver none of it, and afterwards serve a right peer.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <linux/virtio_net.h>

#include <dibber/dibber.h>

#include "driver_net.h"

#define CONTROL	   6
#define MAGIC	   0x4e424944u
#define RING	   (512u << 10)
#define MAX_RECORD 65600u
#define TAIL	   0u
#define CREDIT	   1u

struct hello {
	uint32_t magic, version, ring_bytes, queues;
	struct {
		uint32_t endpoint, key;
	} queue[8];
};

struct record {
	uint64_t position;
	uint32_t length;
	struct virtio_net_hdr offload;
	uint8_t reserved[10];
	uint8_t frame[1024];
};

static struct dib_card *card;
static struct dib_endpoint *control;
static struct dib_region *region;
/* Ring for dib0 and scratch, then what is sent and received. */
static uint8_t *memory;
#define HELLO  (RING + 4096)
#define ANSWER (HELLO + 128)
#define RECORD (HELLO + 4096)
#define BYTES  (RECORD + 4096)

static void succeeds(const char *what, int rc)
{
	if (rc < 0)
		printf("%s: %s\n", what, dib_last_reason());
	expect(what, rc < 0, 0);
}

/* Whether the next completions, of so many commands, have all the status OK. */
static int complete(int count)
{
	struct dib_completion completion;
	int right = 1;

	while (count) {
		int rc = dib_poll(control, &completion, 1);

		if (rc == 0)
			rc = dib_wait(control, 60 * 1000000000ull) > 0 ? 0 : -1;
		else if (rc == 1) {
			count--;
			right &= completion.status == DIBBER_STATUS_OK;
		}
		if (rc < 0) {
			succeeds("completion", rc);
			return 0;
		}
	}
	return right;
}

/* Greet dib0 until it answers. Returns the key of its ring, or 0. */
static struct hello greet(const struct hello *ours)
{
	const struct dib_delivery delivery = { .node = 0, .endpoint = CONTROL };
	struct hello answer = { 0 };

	memcpy(memory + HELLO, ours, sizeof(*ours));
	for (int attempt = 0; attempt < 50 && !answer.queue[0].key; attempt++) {
		succeeds("receive",
			 dib_receive(control, &delivery, dib_key(region), ANSWER, sizeof(answer)));
		succeeds("send",
			 dib_send(control, &delivery, dib_key(region), HELLO, sizeof(*ours)));
		/* dib0 may have been greeting this node's former life. */
		if (complete(2))
			memcpy(&answer, memory + ANSWER, sizeof(answer));
	}
	expect("the hello's magic", answer.magic, MAGIC);
	expect("the hello's ring", answer.ring_bytes, RING);
	expect("the hello's queues", answer.queues, 1);
	return answer;
}

static struct hello right_hello(void)
{
	return (struct hello){ .magic = MAGIC,
			       .version = 2,
			       .ring_bytes = RING,
			       .queues = 1,
			       .queue = { { .endpoint = CONTROL, .key = dib_key(region) } } };
}

static unsigned long long refusals(void)
{
	return statistic(NEAR, "dib0", "records_wrong") + statistic(NEAR, "dib0", "notices_wrong") +
	       statistic(NEAR, "dib0", "hellos_wrong");
}

static void wait_refused(const char *what, unsigned long long before)
{
	double end = now() + NET_PATIENCE;

	while (refusals() == before && now() < end)
		usleep(20000);
	if (refusals() != before + 1) {
		printf("%s\n", what);
		expect("refusals", (long)(refusals() - before), 1);
	}
}

static void put(const struct hello *peer, const void *bytes, uint32_t length, uint64_t offset,
		uint32_t notice)
{
	const struct dib_delivery delivery = { .node = 0,
					       .endpoint = (uint8_t)peer->queue[0].endpoint,
					       .flags = DIBBER_FLAG_NOTICE | DIBBER_FLAG_INTERRUPT,
					       .notice = notice };

	memcpy(memory + RECORD, bytes, length);
	succeeds("put", dib_put(control, &delivery, dib_key(region), RECORD, peer->queue[0].key,
				offset, length));
	complete(1);
}

static void test_hellos(void)
{
	for (int kind = 0; kind < 10; kind++) {
		unsigned long long before = refusals();
		struct hello hello = right_hello();

		switch (kind) {
		case 0:
			hello.magic++;
			break;
		case 1:
			hello.version = 1;
			break;
		case 2:
			hello.queue[0].endpoint = 0;
			break;
		case 3:
			hello.queue[0].endpoint = 0xffffffff;
			break;
		case 4:
			hello.queue[0].key = 0;
			break;
		case 5:
			hello.ring_bytes = 0;
			break;
		case 6:
			hello.queues = 0;
			break;
		case 7:
			hello.queues = 9;
			break;
		case 8: /* the second one is missing */
			hello.queues = 2;
			break;
		default:
			hello.ring_bytes = 0x80000000;
		}
		greet(&hello);
		wait_refused("hello", before);
	}
}

static void test_notices(void)
{
	static const uint32_t notices[] = { RING + 64, 0xffffffc0, 2, 63, CREDIT | 1u << 30 };
	static const uint8_t nothing[8];

	for (size_t i = 0; i < sizeof(notices) / sizeof(notices[0]); i++) {
		unsigned long long before = refusals();
		struct hello hello = right_hello(), peer = greet(&hello);

		put(&peer, nothing, 8, RING, notices[i]);
		wait_refused("notice", before);
	}
}

/* Records that are refused with their peer. */
static void test_records(void)
{
	static const struct {
		uint64_t position;
		uint32_t length, tail;
	} cases[] = {
		{ 64, 60, 128 },	 /* not where it lies */
		{ 0, 0, 64 },		 /* no Ethernet header */
		{ 0, 13, 64 },		 /* nearly one */
		{ 0, 60, 64 },		 /* longer than what was told */
		{ 0, 65558, RING },	 /* longer than any frame */
		{ 0, 0xffffffff, RING }, /* so long that the sum is short */
		{ 0, 0xffffffe0, RING },
		{ 1ull << 32, 60, RING },
	};
	struct record record = { 0 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned long long before = refusals();
		struct hello hello = right_hello(), peer = greet(&hello);

		record.position = cases[i].position;
		record.length = cases[i].length;
		put(&peer, &record, sizeof(record), 0, cases[i].tail | TAIL);
		wait_refused("record", before);
	}
}

/* Segmentation data and frames at random. They are dropped or delivered; nothing falls over. */
static void test_offload(void)
{
	struct hello hello = right_hello(), peer = greet(&hello);
	unsigned long long before = statistic(NEAR, "dib0", "records_received");
	static const uint8_t to[6] = { 2, 'D', 'I', 'B', 0, 0 };
	double end = now() + NET_PATIENCE;
	uint64_t position = 0;
	const unsigned int count = 200;

	for (unsigned int i = 0; i < count; i++) {
		uint32_t length = 14 + (uint32_t)random() % 900;
		uint32_t bytes = (32 + length + 63) & ~63u;
		struct record record;

		for (size_t n = 0; n < sizeof(record); n++)
			((uint8_t *)&record)[n] = (uint8_t)random();
		record.position = position;
		record.length = length;
		record.offload.flags = (uint8_t)random() & 3;
		record.offload.gso_type = (uint8_t)(random() & 1 ? random() & 0x85 : random());
		if (random() & 1) {
			record.offload.hdr_len = (uint16_t)(random() % 200);
			record.offload.csum_start = (uint16_t)(random() % 64);
			record.offload.csum_offset = (uint16_t)(random() % 24);
		}
		memcpy(record.frame, to, 6);
		/* IPv4 or IPv6, TCP or UDP */
		record.frame[12] = random() & 1 ? 0x08 : 0x86;
		record.frame[13] = record.frame[12] == 8 ? 0 : 0xdd;
		record.frame[14] = record.frame[12] == 8 ? 0x45 : 0x60;
		record.frame[23] = random() & 1 ? 6 : 17;
		record.frame[20] = random() & 1 ? 6 : 17;
		put(&peer, &record, 32 + length, position, (uint32_t)(position + bytes) | TAIL);
		position += bytes;
	}
	while (statistic(NEAR, "dib0", "records_received") - before < count && now() < end)
		usleep(20000);
	expect("records", (long)(statistic(NEAR, "dib0", "records_received") - before), count);
	/* It goes on with a right peer, so the next test needs a wrong notice. */
	before = refusals();
	put(&peer, "nothing", 8, RING, 2);
	wait_refused("notice", before);
}

/* A process with a key of another process sends notices to the network device. */
static void test_foreign(const char *firmware, const char *uri)
{
	struct hello hello = right_hello(), peer = greet(&hello);
	unsigned long long before = statistic(NEAR, "dib0", "events_foreign");
	struct dib_card *near;
	struct dib_endpoint *endpoint;
	struct dib_region *theirs;
	uint8_t bytes[8] = { 0 };
	double end = now() + NET_PATIENCE;

	succeeds("open", dib_open(uri, NULL, &near));
	succeeds("node", dib_node_set(near, 0));
	succeeds("program", dib_firmware_load(near, firmware));
	succeeds("endpoint", dib_endpoint_open(near, 1, NULL, &endpoint));
	succeeds("register", dib_register(endpoint, memory, 4096, ALL_RIGHTS, &theirs));
	peer.queue[0].key = dib_key(theirs);
	for (uint32_t i = 0; i < 50; i++)
		put(&peer, bytes, 8, 0, i * 64 | TAIL);
	while (statistic(NEAR, "dib0", "events_foreign") - before < 50 && now() < end)
		usleep(20000);
	expect("foreign events", (long)(statistic(NEAR, "dib0", "events_foreign") - before), 50);
	expect("the peer stays", (long)statistic(NEAR, "dib0", "peers"), 1);
	dib_close(near);
}

int main(int argc, char **argv)
{
	int all = 0;

	if (argc != 4)
		return 2;
	setlinebuf(stdout);
	begin_networks();
	set_address(NEAR, "dib0", "10.34.0.1");
	set_flags(NEAR, "dib0", 1);
	memory = aligned_alloc(4096, BYTES);
	memset(memory, 0, BYTES);
	succeeds("open", dib_open(argv[3], NULL, &card));
	succeeds("node", dib_node_set(card, 1));
	succeeds("program", dib_firmware_load(card, argv[1]));
	succeeds("endpoint", dib_endpoint_open(card, CONTROL, NULL, &control));
	succeeds("register", dib_register(control, memory, BYTES, ALL_RIGHTS, &region));
	all = wrong;
#define TEST(name, ...) all |= RUN_TEST("net_wrong", name, __VA_ARGS__)
	TEST(hellos);
	TEST(notices);
	TEST(records);
	TEST(offload);
	TEST(foreign, argv[1], argv[2]);
	dib_close(card);
	set_flags(NEAR, "dib0", 0);
	return all;
}
