/* Debian's programs on the network device: ping -f, iperf3 and nuttcp between two namespaces:
 * driver_tools FIRMWARE /dev/dibber0 /dev/dibber1
 * It says `tools NAME right` or `wrong` for each test.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>

#include "driver_net.h"

#define FAR_ADDRESS "10.34.0.2"
#define WORDS	    16
#define PINGS	    4
#define LONG	    16384   /* bytes */
#define STREAM	    1048576 /* bytes */
#define PATIENCE    120	    /* seconds of the wall clock for one program */

static char said[65536]; /* what the last program wrote, and what it complained of */

/* Start a program of /bin in a namespace; what it writes goes to `out`. Its words end with NULL. */
static pid_t start(int space, int out, char *const *words)
{
	char path[64];
	pid_t child = fork();

	if (child)
		return child;
	snprintf(path, sizeof(path), "/bin/%s", words[0]);
	enter(space);
	dup2(out, 1);
	dup2(out, 2);
	alarm(PATIENCE);
	execv(path, words);
	fatal(path);
	_exit(1);
}

/* Split a line at its spaces. */
static void split(char *line, char *words[WORDS])
{
	int count = 0;

	for (char *word = strtok(line, " "); word && count < WORDS - 1; word = strtok(NULL, " "))
		words[count++] = word;
	words[count] = NULL;
}

/* Run a program to its end; its exit code is to be 0. */
__attribute__((format(printf, 1, 2))) static void run(const char *format, ...)
{
	char line[256], *words[WORDS];
	int pipes[2], status = -1;
	size_t length = 0;
	ssize_t more;
	va_list list;
	pid_t child;

	va_start(list, format);
	vsnprintf(line, sizeof(line), format, list);
	va_end(list);
	printf("tools runs %s\n", line);
	split(line, words);
	if (pipe2(pipes, O_CLOEXEC))
		fatal("pipe");
	child = start(NEAR, pipes[1], words);
	close(pipes[1]);
	while ((more = read(pipes[0], said + length, sizeof(said) - 1 - length)) > 0)
		length += (size_t)more;
	said[length] = 0;
	close(pipes[0]);
	waitpid(child, &status, 0);
	if (status)
		printf("%s", said);
	expect(words[0], status, 0);
}

/* A server in the far namespace, until it ends by itself. */
static pid_t serve(const char *text)
{
	char line[128], *words[WORDS];

	snprintf(line, sizeof(line), "%s", text);
	split(line, words);
	return start(FAR, 1, words);
}

/* Whether something listens on a TCP port of the far namespace (/proc/net/tcp: state 0A). */
static int listens(unsigned int port)
{
	char line[256], wanted[16];
	int found = 0;
	FILE *file;

	snprintf(wanted, sizeof(wanted), ":%04X", port);
	for (int v6 = 0; v6 < 2; v6++) {
		enter(FAR);
		file = fopen(v6 ? "/proc/thread-self/net/tcp6" : "/proc/thread-self/net/tcp", "r");
		enter(NEAR);
		while (file && fgets(line, sizeof(line), file))
			found |= strstr(line, wanted) && strstr(line, " 0A ");
		if (file)
			fclose(file);
	}
	return found;
}

static void wait_for_server(unsigned int port)
{
	double end = now() + NET_PATIENCE;

	while (!listens(port) && now() < end)
		usleep(10000);
	expect("a server", listens(port), 1);
}

static void end_server(pid_t server)
{
	int status = -1;
	double end = now() + NET_PATIENCE;

	while (waitpid(server, &status, WNOHANG) == 0) {
		if (now() > end)
			kill(server, SIGKILL);
		usleep(10000);
	}
	expect("a server's end", status, 0);
}

/* A card in a simulator answers late, and `ping -f` does not wait for that. Its socket has no room
 * for several long replies, so those go one behind the other. */
static void flood(int bytes)
{
	int count = bytes < LONG ? PINGS : 1;
	char wanted[80];

	run("ping -q -f -c %d -s %d " FAR_ADDRESS, count, bytes);
	snprintf(wanted, sizeof(wanted), "%d packets transmitted, %d received, 0%% packet loss",
		 count, count);
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

/* A number of the JSON text that iperf3 writes: the one behind `name` in `object`. */
static double number_of(const char *object, const char *name)
{
	const char *at = strstr(said, "\"end\"");
	char *colon;

	at = at ? strstr(at, object) : NULL;
	at = at ? strstr(at, name) : NULL;
	colon = at ? strchr(at, ':') : NULL;
	return colon ? strtod(colon + 1, NULL) : -1;
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
	iperf3("-n 1M");
	/* The server stops to count when the client has sent all. */
	expect("sent", number_of("\"sum_sent\"", "\"bytes\"") >= STREAM, 1);
	iperf3("-n 1M -R -l 1000");
	expect("received backwards", number_of("\"sum_received\"", "\"bytes\"") >= STREAM, 1);
	iperf3("-n 512K -P 4");
	expect("sent by 4", number_of("\"sum_sent\"", "\"bytes\"") >= STREAM / 2, 1);
	/* So slow that no socket's buffer is full. */
	iperf3("-u -n 512K -l 65507 -b 4M");
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
	nuttcp("-l65536 -n16");
	expect("a mebibyte", strstr(said, "megabytes=1.0000") != NULL, 1);
	nuttcp("-r -l1000 -n1000");
	expect("backwards", strstr(said, "megabytes=0.95") != NULL, 1);
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
