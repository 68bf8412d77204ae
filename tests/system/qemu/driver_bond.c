/* Bonding of two cards a side: cards 0 and 2 in the near namespace, 1 and 3 in the far one, with
 * cables from 0 to 1 and from 2 to 3. A cable is pulled while iperf3 runs, and put back.
 *
 * It says `bond NAME right` or `wrong` for each test.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <sys/mount.h>
#include <sys/stat.h>

/* Four simulated cards are slow: after 240 s 1.86 of 2.1 MB had passed. */
#define PATIENCE 1200
#include "driver_run.h"

#define STREAM	1048576 /* bytes of a run of iperf3 */
#define PULLED	262144	/* the cable is pulled behind so many */
#define MTU	9000
#define FAR_SYS "/far_sys"

static const char *const cards[2][2] = { { "dib0", "dib2" }, { "dib1", "dib3" } };

static const char *sys_of(int space)
{
	return space == NEAR ? "/sys" : FAR_SYS;
}

/* A file of the bond, to be written. */
static void set(int space, const char *name, const char *text)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/class/net/%s", sys_of(space), name);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
		printf("%s: '%s': %m\n", path, text);
		wrong = 1;
	}
	if (fd >= 0)
		close(fd);
}

static int is_active(int space, const char *card)
{
	char path[128], text[32] = "";
	int fd;

	snprintf(path, sizeof(path), "%s/class/net/bond0/bonding/active_slave", sys_of(space));
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		fatal(path);
	close(fd);
	text[strcspn(text, "\n")] = 0;
	return !strcmp(text, card);
}

static void wait_active(int pair)
{
	double end = now() + NET_PATIENCE;

	while ((!is_active(NEAR, cards[NEAR][pair]) || !is_active(FAR, cards[FAR][pair])) &&
	       now() < end)
		usleep(50000);
	expect("the near end's active card", is_active(NEAR, cards[NEAR][pair]), 1);
	expect("the far end's active card", is_active(FAR, cards[FAR][pair]), 1);
}

static void wait_for_pair(int pair, int running)
{
	expect("carrier",
	       wait_running(NEAR, cards[NEAR][pair], running) &&
		       wait_running(FAR, cards[FAR][pair], running),
	       1);
}

/* `primary`: both ends have to choose cards of one cable, because no switch joins the cables. */
static void make_bond(const char *mode, int primary)
{
	for (int space = NEAR; space <= FAR; space++) {
		set(space, "bonding_masters", "+bond0");
		set(space, "bond0/bonding/mode", mode);
		set(space, "bond0/bonding/miimon", "100");
		for (int i = 0; i < 2; i++) {
			char text[16];

			snprintf(text, sizeof(text), "+%s", cards[space][i]);
			set(space, "bond0/bonding/slaves", text);
		}
		if (primary)
			set(space, "bond0/bonding/primary", cards[space][0]);
		expect("mtu", set_mtu(space, "bond0", MTU), 0);
		set_address(space, "bond0", space == NEAR ? "10.34.0.1" : FAR_ADDRESS);
		set_flags(space, "bond0", 1);
	}
	wait_for_pair(0, 1);
	wait_for_pair(1, 1);
}

static void end_bond(void)
{
	for (int space = NEAR; space <= FAR; space++)
		set(space, "bonding_masters", "-bond0");
}

static unsigned long long sent_by(int card)
{
	return statistic(NEAR, cards[NEAR][card], "tx_bytes");
}

/* Card 0 hears itself in place of the cable. */
static void cable(int there)
{
	write_register("dibber0", DIBBER_HOST_LINK_CONTROL,
		       there ? 0 : 1u << DIBBER_HOST_LINK_CONTROL_NEAR_SHIFT);
}

/* Pull the cable when so much went through it. */
static pid_t begin_pulling(void)
{
	unsigned long long begin = sent_by(0);
	double end = now() + PATIENCE;
	pid_t child = fork();

	if (child)
		return child;
	while (sent_by(0) - begin < PULLED && now() < end)
		usleep(1000);
	cable(0);
	printf("bond pulled the cable behind %llu bytes\n", sent_by(0) - begin);
	_exit(0);
}

static void iperf3(const char *options)
{
	/* By itself iperf3 ends a test in which nothing came for 120 s. A slow simulator may need
	 * longer to notice a cable that was pulled, and then TCP waits. */
	pid_t server = serve("iperf3 -s -1 --json --rcv-timeout 1200000 --logfile /tmp/iperf3");

	wait_for_server(5201);
	/* Without intervals, which would be many. A small buffer, because iperf3 ends when its
	 * socket has taken all bytes, not when the other end has them. */
	run("iperf3 -c " FAR_ADDRESS " --json -i 0 -w 64K %s", options);
	end_server(server);
	expect("all is sent", number_of("\"sum_sent\"", "\"bytes\"") >= STREAM, 1);
}

/* The cable is pulled in the middle of a stream, which comes to its end by the other one. */
static void pull_under(const char *options, int has_active)
{
	unsigned long long first = sent_by(0), second = sent_by(1), taken;
	double begin = now();
	pid_t child = begin_pulling();
	int status = -1;

	iperf3(options);
	waitpid(child, &status, 0);
	expect("the cable was pulled", status, 0);
	expect("no carrier", is_running(NEAR, "dib0") || is_running(FAR, "dib1"), 0);
	first = sent_by(0) - first;
	second = sent_by(1) - second;
	printf("measured bond: %llu bytes by the cable that was pulled, %llu by the other, %u ms\n",
	       first, second, (unsigned int)((now() - begin) * 1e3));
	expect("the cable carried a part", first >= PULLED && first < STREAM, 1);
	expect("the other one carried the rest", first + second >= STREAM, 1);
	if (has_active)
		wait_active(1);
	/* The cable is back, and frames take it again. */
	cable(1);
	wait_for_pair(0, 1);
	if (has_active)
		wait_active(0);
	taken = sent_by(0);
	/* What is left of the stream goes first. */
	run("ping -q -c 4 -i 0.2 -W %d " FAR_ADDRESS, PATIENCE / 4);
	expect("frames by the first cable", sent_by(0) > taken, 1);
}

static void test_active_backup(void)
{
	unsigned long long second;

	make_bond("active-backup", 1);
	wait_active(0);
	/* A warm-up: addresses are known, and the backup carries nothing of it. */
	second = sent_by(1);
	run("ping -q -c 2 -i 0.2 " FAR_ADDRESS);
	expect("the backup is idle", sent_by(1) - second < 1000, 1);
	pull_under("-n 1M", 1);
	end_bond();
}

static void test_balance(void)
{
	unsigned long long first, second;

	make_bond("balance-rr", 0);
	first = sent_by(0);
	second = sent_by(1);
	iperf3("-n 1M -P 2");
	first = sent_by(0) - first;
	second = sent_by(1) - second;
	printf("measured bond: %llu and %llu bytes by two cables\n", first, second);
	expect("both carry a third at least", first > STREAM / 3 && second > STREAM / 3, 1);
	pull_under("-n 1M -P 2", 0);
	end_bond();
}

int main(int argc, char **argv)
{
	int all;

	if (argc != 4 || !argv[3])
		return 2;
	setlinebuf(stdout);
	begin_networks();
	move_to_far("dib1");
	move_to_far("dib3");
	/* A mount shows the interfaces of the namespace in which it was made. */
	mkdir(FAR_SYS, 0755);
	enter(FAR);
	if (mount("sysfs", FAR_SYS, "sysfs", 0, NULL))
		fatal(FAR_SYS);
	enter(NEAR);
	/* The module has made one. */
	set(NEAR, "bonding_masters", "-bond0");
	all = wrong;
	all |= RUN_TEST("bond", active_backup);
	all |= RUN_TEST("bond", balance);
	return all;
}
