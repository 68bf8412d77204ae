/* The network device between two cards: what sockets carry arrives as it left, whatever its size,
 * and whatever happens to the cable, the interface and the control program meanwhile.
 *
 * Both ends are in this process, in two network namespaces. It says `net NAME right` or `wrong` for
 * each test.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <glob.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/wait.h>

#include "driver_net.h"

#define NEAR_ADDRESS "10.34.0.1"
#define FAR_ADDRESS  "10.34.0.2"
#define PORT	     3434
#define MOST_UDP     65507
#define STREAM	     (1 << 20) /* of which time and interrupts are measured */
#define SHORT	     (STREAM / 2)
#define WINDOW	     (4 << 20)
#define TOGETHER     32768 /* bytes of pings under way */
#define HELD_USECS   300
#define LONG_USECS   4000

static uint8_t pattern[STREAM], got[STREAM];

static struct sockaddr_in address_of(const char *text, uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, text, &address.sin_addr);
	return address;
}

static void set_option(int fd, int level, int option, int value)
{
	if (setsockopt(fd, level, option, &value, sizeof(value)))
		fatal("setsockopt");
}

static int wait_for(int fd, short events, double seconds)
{
	struct pollfd poller = { .fd = fd, .events = events };

	return poll(&poller, 1, (int)(seconds * 1e3));
}

/* ping ----------------------------------------------------------------------------------------- */

static uint16_t checksum(const uint8_t *bytes, size_t length)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < length; i++)
		sum += (uint32_t)bytes[i] << (i & 1 ? 0 : 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

static int ping_socket(void)
{
	int fd = make_socket(NEAR, AF_INET, SOCK_RAW, IPPROTO_ICMP);

	set_option(fd, SOL_SOCKET, SO_RCVBUF, 4 << 20);
	set_option(fd, SOL_SOCKET, SO_SNDBUF, 4 << 20);
	return fd;
}

static void send_ping(int fd, uint16_t sequence, size_t bytes)
{
	static uint8_t packet[65536];
	struct icmphdr *head = (struct icmphdr *)packet;
	struct sockaddr_in to = address_of(FAR_ADDRESS, 0);
	size_t length = sizeof(*head) + bytes;

	*head = (struct icmphdr){ .type = ICMP_ECHO,
				  .un.echo = { .id = htons(34), .sequence = htons(sequence) } };
	memcpy(head + 1, pattern + sequence, bytes);
	head->checksum = checksum(packet, length);
	if (sendto(fd, packet, length, 0, (struct sockaddr *)&to, sizeof(to)) != (ssize_t)length)
		expect("ping", -errno, 0);
}

/* The number of the next reply whose bytes are right, or -1. */
static int take_reply(int fd, size_t bytes, double seconds)
{
	static uint8_t packet[70000];
	double end = now() + seconds;

	while (now() < end) {
		const struct icmphdr *head;
		ssize_t length;
		size_t start;

		if (wait_for(fd, POLLIN, end - now()) <= 0)
			break;
		length = recv(fd, packet, sizeof(packet), 0);
		start = (size_t)(packet[0] & 15) * 4;
		head = (const struct icmphdr *)(packet + start);
		if (length < (ssize_t)(start + sizeof(*head)) || head->type != ICMP_ECHOREPLY ||
		    head->un.echo.id != htons(34))
			continue;
		expect("length", length, (long)(start + sizeof(*head) + bytes));
		expect("bytes",
		       memcmp(head + 1, pattern + ntohs(head->un.echo.sequence), bytes) != 0, 0);
		return ntohs(head->un.echo.sequence);
	}
	return -1;
}

/* Pings of several sizes: small ones are under way together, long ones one behind the other. The
 * kernel keeps at most 128 KiB of replies, which come in order.
 */
static void ping_together(int fd, uint16_t first, const size_t *sizes, size_t count)
{
	size_t sent = 0, replies = 0, under_way = 0;

	while (replies < count) {
		int reply, wanted = first + (int)replies;

		while (sent < count && (!under_way || under_way + sizes[sent] <= TOGETHER)) {
			send_ping(fd, (uint16_t)(first + sent), sizes[sent]);
			under_way += sizes[sent++];
		}
		reply = take_reply(fd, sizes[replies], NET_PATIENCE);
		if (reply != wanted) {
			printf("ping of %zu bytes\n", sizes[replies]);
			expect("reply", reply, wanted);
			return;
		}
		under_way -= sizes[replies++];
	}
}

static void ping_once(int fd, uint16_t sequence, size_t bytes)
{
	ping_together(fd, sequence, &bytes, 1);
}

/* A frame has 42 bytes more, its record 74. Records are multiples of 64, packets end after 4096,
 * and frames above 512 and 128 bytes are made in other ways.
 */
static void test_ping(void)
{
	static const unsigned int boundaries[] = { 128,	 256,  512,  554,   1472,
						   4096, 4170, 8192, 12288, 65492 };
	int fd = ping_socket();
	uint16_t sequence = 0;

	for (size_t bytes = 0; bytes < 4; bytes++)
		ping_once(fd, sequence++, bytes);
	for (size_t i = 0; i < sizeof(boundaries) / sizeof(boundaries[0]); i++) {
		size_t sizes[9], count = 0;

		for (unsigned int less = 0; less < 3; less++) {
			sizes[count++] = boundaries[i] - 42 + 1 - less;
			sizes[count++] = boundaries[i] - 74 + 1 - less;
			sizes[count++] = boundaries[i] + 1 - less;
		}
		ping_together(fd, sequence, sizes, count);
		sequence += count;
	}
	ping_once(fd, sequence++, MOST_UDP);
	close(fd);
}

/* As `ping -f`: some under way, none is lost. The kernel keeps at most 128 KiB of replies. */
static void flood(uint16_t count, uint16_t under_way, size_t bytes, double seconds)
{
	int fd = ping_socket();
	uint16_t sent = 0, replies = 0;

	while (replies < count) {
		while (sent < count && sent - replies < under_way)
			send_ping(fd, sent++, bytes);
		if (take_reply(fd, bytes, seconds) < 0)
			break;
		replies++;
	}
	expect("replies", replies, count);
	close(fd);
}

static void test_flood(void)
{
	flood(200, 16, 56, NET_PATIENCE);
	flood(20, 8, 8000, NET_PATIENCE);
}

/* UDP ------------------------------------------------------------------------------------------ */

static void udp_once(int from, int to, const struct sockaddr_in *address, size_t bytes)
{
	ssize_t length;

	memset(got, 0, bytes);
	if (sendto(from, pattern + bytes, bytes, 0, (const struct sockaddr *)address,
		   sizeof(*address)) != (ssize_t)bytes)
		expect("sendto", -errno, 0);
	length =
		wait_for(to, POLLIN, NET_PATIENCE) > 0 ? recv(to, got, sizeof(got), 0) : -ETIMEDOUT;
	expect("datagram", length, (long)bytes);
	expect("its bytes", memcmp(got, pattern + bytes, bytes) != 0, 0);
}

static void test_udp(void)
{
	static const size_t sizes[] = { 0,    1,    22,	  470,	471,   1472,
					1473, 4054, 8972, 8973, 65478, MOST_UDP };
	struct sockaddr_in near = address_of(NEAR_ADDRESS, PORT);
	struct sockaddr_in far = address_of(FAR_ADDRESS, PORT);
	int a = make_socket(NEAR, AF_INET, SOCK_DGRAM, 0);
	int b = make_socket(FAR, AF_INET, SOCK_DGRAM, 0);

	if (bind(a, (struct sockaddr *)&near, sizeof(near)) ||
	    bind(b, (struct sockaddr *)&far, sizeof(far)))
		fatal("bind");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		udp_once(a, b, &far, sizes[i]);
		udp_once(b, a, &near, sizes[i]);
	}
	close(a);
	close(b);
}

/* TCP ------------------------------------------------------------------------------------------ */

struct connection {
	int ends[2];
};

static struct connection connect_ends(void)
{
	struct sockaddr_in far = address_of(FAR_ADDRESS, PORT);
	int listener = make_socket(FAR, AF_INET, SOCK_STREAM, 0);
	struct connection c = { .ends = { make_socket(NEAR, AF_INET, SOCK_STREAM, 0), -1 } };

	set_option(listener, SOL_SOCKET, SO_REUSEADDR, 1);
	/* A window for what comes while interrupts are held. */
	set_option(listener, SOL_SOCKET, SO_RCVBUFFORCE, WINDOW);
	set_option(c.ends[NEAR], SOL_SOCKET, SO_RCVBUFFORCE, WINDOW);
	if (bind(listener, (struct sockaddr *)&far, sizeof(far)) || listen(listener, 1) ||
	    connect(c.ends[NEAR], (struct sockaddr *)&far, sizeof(far)))
		fatal("connect");
	c.ends[FAR] = accept(listener, NULL, NULL);
	for (int i = 0; i < 2; i++) {
		if (fcntl(c.ends[i], F_SETFL, O_NONBLOCK))
			fatal("fcntl");
	}
	close(listener);
	return c;
}

/* Send a stream from one end to the other and compare it. `at` is called once in its middle. */
static void stream(const struct connection *c, int from, size_t bytes, size_t write_size,
		   void (*at)(void))
{
	struct pollfd pollers[2] = { { .fd = c->ends[from], .events = POLLOUT },
				     { .fd = c->ends[!from], .events = POLLIN } };
	size_t sent = 0, received = 0;
	double last = now();

	while (received < bytes && now() - last < NET_PATIENCE) {
		ssize_t step;

		pollers[0].events = sent < bytes ? POLLOUT : 0;
		poll(pollers, 2, 1000);
		if (sent < bytes) {
			size_t size = bytes - sent < write_size ? bytes - sent : write_size;

			step = send(c->ends[from], pattern + sent, size, MSG_NOSIGNAL);
			sent += step > 0 ? (size_t)step : 0;
		}
		step = recv(c->ends[!from], got + received, bytes - received, 0);
		if (step > 0) {
			received += (size_t)step;
			last = now();
		}
		if (at && received > bytes / 2) {
			at();
			at = NULL;
			last = now();
		}
	}
	expect("stream", (long)received, (long)bytes);
	expect("its bytes", memcmp(got, pattern, received) != 0, 0);
}

static void stop_ends(struct connection *c)
{
	/* Without TIME_WAIT, because the port is used again. */
	struct linger linger = { .l_onoff = 1 };

	for (int i = 0; i < 2; i++) {
		setsockopt(c->ends[i], SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
		close(c->ends[i]);
	}
}

static void stream_once(int from, size_t bytes, size_t write_size, void (*at)(void))
{
	struct connection c = connect_ends();

	stream(&c, from, bytes, write_size, at);
	stop_ends(&c);
}

static uint32_t register_0(uint32_t offset)
{
	struct dibber_register access = { .offset = offset };
	int fd = open("/dev/dibber0", O_RDONLY);

	expect("register", call(fd, DIBBER_IOC_REGISTER, &access), 0);
	close(fd);
	return access.value;
}

static uint32_t clock_mhz(void)
{
	return register_0(DIBBER_HOST_CLOCK_HZ) / 1000000;
}

struct measured {
	uint32_t usecs;		      /* of the card, modulo 2^32 cycles, which is 34 s */
	unsigned long long near, far; /* interrupts of both ends */
};

/* A stream of STREAM bytes is measured. */
static struct measured measure_stream(const char *name)
{
	struct connection c = connect_ends();
	unsigned long long near, far;
	uint32_t cycles;

	/* The first window that a connection offers has 64 KiB at most (RFC 7323, 2.2). */
	stream(&c, NEAR, STREAM / 4, 65536, NULL);
	cycles = register_0(DIBBER_HOST_CYCLES_LOW);
	near = statistic(NEAR, "dib0", "interrupts");
	far = statistic(FAR, "dib1", "interrupts");
	stream(&c, NEAR, STREAM, 65536, NULL);
	cycles = register_0(DIBBER_HOST_CYCLES_LOW) - cycles;
	near = statistic(NEAR, "dib0", "interrupts") - near;
	far = statistic(FAR, "dib1", "interrupts") - far;
	printf("measured %s %u bytes in %u us of the card, %llu and %llu interrupts\n", name,
	       STREAM, cycles / clock_mhz(), near, far);
	stop_ends(&c);
	return (struct measured){ cycles / clock_mhz(), near, far };
}

static void test_tcp(void)
{
	measure_stream("net_stream");
	stream_once(FAR, SHORT, 65536, NULL);
	stream_once(NEAR, 100000, 1000, NULL);
}

static void down_and_up(void)
{
	set_flags(NEAR, "dib0", 0);
	expect("endpoints are free", statistic(NEAR, "dib0", "peers"), 0);
	set_flags(NEAR, "dib0", 1);
	expect("carrier", wait_running(NEAR, "dib0", 1), 1);
	set_flags(FAR, "dib1", 0);
	set_flags(FAR, "dib1", 1);
	expect("carrier", wait_running(FAR, "dib1", 1), 1);
}

static void hold_both(uint32_t usecs, uint32_t frames)
{
	expect("hold-off", set_hold_off(NEAR, "dib0", usecs, frames), 0);
	expect("hold-off", set_hold_off(FAR, "dib1", usecs, frames), 0);
}

/* Microseconds of the card that a ping of 8 bytes takes, there and back. */
static uint32_t time_of_ping(void)
{
	int fd = ping_socket();
	uint32_t cycles = register_0(DIBBER_HOST_CYCLES_LOW);

	ping_once(fd, 1, 8);
	cycles = register_0(DIBBER_HOST_CYCLES_LOW) - cycles;
	close(fd);
	return cycles / clock_mhz();
}

/* Interrupts are held: fewer come, everything arrives, and nothing waits longer than it was set to.
 */
static void test_held(void)
{
	static const struct {
		uint32_t usecs, frames;
	} refused[] = { { 0, 2 }, { 4195, 0 }, { 1u << 31, 0 }, { 100, 256 } };
	struct ethtool_coalesce found;
	struct measured held, by_count;
	unsigned long long most;
	uint32_t quick, slow;

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		expect("hold-off that cannot be",
		       set_hold_off(NEAR, "dib0", refused[i].usecs, refused[i].frames), -EINVAL);
	found = hold_off_of(NEAR, "dib0");
	expect("off at first", (long)(found.rx_coalesce_usecs + found.rx_max_coalesced_frames), 0);
	quick = time_of_ping();
	hold_both(HELD_USECS, 0);
	found = hold_off_of(FAR, "dib1");
	expect("microseconds", (long)found.rx_coalesce_usecs, HELD_USECS);
	expect("frames", (long)found.rx_max_coalesced_frames, 0);
	slow = time_of_ping();
	printf("measured net_ping %u us of the card, held %u us\n", quick, slow);
	/* Request and answer wait once each; the card goes on while a guest under TCG works. */
	expect("a held ping takes its time", slow > quick, 1);
	/* The endpoint is opened anew, which ends the card's hold-off; the driver sets it again. */
	down_and_up();
	held = measure_stream("net_held");
	/* How many come without hold-off depends on the guest's speed beside the card's. With it,
	 * one comes in each time at most, and one may have waited before. */
	most = held.usecs / HELD_USECS + 2;
	expect("interrupts near within the time", held.near <= most, 1);
	expect("interrupts far within the time", held.far <= most, 1);
	hold_both(LONG_USECS, 4);
	by_count = measure_stream("net_held_by_count");
	/* By the time alone no more than these could have come. */
	most = by_count.usecs / LONG_USECS + 2;
	expect("the count is reached before the time", by_count.near > most, 1);
	flood(40, 16, 56, NET_PATIENCE);
	hold_both(0, 0);
	stream_once(FAR, SHORT / 4, 65536, NULL);
}

static void test_mtu(void)
{
	/* TCP sends segments of 48 bytes at least, which 68 bytes have no room for. */
	static const int mtus[] = { 68, 576, 1500, 9000 };

	expect("MTU 67", set_mtu(NEAR, "dib0", 67), -EINVAL);
	expect("MTU 65,521", set_mtu(NEAR, "dib0", 65521), -EINVAL);
	for (size_t i = 0; i < sizeof(mtus) / sizeof(mtus[0]); i++) {
		int fd = ping_socket();
		size_t most = (size_t)mtus[i] - 28;

		expect("MTU", set_mtu(NEAR, "dib0", mtus[i]), 0);
		expect("MTU", set_mtu(FAR, "dib1", mtus[i]), 0);
		for (size_t bytes = most - 1; bytes < most + 2; bytes++)
			ping_once(fd, (uint16_t)bytes, bytes);
		close(fd);
		if (mtus[i] != 68)
			stream_once(i & 1 ? FAR : NEAR, SHORT / 8, 65536, NULL);
	}
	/* The two ends need not have the same one. */
	expect("MTU", set_mtu(NEAR, "dib0", 65520), 0);
	expect("MTU", set_mtu(FAR, "dib1", 9000), 0);
	stream_once(NEAR, SHORT / 4, 65536, NULL);
	stream_once(FAR, SHORT / 4, 65536, NULL);
	expect("MTU", set_mtu(FAR, "dib1", 65520), 0);
}

/* Trouble -------------------------------------------------------------------------------------- */

/* Near-end loopback: neither end hears the other one, as without a cable. */
static void pull_cable(void)
{
	write_register("dibber0", DIBBER_HOST_LINK_CONTROL,
		       1u << DIBBER_HOST_LINK_CONTROL_NEAR_SHIFT);
	expect("carrier without a cable", wait_running(NEAR, "dib0", 0), 1);
	write_register("dibber0", DIBBER_HOST_LINK_CONTROL, 0);
	expect("carrier with a cable", wait_running(NEAR, "dib0", 1), 1);
}

static void test_cable(void)
{
	stream_once(NEAR, SHORT / 2, 65536, pull_cable);
}

static void test_updown(void)
{
	stream_once(NEAR, SHORT / 2, 65536, down_and_up);
}

/* Have the driver let a card go, and take it again. */
static void bind_again(const char *card)
{
	static const char *const actions[] = { "unbind", "bind" };
	char path[128], link[256] = "", *address;

	snprintf(path, sizeof(path), "/sys/class/misc/%s/device", card);
	if (readlink(path, link, sizeof(link) - 1) < 0)
		fatal(path);
	address = strrchr(link, '/') + 1;
	for (int i = 0; i < 2; i++) {
		int fd;

		snprintf(path, sizeof(path), "/sys/bus/pci/drivers/dibber/%s", actions[i]);
		fd = open(path, O_WRONLY);
		expect(actions[i], write(fd, address, strlen(address)), (long)strlen(address));
		close(fd);
	}
}

/* Until then the kernel may drop what waits for the address of a node that did not answer. */
static void wait_for_answer(void)
{
	int fd = ping_socket(), reply = -1;
	double end = now() + NET_PATIENCE;

	while (reply < 0 && now() < end) {
		send_ping(fd, 0, 8);
		reply = take_reply(fd, 8, 1.0);
	}
	expect("an answer", reply, 0);
	/* Late ones, which the next test would take for its own. */
	while (take_reply(fd, 8, 0.3) >= 0)
		;
	close(fd);
}

/* A control program halts under traffic. Both ends notice; a new one is loaded by binding anew. */
static void test_halt(void)
{
	struct ifreq request = request_for("dib1");
	int fd = make_socket(FAR, AF_INET, SOCK_DGRAM, 0), status;
	pid_t traffic = begin_traffic();

	usleep(300000);
	write_register("dibber1", DIBBER_HOST_MCP_CONTROL, 0);
	expect("the halted end's carrier", wait_running(FAR, "dib1", 0), 1);
	expect("the other end's carrier", wait_running(NEAR, "dib0", 0), 1);
	set_flags(FAR, "dib1", 0);
	request.ifr_flags = IFF_UP;
	expect("up", ioctl(fd, SIOCSIFFLAGS, &request) ? -errno : 0, -ESHUTDOWN);
	close(fd);
	bind_again("dibber1");
	kill(traffic, SIGKILL);
	waitpid(traffic, &status, 0);
	move_to_far("dib1");
	set_address(FAR, "dib1", FAR_ADDRESS);
	set_flags(FAR, "dib1", 1);
	expect("carrier", wait_running(NEAR, "dib0", 1) && wait_running(FAR, "dib1", 1), 1);
	wait_for_answer();
	flood(20, 8, 1000, NET_PATIENCE);
}

/* A process has the card for itself beside the interface: its endpoints, its memory. */
static void test_beside(char **arguments)
{
	int status = -1;
	glob_t found;
	pid_t child;

	if (glob("/tests/*_put_strided", 0, NULL, &found))
		fatal("put_strided");
	child = fork();
	if (child == 0) {
		execv(found.gl_pathv[0], arguments);
		_exit(127);
	}
	stream_once(FAR, SHORT / 4, 65536, NULL);
	waitpid(child, &status, 0);
	expect("the process", status, 0);
	stream_once(NEAR, SHORT / 4, 65536, NULL);
}

int main(int argc, char **argv)
{
	int all = 0;

	setlinebuf(stdout);
	if (argc != 4)
		return 2;
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)random();
	begin_networks();
	begin_interfaces();
	expect("carrier", wait_running(NEAR, "dib0", 1) && wait_running(FAR, "dib1", 1), 1);
	all = wrong;
#define TEST(name, ...)                                    \
	do {                                               \
		all |= RUN_TEST("net", name, __VA_ARGS__); \
		show_statistics(NEAR, "dib0");             \
		show_statistics(FAR, "dib1");              \
	} while (0)
	TEST(ping);
	TEST(flood);
	TEST(udp);
	TEST(tcp);
	TEST(held);
	TEST(mtu);
	TEST(beside, argv);
	TEST(cable);
	TEST(updown);
	TEST(halt);
	set_flags(NEAR, "dib0", 0);
	set_flags(FAR, "dib1", 0);
	return all;
}
