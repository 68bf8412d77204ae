/* Init of a guest that is one of two hosts. It gives its card to vfio-pci and runs each program of
 * /hosts once, as `PROGRAM listen PORT URI` or `PROGRAM connect HOST:PORT URI`; the kernel's
 * command line has `way=listen` or `way=connect`. The exit code of each is told by its name.
 *
 * Between the guests there is a serial line and nothing else. A process carries the program's TCP
 * connection over it, in frames: two bytes of length, then as many bytes. Two lengths are signs:
 * BEGINS, the other guest's program has connected; ENDS, nothing more comes from there. Each
 * connection has one ENDS in each direction, so the next program finds the line empty.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "guest.h"

#define MODULES	 "/modules"
#define HOSTS	 "/hosts"
#define FIRMWARE "/mcp.dibfw"
#define PROBE	 "/sys/bus/pci/drivers_probe"
#define LINE	 "/dev/ttyS1"
#define PORT	 "7471"
#define LIMIT	 600 /* seconds that a program or its carrier may take */

#define BEGINS 0xffff
#define ENDS   0

static const struct sockaddr_in place = {
	.sin_family = AF_INET,
	.sin_port = 0x2f1d, /* 7471 in the order of the network */
	.sin_addr = { .s_addr = 0x0100007f },
};

static int line;
static int listens;
static char uri[ADDRESS_ROOM + sizeof("vfio:")];

/* The serial line ------------------------------------------------------------------------------ */

static void open_line(void)
{
	struct termios settings;

	line = open(LINE, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (line < 0 || tcgetattr(line, &settings) < 0)
		guest_fail(LINE);
	cfmakeraw(&settings);
	cfsetspeed(&settings, B115200);
	if (tcsetattr(line, TCSANOW, &settings) < 0)
		guest_fail(LINE);
}

static void write_all(int to, const void *data, size_t length)
{
	for (size_t sent = 0; sent < length;) {
		ssize_t n = write(to, (const char *)data + sent, length - sent);

		if (n <= 0)
			guest_fail("write");
		sent += (size_t)n;
	}
}

static void read_all(void *data, size_t length)
{
	for (size_t got = 0; got < length;) {
		ssize_t n = read(line, (char *)data + got, length - got);

		if (n <= 0)
			guest_fail("read from " LINE);
		got += (size_t)n;
	}
}

static void send_frame(uint16_t length, const void *data)
{
	write_all(line, &length, sizeof(length));
	if (length != BEGINS)
		write_all(line, data, length);
}

/* The connection ------------------------------------------------------------------------------- */

/* The socket of this guest's program, once both programs want the connection. */
static int join(void)
{
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	uint16_t sign;

	if (listens) {
		read_all(&sign, sizeof(sign));
		if (sign != BEGINS)
			guest_fail("the line is not empty");
		/* The program listens once it has loaded its card. */
		while (connect(s, (const struct sockaddr *)&place, sizeof(place)) < 0) {
			if (errno != ECONNREFUSED)
				guest_fail("connect");
			usleep(100000);
		}
		return s;
	}
	/* This process listens in the other program's place. */
	if (setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(s, (const struct sockaddr *)&place, sizeof(place)) < 0 || listen(s, 1) < 0)
		guest_fail("listen");
	s = accept(s, NULL, NULL);
	send_frame(BEGINS, NULL);
	return s;
}

/* Carry one connection until both directions have ended. */
static void carry(void)
{
	struct pollfd ends[2] = { { .fd = join(), .events = POLLIN },
				  { .fd = line, .events = POLLIN } };
	static char data[4096];
	int open_ways = 2, program = ends[0].fd;

	while (open_ways && poll(ends, 2, -1) > 0) {
		if (ends[0].revents) {
			ssize_t length = read(program, data, sizeof(data));

			send_frame(length > 0 ? (uint16_t)length : ENDS, data);
			if (length <= 0) {
				ends[0].fd = -1;
				open_ways--;
			}
		}
		if (ends[1].revents) {
			uint16_t length;

			read_all(&length, sizeof(length));
			if (length > sizeof(data))
				guest_fail("a frame of the line");
			read_all(data, length);
			/* A program that has gone does not hear the rest. */
			if (length && send(program, data, length, MSG_NOSIGNAL) < 0)
				length = 0;
			if (!length) {
				shutdown(program, SHUT_WR);
				ends[1].fd = -1;
				open_ways--;
			}
		}
	}
}

/* Programs ------------------------------------------------------------------------------------- */

static pid_t start(const char *path)
{
	pid_t child = fork();

	if (child < 0)
		guest_fail("fork");
	if (child)
		return child;
	alarm(LIMIT);
	if (path)
		execl(path, path, listens ? "listen" : "connect",
		      listens ? PORT : "127.0.0.1:" PORT, uri, (char *)NULL);
	else
		carry();
	exit(path ? 1 : 0);
}

static void run(const char *path, const char *name)
{
	pid_t carrier = start(NULL), program;
	int status, carried;

	/* The one that connects finds a listener: its carrier has started first. */
	usleep(500000);
	program = start(path);
	waitpid(program, &status, 0);
	waitpid(carrier, &carried, 0);
	guest_say(name, (unsigned int)(status | carried));
}

static void load_module(const char *path, const char *name)
{
	(void)name;
	guest_load_module(path, "");
}

static void write_to(int fd, const char *text, const char *what)
{
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		guest_fail(what);
	close(fd);
}

static void raise_loopback(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int s = socket(AF_INET, SOCK_DGRAM, 0);

	if (s < 0 || ioctl(s, SIOCSIFFLAGS, &request) < 0)
		guest_fail("loopback device");
	close(s);
}

/* Which of the two hosts this guest is. */
static void read_way(void)
{
	char text[512] = "";
	int fd = open("/proc/cmdline", O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		guest_fail("/proc/cmdline");
	close(fd);
	listens = strstr(text, "way=listen") != NULL;
	if (!listens && !strstr(text, "way=connect"))
		guest_fail("way= on the kernel's command line");
}

int main(void)
{
	char card[1][ADDRESS_ROOM];

	guest_begin();
	read_way();
	if (guest_find_cards(card, 1) != 1)
		guest_fail("one card");
	guest_for_each(MODULES, load_module);
	write_to(guest_open(card[0], "driver_override", O_WRONLY), "vfio-pci", "driver_override");
	write_to(open(PROBE, O_WRONLY), card[0], PROBE);
	snprintf(uri, sizeof(uri), "vfio:%.15s", card[0]);
	raise_loopback();
	open_line();
	setenv("DIBBER_FIRMWARE", FIRMWARE, 1);
	setenv("DIBBER_TOKEN", "word", 1);
	guest_for_each(HOSTS, run);
	guest_end();
}
