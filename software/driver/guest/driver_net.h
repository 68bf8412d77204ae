/* What the programs that test the network device have in common: two network namespaces in one
 * process, and the settings of interfaces. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_TEST_DRIVER_NET_H
#define DIBBER_TEST_DRIVER_NET_H

#include <arpa/inet.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include "driver.h"

/* Card 0 and dib0 are in the near namespace, dib1 is in the far one. */
enum { NEAR, FAR };
static int spaces[2];

/* Seconds of now(); a simulated card is slow. */
#define NET_PATIENCE 60.0

static inline void fatal(const char *what)
{
	printf("%s: %m\n", what);
	exit(1);
}

static inline void enter(int space)
{
	if (setns(spaces[space], CLONE_NEWNET))
		fatal("setns");
}

static inline int make_socket(int space, int domain, int type, int protocol)
{
	int fd;

	enter(space);
	fd = socket(domain, type, protocol);
	enter(NEAR);
	if (fd < 0)
		fatal("socket");
	return fd;
}

static inline struct ifreq request_for(const char *name)
{
	struct ifreq request = { 0 };

	strncpy(request.ifr_name, name, IFNAMSIZ - 1);
	return request;
}

static inline void set_flags(int space, const char *name, int up)
{
	struct ifreq request = request_for(name);
	int fd = make_socket(space, AF_INET, SOCK_DGRAM, 0);

	if (ioctl(fd, SIOCGIFFLAGS, &request))
		fatal(name);
	request.ifr_flags = (short)(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
	if (ioctl(fd, SIOCSIFFLAGS, &request))
		fatal(name);
	close(fd);
}

static inline void set_address(int space, const char *name, const char *address)
{
	struct ifreq request = request_for(name);
	struct sockaddr_in *in = (struct sockaddr_in *)&request.ifr_addr;
	int fd = make_socket(space, AF_INET, SOCK_DGRAM, 0);

	in->sin_family = AF_INET;
	inet_pton(AF_INET, address, &in->sin_addr);
	if (ioctl(fd, SIOCSIFADDR, &request))
		fatal(address);
	inet_pton(AF_INET, "255.255.255.0", &in->sin_addr);
	if (ioctl(fd, SIOCSIFNETMASK, &request))
		fatal(address);
	close(fd);
}

static inline int set_mtu(int space, const char *name, int mtu)
{
	struct ifreq request = request_for(name);
	int fd = make_socket(space, AF_INET, SOCK_DGRAM, 0), rc;

	request.ifr_mtu = mtu;
	rc = ioctl(fd, SIOCSIFMTU, &request) ? -errno : 0;
	close(fd);
	return rc;
}

/* Whether the interface is up and has a carrier. */
static inline int is_running(int space, const char *name)
{
	struct ifreq request = request_for(name);
	int fd = make_socket(space, AF_INET, SOCK_DGRAM, 0);

	if (ioctl(fd, SIOCGIFFLAGS, &request))
		fatal(name);
	close(fd);
	return !!(request.ifr_flags & IFF_RUNNING);
}

static inline int wait_running(int space, const char *name, int running)
{
	double end = now() + NET_PATIENCE;

	while (is_running(space, name) != running && now() < end)
		usleep(20000);
	return is_running(space, name) == running;
}

/* Move an interface of the near namespace to the far one. */
static inline void move_to_far(const char *name)
{
	struct {
		struct nlmsghdr head;
		struct ifinfomsg info;
		struct rtattr attribute;
		int fd;
	} message = {
		.head = { .nlmsg_len = sizeof(message),
			  .nlmsg_type = RTM_NEWLINK,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.attribute = { .rta_len = RTA_LENGTH(sizeof(int)), .rta_type = IFLA_NET_NS_FD },
		.fd = spaces[FAR],
	};
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		char rest[256];
	} answer;
	int fd = make_socket(NEAR, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

	message.info.ifi_index = (int)if_nametoindex(name);
	if (send(fd, &message, sizeof(message), 0) < 0 ||
	    recv(fd, &answer, sizeof(answer), 0) < (ssize_t)sizeof(answer.head) + 4 ||
	    answer.error.error)
		fatal("moving an interface");
	close(fd);
}

struct statistics {
	union {
		struct ethtool_gstrings strings;
		struct ethtool_stats stats;
		char room[8192];
	} names, values;
};

/* What `ethtool -S` shows. */
static inline const struct statistics *read_statistics(int space, const char *interface)
{
	static struct statistics s;
	struct ifreq request = request_for(interface);
	int fd = make_socket(space, AF_INET, SOCK_DGRAM, 0);

	s.names.strings =
		(struct ethtool_gstrings){ .cmd = ETHTOOL_GSTRINGS, .string_set = ETH_SS_STATS };
	request.ifr_data = (char *)&s.names;
	if (ioctl(fd, SIOCETHTOOL, &request))
		fatal("ETHTOOL_GSTRINGS");
	s.values.stats =
		(struct ethtool_stats){ .cmd = ETHTOOL_GSTATS, .n_stats = s.names.strings.len };
	request.ifr_data = (char *)&s.values;
	if (ioctl(fd, SIOCETHTOOL, &request))
		fatal("ETHTOOL_GSTATS");
	close(fd);
	return &s;
}

static inline unsigned long long statistic(int space, const char *interface, const char *name)
{
	const struct statistics *s = read_statistics(space, interface);

	for (unsigned int i = 0; i < s->names.strings.len; i++) {
		if (!strcmp((const char *)s->names.strings.data + i * ETH_GSTRING_LEN, name))
			return s->values.stats.data[i];
	}
	printf("no statistic %s\n", name);
	wrong = 1;
	return 0;
}

static inline void show_statistics(int space, const char *interface)
{
	const struct statistics *s = read_statistics(space, interface);

	printf("statistics %s:", interface);
	for (unsigned int i = 0; i < s->names.strings.len; i++) {
		if (s->values.stats.data[i])
			printf(" %s %llu", s->names.strings.data + i * ETH_GSTRING_LEN,
			       s->values.stats.data[i]);
	}
	printf("\n");
}

/* What `ethtool -C` does: 0, or minus the errno. */
static inline int set_hold_off(int space, const char *interface, uint32_t usecs, uint32_t frames)
{
	struct ethtool_coalesce coalesce = { .cmd = ETHTOOL_SCOALESCE,
					     .rx_coalesce_usecs = usecs,
					     .rx_max_coalesced_frames = frames };
	struct ifreq request = request_for(interface);
	int fd = make_socket(space, AF_INET, SOCK_DGRAM, 0), rc;

	request.ifr_data = (char *)&coalesce;
	rc = ioctl(fd, SIOCETHTOOL, &request) ? -errno : 0;
	close(fd);
	return rc;
}

/* What `ethtool -c` shows. */
static inline struct ethtool_coalesce hold_off_of(int space, const char *interface)
{
	struct ethtool_coalesce coalesce = { .cmd = ETHTOOL_GCOALESCE };
	struct ifreq request = request_for(interface);
	int fd = make_socket(space, AF_INET, SOCK_DGRAM, 0);

	request.ifr_data = (char *)&coalesce;
	if (ioctl(fd, SIOCETHTOOL, &request))
		fatal("ETHTOOL_GCOALESCE");
	close(fd);
	return coalesce;
}

/* Make the far namespace, and an address and a carrier at both ends. */
static inline void begin_networks(void)
{
	spaces[NEAR] = open("/proc/self/ns/net", O_RDONLY);
	if (spaces[NEAR] < 0 || unshare(CLONE_NEWNET))
		fatal("unshare");
	spaces[FAR] = open("/proc/self/ns/net", O_RDONLY);
	enter(NEAR);
}

static inline void begin_interfaces(void)
{
	move_to_far("dib1");
	set_address(NEAR, "dib0", "10.34.0.1");
	set_address(FAR, "dib1", "10.34.0.2");
	set_flags(NEAR, "dib0", 1);
	set_flags(FAR, "dib1", 1);
}

/* A child that sends datagrams from both ends, of all sizes, until it is killed. */
static inline pid_t begin_traffic(void)
{
	static const char bytes[60000];
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
	pid_t child = fork();
	int fds[2];

	if (child)
		return child;
	for (int space = NEAR; space <= FAR; space++)
		fds[space] = make_socket(space, AF_INET, SOCK_DGRAM, 0);
	for (size_t i = 0;; i++) {
		inet_pton(AF_INET, i & 1 ? "10.34.0.1" : "10.34.0.2", &to.sin_addr);
		if (sendto(fds[i & 1], bytes, i * 97 % sizeof(bytes), 0, (struct sockaddr *)&to,
			   sizeof(to)) < 0)
			usleep(1000);
	}
}

#endif
