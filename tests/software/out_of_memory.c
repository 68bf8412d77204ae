/* A program's life with a card, again and again, while the system refuses the library the first,
 * the second, … thing that it asks for:  out_of_memory URI FIRMWARE
 *
 * Linked with --wrap for each function below. Prints how many things the library asks for. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <dibber/dibber.h>

static unsigned long asked, refused; /* this life's count; which of them is refused, from 1 */
static const char *what;

static bool refuse(const char *name)
{
	if (++asked != refused)
		return false;
	what = name;
	errno = ENOMEM;
	return true;
}

#define WRAP(type, name, failed, arguments, ...)                              \
	type __real_##name arguments;                                         \
	type __wrap_##name arguments;                                         \
	type __wrap_##name arguments                                          \
	{                                                                     \
		return refuse(#name) ? (failed) : __real_##name(__VA_ARGS__); \
	}

WRAP(void *, malloc, NULL, (size_t length), length)
WRAP(void *, calloc, NULL, (size_t count, size_t length), count, length)
WRAP(void *, realloc, NULL, (void *old, size_t length), old, length)
WRAP(int, memfd_create, -1, (const char *name, unsigned int flags), name, flags)
WRAP(int, ftruncate, -1, (int fd, off_t length), fd, length)
WRAP(void *, mmap, MAP_FAILED,
     (void *at, size_t length, int rights, int flags, int fd, off_t offset), at, length, rights,
     flags, fd, offset)
WRAP(int, socket, -1, (int domain, int type, int protocol), domain, type, protocol)
WRAP(int, eventfd, -1, (unsigned int value, int flags), value, flags)
WRAP(int, epoll_create1, -1, (int flags), flags)
WRAP(int, pthread_create, EAGAIN,
     (pthread_t * thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument),
     thread, attributes, start, argument)

static int wrong;

/* Whether a call succeeded. If not, it must be because something was refused. */
static bool good(const char *call, int rc, int error)
{
	if (rc >= 0)
		return true;
	if (rc != error || asked < refused || !dib_last_reason()[0]) {
		printf("%s: %d without %s: %s\n", call, rc, what, dib_last_reason());
		wrong = 1;
	}
	return false;
}

static void live(const char *uri, const char *firmware)
{
	static char heap[100];
	static _Alignas(4096) char page[4096];
	void *const list[] = { page, NULL, page };
	const struct dib_pages pages = {
		.memory = list, .count = 3, .shift = 12, .length = 3 * 4096
	};
	struct dib_endpoint *endpoint;
	struct dib_mailbox *mailbox;
	struct dib_region *region;
	struct dib_card *card;
	void *memory;

	if (!good("open", dib_open(uri, NULL, &card), DIB_ERR_NO_MEMORY))
		return;
	if (good("load", dib_firmware_load(card, firmware), DIB_ERR_NO_MEMORY) &&
	    good("endpoint", dib_endpoint_open(card, 1, NULL, &endpoint), DIB_ERR_NO_MEMORY)) {
		if (good("register",
			 dib_register(endpoint, heap, sizeof(heap), DIBBER_RIGHT_LOCAL_READ,
				      &region),
			 DIB_ERR_NO_MEMORY))
			good("unregister", dib_unregister(region), DIB_ERR_NO_MEMORY);
		if (good("register pages",
			 dib_register_pages(endpoint, &pages, DIBBER_RIGHT_LOCAL_READ, &region),
			 DIB_ERR_NO_MEMORY))
			good("unregister pages", dib_unregister(region), DIB_ERR_NO_MEMORY);
		if (good("alloc", dib_alloc(8192, &memory), DIB_ERR_NO_MEMORY))
			dib_free(memory);
		if (good("mailbox", dib_mailbox_open(endpoint, NULL, &mailbox), DIB_ERR_NO_MEMORY))
			dib_mailbox_close(mailbox);
		good("event fd", dib_event_fd(endpoint), DIB_ERR_SYSTEM);
		dib_endpoint_close(endpoint);
	}
	dib_close(card);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	do {
		refused++;
		asked = 0;
		what = "anything that was refused";
		live(argv[1], argv[2]);
	} while (asked >= refused && !wrong);
	printf("%lu\n", asked);
	return wrong;
}
