/* Debian's programs on the network device: ping -f, iperf3 and nuttcp between two namespaces:
 * driver_tools FIRMWARE /dev/dibber0 /dev/dibber1
 * It says `tools NAME right` or `wrong` for each test.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include "driver_run.h"

#define PINGS  4
#define LONG   16384  /* bytes */
#define STREAM 262144 /* bytes */

/* A card in a simulator answers late. `ping -c` waits for the last replies only twice as long as
 * the slowest reply took until then. With a deadline, `ping -f` sends until it has all replies that
 * were asked for, so the last requests may be without one. The socket of ping has no room for
 * several long replies, so a long request is alone.
 */
static void flood(int bytes)
{
	int count = bytes < LONG ? PINGS : 1;
	char wanted[80];

	if (count > 1)
		run("ping -q -f -c %d -w %d -s %d " FAR_ADDRESS, count, PATIENCE / 4, bytes);
	else
		run("ping -q -c 1 -W %d -s %d " FAR_ADDRESS, PATIENCE / 4, bytes);
	snprintf(wanted, sizeof(wanted), " %d received", count);
	if (strstr(said, wanted))
		return;
	printf("%s", said);
	wrong = 1;
}

/* An echo has 28 bytes of headers more; the longest IPv4 packet has 65,535. Above the MTU it goes
 * in fragments. */
static void test_ping(void)
{
	static const int mtus[] = { 1500, 9000, 65520 };

	for (size_t i = 0; i < 3; i++) {
		expect("mtu", set_mtu(NEAR, "dib0", mtus[i]) || set_mtu(FAR, "dib1", mtus[i]), 0);
		for (int more = -1; more <= 1; more++)
			flood(mtus[i] - 28 + more);
	}
	flood(0);
	flood(65507);
	set_mtu(NEAR, "dib0", 1500);
	set_mtu(FAR, "dib1", 1500);
	flood(65507);
	set_mtu(NEAR, "dib0", 65520);
	set_mtu(FAR, "dib1", 65520);
}

static void iperf3(const char *options)
{
	pid_t server = serve("iperf3 -s -1 --json --logfile /tmp/iperf3");

	wait_for_server(5201);
	run("iperf3 -c " FAR_ADDRESS " --json %s", options);
	end_server(server);
}

static void test_iperf3(void)
{
	iperf3("-n 256K");
	/* The server stops to count when the client has sent all. */
	expect("sent", number_of("\"sum_sent\"", "\"bytes\"") >= STREAM, 1);
	iperf3("-n 256K -R -l 1000");
	expect("received backwards", number_of("\"sum_received\"", "\"bytes\"") >= STREAM, 1);
	iperf3("-n 256K -P 4");
	expect("sent by 4", number_of("\"sum_sent\"", "\"bytes\"") >= STREAM, 1);
	/* So slow that no socket's buffer is full. */
	iperf3("-u -n 256K -l 65507 -b 4M");
	expect("datagrams", number_of("\"sum\"", "\"packets\"") >= 1, 1);
	expect("lost datagrams", (long)number_of("\"sum\"", "\"lost_packets\""), 0);
}

static void nuttcp(const char *options)
{
	pid_t server = serve("nuttcp -1");

	wait_for_server(5000);
	run("nuttcp -fparse %s " FAR_ADDRESS, options);
	end_server(server);
}

static void test_nuttcp(void)
{
	nuttcp("-l65536 -n4");
	expect("a quarter of a mebibyte", strstr(said, "megabytes=0.2500") != NULL, 1);
	nuttcp("-r -l1000 -n250");
	expect("backwards", strstr(said, "megabytes=0.238") != NULL, 1);
}

int main(int argc, char **argv)
{
	int all = 0;

	if (argc != 4 || !argv[3])
		return 2;
	setlinebuf(stdout);
	begin_networks();
	begin_interfaces();
	expect("carrier", wait_running(NEAR, "dib0", 1) && wait_running(FAR, "dib1", 1), 1);
	all = wrong;
#define TEST(name) all |= RUN_TEST("tools", name)
	TEST(ping);
	TEST(iperf3);
	TEST(nuttcp);
	set_flags(NEAR, "dib0", 0);
	set_flags(FAR, "dib1", 0);
	return all;
}
