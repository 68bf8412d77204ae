/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"
#include "guest_hosts.h"

#define PORT		"7471"
#define AFTER_A_FAILURE 20 /* seconds */

static const struct sockaddr_in place = {
	.sin_family = AF_INET,
	.sin_port = 0x2f1d, /* 7471 in the order of the network */
	.sin_addr = { .s_addr = 0x0100007f },
};

/* Enter a new network namespace, in which only the loopback device is up. */
static void enter_a_network_of_its_own(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int s;

	if (unshare(CLONE_NEWNET) < 0)
		guest_fail("unshare");
	s = socket(AF_INET, SOCK_DGRAM, 0);
	if (s < 0 || ioctl(s, SIOCSIFFLAGS, &request) < 0)
		guest_fail("loopback device");
	close(s);
}

/* Start a program in a network of its own. `network`: set to a socket of that network, by which
 * this process can reach it. */
static pid_t start(const char *path, const char *way, const char *where, const char *uri,
		   int *network)
{
	int pair[2];
	pid_t child;
	struct msghdr message = { 0 };
	char data = 0, control[CMSG_SPACE(sizeof(int))];
	struct iovec part = { &data, 1 };

	message.msg_iov = &part;
	message.msg_iovlen = 1;
	message.msg_control = control;
	message.msg_controllen = sizeof(control);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		guest_fail("socketpair");
	child = fork();
	if (child < 0)
		guest_fail("fork");
	if (child == 0) {
		struct cmsghdr *head = CMSG_FIRSTHDR(&message);
		int s;

		enter_a_network_of_its_own();
		s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(head), &s, sizeof(int));
		if (s < 0 || sendmsg(pair[1], &message, 0) < 0)
			guest_fail("a socket of the network");
		execl(path, path, way, where, uri, (char *)NULL);
		guest_fail(path);
	}
	close(pair[1]);
	if (recvmsg(pair[0], &message, MSG_CMSG_CLOEXEC) <= 0)
		guest_fail("a socket of the network");
	memcpy(network, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	close(pair[0]);
	return child;
}

/* Copy what came on one socket to the other; 0 at its end. */
static int pass_on(int from, int to)
{
	char data[4096];
	ssize_t length = read(from, data, sizeof(data));

	for (ssize_t sent = 0; sent < length;) {
		ssize_t n = write(to, data + sent, (size_t)(length - sent));

		if (n <= 0)
			return 0;
		sent += n;
	}
	return length > 0;
}

/* Carry one connection between the networks until either end closes it. `connects` and `listens`
 * are fresh sockets of the networks in which these programs run. */
static void carry(int listens, int connects)
{
	struct pollfd ends[2] = { { .fd = listens, .events = POLLIN }, { .events = POLLIN } };

	signal(SIGPIPE, SIG_IGN);
	/* Where the program that connects is, this process listens in the other one's place. */
	if (bind(connects, (const struct sockaddr *)&place, sizeof(place)) < 0 ||
	    listen(connects, 1) < 0)
		guest_fail("listen");
	ends[1].fd = accept(connects, NULL, NULL);
	/* The other program listens once it has loaded its card. */
	while (connect(listens, (const struct sockaddr *)&place, sizeof(place)) < 0) {
		if (errno != ECONNREFUSED)
			guest_fail("connect");
		usleep(100000);
	}
	while (poll(ends, 2, -1) > 0)
		for (int i = 0; i < 2; i++)
			if (ends[i].revents && !pass_on(ends[i].fd, ends[1 - i].fd))
				exit(0);
}

static unsigned int code_of(int status)
{
	return WIFEXITED(status) ? (unsigned int)WEXITSTATUS(status) : 0xff;
}

/* Wait for both programs. A listener waits for its client without a limit. So when one program
 * fails, the other one gets some time to end by itself, and is killed then. */
static unsigned int codes_of(pid_t listener, pid_t connector)
{
	unsigned int codes = 0;

	for (int left = 2; left;) {
		int status;
		pid_t ended = waitpid(-1, &status, 0);

		if (ended != listener && ended != connector)
			continue;
		codes |= code_of(status) << (ended == connector ? 8 : 0);
		if (--left && code_of(status)) {
			sleep(AFTER_A_FAILURE);
			kill(ended == connector ? listener : connector, SIGKILL);
		}
	}
	return codes;
}

unsigned int guest_run_on_hosts(const char *path, const char *uri0, const char *uri1)
{
	pid_t listener, connector, carrier;
	unsigned int codes;
	int networks[2];

	setenv("DIBBER_TOKEN", "word", 1);
	listener = start(path, "listen", PORT, uri0, &networks[0]);
	connector = start(path, "connect", "127.0.0.1:" PORT, uri1, &networks[1]);
	carrier = fork();
	if (carrier == 0) {
		carry(networks[0], networks[1]);
		exit(1);
	}
	close(networks[0]);
	close(networks[1]);
	codes = codes_of(listener, connector);
	kill(carrier, SIGKILL);
	waitpid(carrier, NULL, 0);
	return codes;
}
