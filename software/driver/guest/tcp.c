/* TCP over the network device, measured for `dibber bench tcp`: streams between two network
 * namespaces with different writes, socket buffers and MTUs; and puts of the same guest beside
 * them.
 *
 * The file /points has a line for each: NAME X MTU BUFFER WRITE BYTES USECS, in decimal. NAME is
 * `put` for puts of WRITE bytes each, else it is a stream. BUFFER bytes are the socket buffers, 0
 * for the kernel's own choice. USECS is the hold-off of interrupts. It says for each
 *
 *     tcp NAME X BYTES CYCLES INTERRUPTS WRONG
 *
 * CYCLES are of the card's clock, INTERRUPTS of both ends, WRONG are bytes that did not arrive as
 * they left. The first line is `clock HZ`.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <netinet/tcp.h>

#include "driver_net.h"

#define PORT	  3434
#define MOST	  (1 << 20) /* bytes of a stream, and of a write */
#define UNDER_WAY 16	    /* puts */

static uint8_t pattern[MOST], got[MOST];

struct point {
	char name[32];
	unsigned int x, mtu, buffer, write, bytes, usecs;
};

static uint32_t register_0(uint32_t offset)
{
	struct dibber_register access = { .offset = offset };
	int fd = open("/dev/dibber0", O_RDONLY);

	expect("register", call(fd, DIBBER_IOC_REGISTER, &access), 0);
	close(fd);
	return access.value;
}

static unsigned long long interrupts(void)
{
	return statistic(NEAR, "dib0", "interrupts") + statistic(FAR, "dib1", "interrupts");
}

static void set_option(int fd, int level, int option, int value)
{
	if (setsockopt(fd, level, option, &value, sizeof(value)))
		fatal("setsockopt");
}

static void show(const struct point *p, uint32_t cycles, unsigned long long came, size_t bad)
{
	printf("tcp %s %u %u %u %llu %zu\n", p->name, p->x, p->bytes, cycles, came, bad);
}

/* Streams -------------------------------------------------------------------------------------- */

static void connect_ends(int ends[2], unsigned int buffer)
{
	struct sockaddr_in far = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	/* Without TIME_WAIT, because the port is used again. */
	struct linger linger = { .l_onoff = 1 };
	int listener = make_socket(FAR, AF_INET, SOCK_STREAM, 0);

	inet_pton(AF_INET, "10.34.0.2", &far.sin_addr);
	ends[NEAR] = make_socket(NEAR, AF_INET, SOCK_STREAM, 0);
	set_option(listener, SOL_SOCKET, SO_REUSEADDR, 1);
	if (buffer) {
		/* The kernel doubles it, for its own structures: socket(7). */
		set_option(listener, SOL_SOCKET, SO_RCVBUFFORCE, (int)buffer / 2);
		set_option(ends[NEAR], SOL_SOCKET, SO_SNDBUFFORCE, (int)buffer / 2);
	}
	if (bind(listener, (struct sockaddr *)&far, sizeof(far)) || listen(listener, 1) ||
	    connect(ends[NEAR], (struct sockaddr *)&far, sizeof(far)))
		fatal("connect");
	ends[FAR] = accept(listener, NULL, NULL);
	for (int i = 0; i < 2; i++) {
		setsockopt(ends[i], SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
		if (fcntl(ends[i], F_SETFL, O_NONBLOCK))
			fatal("fcntl");
	}
	close(listener);
}

/* Send so many bytes; returns how many did not arrive as they left. */
static size_t stream(const int ends[2], size_t bytes, size_t write_size)
{
	struct pollfd pollers[2] = { { .fd = ends[NEAR] }, { .fd = ends[FAR], .events = POLLIN } };
	size_t sent = 0, received = 0, bad = 0;
	double last = now();

	memset(got, 0, bytes);
	while (received < bytes && now() - last < NET_PATIENCE) {
		ssize_t step = 0;

		pollers[0].events = sent < bytes ? POLLOUT : 0;
		poll(pollers, 2, 1000);
		for (int i = 0; i < 64 && sent < bytes && step >= 0; i++) {
			size_t size = bytes - sent < write_size ? bytes - sent : write_size;

			step = send(ends[NEAR], pattern + sent, size, MSG_NOSIGNAL);
			sent += step > 0 ? (size_t)step : 0;
		}
		step = recv(ends[FAR], got + received, bytes - received, 0);
		if (step > 0) {
			received += (size_t)step;
			last = now();
		}
	}
	for (size_t i = 0; i < bytes; i++)
		bad += got[i] != pattern[i];
	return bad;
}

static void measure_stream(const struct point *p)
{
	unsigned long long before;
	uint32_t cycles;
	int ends[2];
	size_t bad;

	if (set_mtu(NEAR, "dib0", (int)p->mtu) || set_mtu(FAR, "dib1", (int)p->mtu) ||
	    set_hold_off(NEAR, "dib0", p->usecs, 0) || set_hold_off(FAR, "dib1", p->usecs, 0))
		fatal(p->name);
	connect_ends(ends, p->buffer);
	/* The first window that a connection offers has 64 KiB at most (RFC 7323, 2.2). */
	bad = stream(ends, p->bytes / 4, p->write);
	before = interrupts();
	cycles = register_0(DIBBER_HOST_CYCLES_LOW);
	bad += stream(ends, p->bytes, p->write);
	cycles = register_0(DIBBER_HOST_CYCLES_LOW) - cycles;
	show(p, cycles, interrupts() - before, bad);
	for (int i = 0; i < 2; i++)
		close(ends[i]);
}

/* Puts ----------------------------------------------------------------------------------------- */

static struct dibber_command put_of(size_t offset, size_t bytes, uint32_t source, uint32_t target)
{
	return (struct dibber_command){
		.opcode = DIBBER_OPCODE_PUT,
		.node = 1,
		.length = (uint32_t)bytes,
		.source = { .key = source, .block = (uint32_t)bytes, .offset = offset },
		.target = { .key = target, .block = (uint32_t)bytes, .offset = offset },
	};
}

static void measure_put(const struct point *p)
{
	struct dibber_region_add source, target;
	struct endpoint near, far;
	size_t given = 0, ended = 0, count = p->bytes / p->write, bad = 0;
	uint32_t cycles;

	memset(got, 0, sizeof(got));
	if (open_endpoint("/dev/dibber0", &near) || open_endpoint("/dev/dibber1", &far) ||
	    add_region(near.fd, pattern, sizeof(pattern), ALL_RIGHTS, &source) ||
	    add_region(far.fd, got, sizeof(got), ALL_RIGHTS, &target))
		fatal("put");
	cycles = register_0(DIBBER_HOST_CYCLES_LOW);
	while (ended < count) {
		for (; given < count && given - ended < UNDER_WAY; given++) {
			struct dibber_command command =
				put_of(given * p->write, p->write, source.key, target.key);

			submit(&near, &command);
		}
		expect("put", completed(&near), DIBBER_STATUS_OK);
		ended++;
	}
	cycles = register_0(DIBBER_HOST_CYCLES_LOW) - cycles;
	for (size_t i = 0; i < count * p->write; i++)
		bad += got[i] != pattern[i];
	show(p, cycles, 0, bad);
	close_endpoint(&near);
	close_endpoint(&far);
}

int main(void)
{
	FILE *points = fopen("/points", "r");
	struct point p;

	setlinebuf(stdout);
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(random() | 1); /* no byte is what a missing one would be */
	if (!points)
		fatal("/points");
	printf("clock %u\n", register_0(DIBBER_HOST_CLOCK_HZ));
	begin_networks();
	begin_interfaces();
	expect("carrier", wait_running(NEAR, "dib0", 1) && wait_running(FAR, "dib1", 1), 1);
	while (fscanf(points, "%31s %u %u %u %u %u %u", p.name, &p.x, &p.mtu, &p.buffer, &p.write,
		      &p.bytes, &p.usecs) == 7) {
		if (!p.write || p.write > MOST || p.bytes > MOST)
			fatal(p.name);
		if (strcmp(p.name, "put"))
			measure_stream(&p);
		else
			measure_put(&p);
	}
	set_flags(NEAR, "dib0", 0);
	set_flags(FAR, "dib1", 0);
	return wrong;
}
