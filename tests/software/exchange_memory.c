/* The life of an exchange, again and again, while the system refuses the library the first, the
 * second, … thing that it asks for:  exchange_memory PATH, of a rendezvous file
 *
 * Linked with --wrap for each function below. Prints how many things the library asks for. The
 * other party is a child, to which nothing is refused. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dibber/exchange.h>

static unsigned long asked, refused; /* this life's count; which of them is refused, from 1 */
static bool counts;		     /* in the parent, while the library is called */

static bool refuse(void)
{
	if (!counts || ++asked != refused)
		return false;
	errno = ENOMEM;
	return true;
}

#define WRAP(type, name, failed, arguments, ...)                         \
	type __real_##name arguments;                                    \
	type __wrap_##name arguments;                                    \
	type __wrap_##name arguments                                     \
	{                                                                \
		return refuse() ? (failed) : __real_##name(__VA_ARGS__); \
	}

WRAP(void *, malloc, NULL, (size_t length), length)
WRAP(void *, calloc, NULL, (size_t count, size_t length), count, length)
WRAP(void *, realloc, NULL, (void *old, size_t length), old, length)
WRAP(int, socket, -1, (int domain, int type, int protocol), domain, type, protocol)

static int wrong;

/* Whether a call succeeded. If not, something was refused, and the error says so: NO_MEMORY, or
 * LOST or TIMEOUT where a link was lost for that reason. */
static bool good(const char *call, int rc)
{
	if (rc >= 0)
		return true;
	if (asked < refused || !dib_last_reason()[0] ||
	    (rc != DIB_ERR_NO_MEMORY && rc != DIB_ERR_LOST && rc != DIB_ERR_TIMEOUT)) {
		printf("%s: %d %s\n", call, rc, dib_last_reason());
		wrong = 1;
	}
	return false;
}

static void other_party(const char *where)
{
	struct dib_exchange_options options = { .timeout_ns = 500000000 };
	static char value[300000];
	struct dib_exchange *exchange;

	if (dib_exchange_connect(where, &options, &exchange))
		_exit(0);
	dib_exchange_publish(exchange, "theirs", value, sizeof(value));
	dib_exchange_barrier(exchange);
	dib_exchange_close(exchange);
	_exit(0);
}

static void live(const char *where)
{
	struct dib_exchange_options options = { .timeout_ns = 500000000 };
	static char value[300000];
	struct dib_exchange *exchange;

	counts = true;
	if (good("listen", dib_exchange_listen(where, &options, &exchange))) {
		good("publish", dib_exchange_publish(exchange, "mine", value, sizeof(value)));
		good("look up",
		     dib_exchange_look_up(exchange, 1, "theirs", value, sizeof(value), NULL));
		good("barrier", dib_exchange_barrier(exchange));
		if (dib_exchange_close(exchange))
			wrong = 1;
	}
	counts = false;
}

int main(int argc, char **argv)
{
	char where[4096];

	snprintf(where, sizeof(where), "file:%s", argc > 1 ? argv[1] : "");
	do {
		pid_t child = fork();

		if (child == 0)
			other_party(where);
		asked = 0;
		refused++;
		live(where);
		waitpid(child, NULL, 0);
	} while (asked >= refused && !wrong);
	if (!wrong)
		printf("%lu\n", asked);
	return wrong;
}
