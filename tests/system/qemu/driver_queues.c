/* Several queues of the network device, between two network namespaces: how many there are, which
 * one a flow takes, and what happens when their number changes. It says `queues NAME right` or
 * `wrong` for each test.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>

#include "driver_net.h"

#define MOST	  6u /* endpoints of a card without the administrator's and that of hellos */
#define NEAR_MANY 3u
#define FAR_MANY  2u /* the connection has the smaller one of both */
#define FLOWS	  24u
#define ROUNDS	  8u
#define BYTES	  1200u
#define STREAMS	  4u
#define STREAM	  65536u
/* Seconds. TCP doubles its time to send again while nothing is answered. */
#define PATIENCE 180.0
#define PORT	 3500

static uint8_t pattern[STREAM + 256 * STREAMS];

static struct ethtool_channels channels_of(int space, const char *interface)
{
	struct ethtool_channels channels = { .cmd = ETHTOOL_GCHANNELS };
	struct ifreq request = request_for(interface);
	int fd = make_socket(space, AF_INET, SOCK_DGRAM, 0);

	request.ifr_data = (char *)&channels;
	if (ioctl(fd, SIOCETHTOOL, &request))
		fatal("ETHTOOL_GCHANNELS");
	close(fd);
	return channels;
}

/* What `ethtool -L` does: 0, or minus the errno. */
static int set_channels(int space, const char *interface, struct ethtool_channels channels)
{
	struct ifreq request = request_for(interface);
	int fd = make_socket(space, AF_INET, SOCK_DGRAM, 0), rc;

	channels.cmd = ETHTOOL_SCHANNELS;
	request.ifr_data = (char *)&channels;
	rc = ioctl(fd, SIOCETHTOOL, &request) ? -errno : 0;
	close(fd);
	return rc;
}

static int set_queues(int space, const char *interface, uint32_t count)
{
	return set_channels(space, interface, (struct ethtool_channels){ .combined_count = count });
}

static unsigned long long of_queue(int space, const char *interface, unsigned int queue,
				   const char *name)
{
	char full[64];

	snprintf(full, sizeof(full), "queue%u_%s", queue, name);
	return statistic(space, interface, full);
}

/* A change of queues takes the carrier away, and it comes back when both ends have greeted. */
static void wait_for_carrier(void)
{
	expect("carrier", wait_running(NEAR, "dib0", 1) && wait_running(FAR, "dib1", 1), 1);
}

static void set_both(uint32_t near, uint32_t far)
{
	expect("queues of dib0", set_queues(NEAR, "dib0", near), 0);
	expect("queues of dib1", set_queues(FAR, "dib1", far), 0);
	wait_for_carrier();
}

static void test_numbers(void)
{
	struct ethtool_channels channels = channels_of(NEAR, "dib0");

	expect("the most", (long)channels.max_combined, MOST);
	expect("at first", (long)channels.combined_count, 1);
	expect("none", set_queues(NEAR, "dib0", 0), -EINVAL);
	expect("too many", set_queues(NEAR, "dib0", MOST + 1), -EINVAL);
	expect("some that only receive",
	       set_channels(NEAR, "dib0",
			    (struct ethtool_channels){ .combined_count = 1, .rx_count = 1 }),
	       -EINVAL);
	set_both(NEAR_MANY, FAR_MANY);
	expect("of dib0", (long)channels_of(NEAR, "dib0").combined_count, NEAR_MANY);
	expect("of dib1", (long)channels_of(FAR, "dib1").combined_count, FAR_MANY);
}

static int udp_socket(int space, const char *to, uint16_t from_port, uint16_t to_port)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_port = htons(from_port) };
	struct sockaddr_in other = { .sin_family = AF_INET, .sin_port = htons(to_port) };
	int fd = make_socket(space, AF_INET, SOCK_DGRAM, 0);

	inet_pton(AF_INET, to, &other.sin_addr);
	if (bind(fd, (struct sockaddr *)&own, sizeof(own)) ||
	    connect(fd, (struct sockaddr *)&other, sizeof(other)))
		fatal("socket");
	return fd;
}

/* Datagrams arrive as they left, in their order. */
static void send_some(int from, int to, size_t start)
{
	struct pollfd poller = { .fd = to, .events = POLLIN };
	uint8_t got[BYTES + 1];

	for (unsigned int i = 0; i < ROUNDS; i++)
		expect("sent", send(from, pattern + start + i, BYTES, 0), BYTES);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		if (poll(&poller, 1, (int)(NET_PATIENCE * 1e3)) <= 0) {
			expect("datagram", -ETIMEDOUT, BYTES);
			return;
		}
		expect("datagram", recv(to, got, sizeof(got), 0), BYTES);
		expect("its bytes", memcmp(got, pattern + start + i, BYTES) != 0, 0);
	}
}

/* Each flow stays in one queue, many flows take all queues, and a queue's frames arrive at the same
 * queue of the other end.
 */
static void test_flows(void)
{
	unsigned long long before[NEAR_MANY], after, far_before[FAR_MANY], took[NEAR_MANY] = { 0 };
	unsigned int i;

	for (i = 0; i < FAR_MANY; i++)
		far_before[i] = of_queue(FAR, "dib1", i, "records_received");
	for (unsigned int flow = 0; flow < FLOWS; flow++) {
		uint16_t near_port = (uint16_t)(PORT + flow), far_port = (uint16_t)(4500 + flow);
		int near = udp_socket(NEAR, "10.34.0.2", near_port, far_port);
		int far = udp_socket(FAR, "10.34.0.1", far_port, near_port);
		unsigned int used = 0;

		for (i = 0; i < NEAR_MANY; i++)
			before[i] = of_queue(NEAR, "dib0", i, "tx_bytes");
		send_some(near, far, flow * ROUNDS);
		for (i = 0; i < NEAR_MANY; i++) {
			/* Other frames between them (ARP, IPv6) are small: 13 of 90 bytes are less
			 * than one datagram.
			 */
			after = of_queue(NEAR, "dib0", i, "tx_bytes") - before[i];
			used += after >= BYTES;
			took[i] += after >= (unsigned long long)ROUNDS * BYTES;
		}
		expect("queues of a flow", used, 1);
		close(near);
		close(far);
	}
	printf("queues took %llu, %llu and %llu of %u flows\n", took[0], took[1], took[2], FLOWS);
	for (i = 0; i < FAR_MANY; i++) {
		/* By chance alone one of two gets so few of 24 once in 1000 times. */
		expect("flows of a queue", took[i] >= 4, 1);
		after = of_queue(FAR, "dib1", i, "records_received") - far_before[i];
		expect("frames at the same queue", after >= took[i] * ROUNDS, 1);
		expect("its interrupts", of_queue(FAR, "dib1", i, "interrupts") > 0, 1);
	}
	/* The far end has no ring for it. */
	expect("flows of the third queue", (long)took[2], 0);
	expect("frames of the third queue",
	       (long)of_queue(NEAR, "dib0", NEAR_MANY - 1, "records_sent"), 0);
	expect("flows of both queues", (long)(took[0] + took[1]), FLOWS);
	/* Keepalives and hellos change nothing here: all sums are of the queues. */
	after = 0;
	for (i = 0; i < NEAR_MANY; i++)
		after += of_queue(NEAR, "dib0", i, "rx_bytes");
	expect("the sum has all queues", statistic(NEAR, "dib0", "rx_bytes") >= after, 1);
}

static void stream_out(unsigned int number)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int fd = make_socket(NEAR, AF_INET, SOCK_STREAM, 0);
	size_t done = 0;
	char byte = (char)number;

	alarm((unsigned int)PATIENCE);
	inet_pton(AF_INET, "10.34.0.2", &to.sin_addr);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) || send(fd, &byte, 1, 0) != 1)
		_exit(1);
	while (done < STREAM) {
		ssize_t step = send(fd, pattern + 256 * number + done, STREAM - done, 0);

		if (step <= 0)
			_exit(1);
		done += (size_t)step;
	}
	/* The other end has all of it when it closes. */
	_exit(recv(fd, &byte, 1, 0) != 0);
}

/* Several connections at once, and each byte of them. `between` is called when they have begun. */
static void streams(void (*between)(void))
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int listener = make_socket(FAR, AF_INET, SOCK_STREAM, 0), one = 1, status = -1;
	struct pollfd ends[STREAMS];
	static uint8_t got[STREAMS][STREAM];
	size_t done[STREAMS] = { 0 };
	unsigned int open = STREAMS;
	double last = now();

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&own, sizeof(own)) || listen(listener, STREAMS))
		fatal("listen");
	for (unsigned int i = 0; i < STREAMS; i++) {
		if (fork() == 0)
			stream_out(i);
	}
	for (unsigned int i = 0; i < STREAMS; i++) {
		int fd = accept(listener, NULL, NULL);
		char number = 0;

		if (recv(fd, &number, 1, MSG_WAITALL) != 1)
			fatal("recv");
		ends[(size_t)number % STREAMS] = (struct pollfd){ .fd = fd, .events = POLLIN };
	}
	if (between)
		between();
	while (open && now() - last < PATIENCE) {
		poll(ends, STREAMS, 1000);
		for (unsigned int i = 0; i < STREAMS; i++) {
			ssize_t step;

			if (!(ends[i].revents & (POLLIN | POLLHUP | POLLERR)))
				continue;
			step = recv(ends[i].fd, got[i] + done[i], STREAM - done[i], MSG_DONTWAIT);
			if (step > 0) {
				done[i] += (size_t)step;
				last = now();
			}
			if (done[i] == STREAM || step == 0) {
				close(ends[i].fd);
				ends[i].fd = -1;
				open--;
			}
		}
	}
	for (unsigned int i = 0; i < STREAMS; i++) {
		expect("a stream", (long)done[i], STREAM);
		expect("its bytes", memcmp(got[i], pattern + 256 * i, STREAM) != 0, 0);
		wait(&status);
		expect("its sender", status, 0);
	}
	close(listener);
}

static void test_streams(void)
{
	streams(NULL);
}

static void change_queues(void)
{
	double begin = now();

	set_both(2, 4);
	printf("queues changed in %u ms\n", (unsigned int)((now() - begin) * 1e3));
}

/* The number changes under running connections, which go on. */
static void test_change(void)
{
	streams(change_queues);
	expect("of dib0", (long)channels_of(NEAR, "dib0").combined_count, 2);
	set_both(4, 4);
}

/* Interrupts of each of the four queues are held. */
static void test_held(void)
{
	unsigned long long before[4];

	expect("hold-off", set_hold_off(NEAR, "dib0", 300, 0), 0);
	expect("hold-off", set_hold_off(FAR, "dib1", 300, 0), 0);
	for (unsigned int i = 0; i < 4; i++)
		before[i] = of_queue(FAR, "dib1", i, "records_received");
	streams(NULL);
	for (unsigned int i = 0; i < 4; i++)
		printf("queues held: queue %u had %llu frames\n", i,
		       of_queue(FAR, "dib1", i, "records_received") - before[i]);
	expect("hold-off", set_hold_off(NEAR, "dib0", 0, 0), 0);
	expect("hold-off", set_hold_off(FAR, "dib1", 0, 0), 0);
}

/* Processes have the endpoints: the device says so, and goes on with the queues that it had. */
static void test_busy(void)
{
	struct endpoint users[2];

	for (unsigned int i = 0; i < 2; i++)
		expect("endpoint", open_endpoint("/dev/dibber0", &users[i]), 0);
	expect("queues without endpoints", set_queues(NEAR, "dib0", 5), -EBUSY);
	expect("as before", (long)channels_of(NEAR, "dib0").combined_count, 4);
	wait_for_carrier();
	for (unsigned int i = 0; i < 2; i++)
		close_endpoint(&users[i]);
	set_both(5, 1);
	/* The interface need not be up. */
	set_flags(NEAR, "dib0", 0);
	expect("queues of one that is down", set_queues(NEAR, "dib0", 1), 0);
	set_flags(NEAR, "dib0", 1);
	wait_for_carrier();
	streams(NULL);
}

int main(int argc, char **argv)
{
	int all = 0;

	if (argc != 4 || !argv[3])
		return 2;
	setlinebuf(stdout);
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)random();
	begin_networks();
	begin_interfaces();
	wait_for_carrier();
	all = wrong;
#define TEST(name)                               \
	do {                                     \
		all |= RUN_TEST("queues", name); \
		show_statistics(NEAR, "dib0");   \
		show_statistics(FAR, "dib1");    \
	} while (0)
	TEST(numbers);
	TEST(flows);
	TEST(streams);
	TEST(change);
	TEST(held);
	TEST(busy);
	set_flags(NEAR, "dib0", 0);
	set_flags(FAR, "dib1", 0);
	return all;
}
