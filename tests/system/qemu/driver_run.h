/* Debian's programs in the two network namespaces of a test. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_TEST_DRIVER_RUN_H
#define DIBBER_TEST_DRIVER_RUN_H

#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>

#include "driver_net.h"

#define FAR_ADDRESS "10.34.0.2"
#define WORDS	    16
#ifndef PATIENCE
#define PATIENCE 240 /* seconds of the wall clock for one program */
#endif

static char said[65536]; /* what the last program wrote, and what it complained of */

/* Start a program of /bin in a namespace; what it writes goes to `out`. Its words end with NULL. */
static inline pid_t start(int space, int out, char *const *words)
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
static inline void split(char *line, char *words[WORDS])
{
	int count = 0;

	for (char *word = strtok(line, " "); word && count < WORDS - 1; word = strtok(NULL, " "))
		words[count++] = word;
	words[count] = NULL;
}

/* Run a program to its end; its exit code is to be 0. */
__attribute__((format(printf, 1, 2))) static inline void run(const char *format, ...)
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
static inline pid_t serve(const char *text)
{
	char line[128], *words[WORDS];

	snprintf(line, sizeof(line), "%s", text);
	split(line, words);
	return start(FAR, 1, words);
}

/* Whether something listens on a TCP port of the far namespace (/proc/net/tcp: state 0A). */
static inline int listens(unsigned int port)
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

static inline void wait_for_server(unsigned int port)
{
	double end = now() + NET_PATIENCE;

	while (!listens(port) && now() < end)
		usleep(10000);
	expect("a server", listens(port), 1);
}

static inline void end_server(pid_t server)
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

/* A number of the JSON text that iperf3 writes: the one behind `name` in `object`. */
static inline double number_of(const char *object, const char *name)
{
	const char *at = strstr(said, "\"end\"");
	char *colon;

	at = at ? strstr(at, object) : NULL;
	at = at ? strstr(at, name) : NULL;
	colon = at ? strchr(at, ':') : NULL;
	return colon ? strtod(colon + 1, NULL) : -1;
}

#endif
