/* The common part of the examples: two processes, one card each.
 *
 *	PROGRAM FIRMWARE URI_OF_CARD_0 URI_OF_CARD_1
 *
 * The processes exchange what they must know of each other (a key, an address) through a socket.
 * While they wait for it they leave the simulator's clock. The same programs run unchanged on cards
 * in PCIe slots ("vfio:0000:01:00.0").
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef TWO_SIDES_H
#define TWO_SIDES_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dibber/dibber.h>

#define PATIENCE 100000000000u /* nanoseconds */

struct side {
	struct dib_card *card;
	struct dib_endpoint *endpoint;
	struct dib_region *region;
	void *memory;
	int other; /* socket to the other side */
};

/* End the program when a call failed, saying why; else return what it returned. */
static int check(int rc, const char *what)
{
	if (rc >= 0)
		return rc;
	fprintf(stderr, "%s: %s: %s\n", what, dib_strerror(rc), dib_last_reason());
	exit(1);
}

static void open_side(struct side *s, unsigned int node, const char *firmware, const char *uri,
		      size_t length, unsigned int rights)
{
	check(dib_open(uri, NULL, &s->card), "card");
	check(dib_node_set(s->card, node), "node number");
	check(dib_firmware_load(s->card, firmware), "control program");
	check(dib_endpoint_open(s->card, 1, NULL, &s->endpoint), "endpoint");
	check(dib_alloc(length, &s->memory), "memory");
	check(dib_register(s->endpoint, s->memory, length, rights, &s->region), "region");
}

static void close_side(struct side *s)
{
	check(dib_unregister(s->region), "region");
	dib_endpoint_close(s->endpoint);
	dib_close(s->card);
	dib_free(s->memory);
}

/* Give the other side some bytes for as many of its own, and know that it is ready. */
static void exchange(struct side *s, const void *ours, void *theirs, size_t length)
{
	check(dib_clock_leave(s->endpoint), "clock");
	if (write(s->other, ours, length) != (ssize_t)length ||
	    read(s->other, theirs, length) != (ssize_t)length) {
		fprintf(stderr, "the other side is gone\n");
		exit(1);
	}
	check(dib_clock_enter(s->endpoint), "clock");
}

/* Tell the other side our key; returns its key. */
static inline uint32_t exchange_keys(struct side *s)
{
	uint32_t ours = dib_key(s->region), theirs;

	exchange(s, &ours, &theirs, sizeof(ours));
	return theirs;
}

/* Wait for the next completion, which must be a good one. */
static inline struct dib_completion completed(struct side *s)
{
	struct dib_completion completion;

	/* An event of the other side's ends the wait too, and may be here first. */
	while (check(dib_poll(s->endpoint, &completion, 1), "poll") == 0) {
		if (!check(dib_wait(s->endpoint, PATIENCE), "wait")) {
			fprintf(stderr, "no completion came\n");
			exit(1);
		}
	}
	if (completion.status != DIBBER_STATUS_OK) {
		fprintf(stderr, "it ended so: %s\n", dib_status_string(completion.status));
		exit(1);
	}
	return completion;
}

/* Run `first` on card 0 in this process and `second` on card 1 in another. Returns main()'s result.
 */
static int run_two_sides(int argc, char **argv, size_t length, unsigned int rights,
			 void (*first)(struct side *), void (*second)(struct side *))
{
	struct side side;
	int ends[2], status = 1;
	pid_t child;

	if (argc != 4) {
		fprintf(stderr, "usage: %s FIRMWARE URI_OF_CARD_0 URI_OF_CARD_1\n", argv[0]);
		return 2;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0 || (child = fork()) < 0) {
		perror("socketpair or fork");
		return 1;
	}
	side.other = ends[child == 0];
	close(ends[child != 0]);
	open_side(&side, child == 0, argv[1], argv[child == 0 ? 3 : 2], length, rights);
	(child == 0 ? second : first)(&side);
	close_side(&side);
	if (child == 0)
		return 0;
	waitpid(child, &status, 0);
	return status ? 1 : 0;
}

#endif
