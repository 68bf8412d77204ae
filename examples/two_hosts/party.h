/* What the C programs of this folder share: the command line, the card, and the other program.
 *
 *	PROGRAM listen  [ADDRESS:]PORT URI	on one host: node 0
 *	PROGRAM connect HOST:PORT      URI	on the other one: node 1
 *
 * The other program may be the one in Python of the same name. The environment variable
 * DIBBER_TOKEN is their token. DIBBER_FIRMWARE names the control program, if it is not
 * build/firmware/mcp.dibfw.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef PARTY_H
#define PARTY_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dibber/dibber.h>
#include <dibber/exchange.h>

#define PATIENCE 60000000000u /* nanoseconds, until a transfer must have ended */

/* A program with its card, endpoint 1, and the exchange. `node` is 0 for the one that listens. */
struct party {
	unsigned int node;
	struct dib_card *card;
	struct dib_endpoint *endpoint;
	struct dib_exchange *exchange;
};

/* End the program when a call failed, saying why; else return what it returned. */
static inline int check(int rc, const char *what)
{
	if (rc >= 0)
		return rc;
	fprintf(stderr, "%s: %s: %s\n", what, dib_strerror(rc), dib_last_reason());
	exit(1);
}

static inline void party_open(struct party *p, int argc, char **argv)
{
	struct dib_exchange_options options = { .token = getenv("DIBBER_TOKEN") };
	const char *firmware = getenv("DIBBER_FIRMWARE");

	if (argc != 4 || (strcmp(argv[1], "listen") && strcmp(argv[1], "connect"))) {
		fprintf(stderr, "usage: %s listen PORT URI | connect HOST:PORT URI\n", argv[0]);
		exit(2);
	}
	p->node = strcmp(argv[1], "listen") != 0;
	check(dib_open(argv[3], NULL, &p->card), "card");
	check(dib_node_set(p->card, p->node), "node number");
	check(dib_firmware_load(p->card, firmware ? firmware : "build/firmware/mcp.dibfw"),
	      "control program");
	check(dib_endpoint_open(p->card, 1, NULL, &p->endpoint), "endpoint");
	options.endpoint = p->endpoint;
	check((p->node ? dib_exchange_connect : dib_exchange_listen)(argv[2], &options,
								     &p->exchange),
	      "exchange");
}

/* Registered memory; `region` may be NULL. */
static inline void *party_memory(struct party *p, size_t length, struct dib_region **region)
{
	struct dib_region *made;
	void *memory;

	check(dib_alloc(length, &memory), "memory");
	check(dib_register(p->endpoint, memory, length,
			   DIBBER_RIGHT_LOCAL_READ | DIBBER_RIGHT_REMOTE_WRITE, &made),
	      "region");
	if (region)
		*region = made;
	return memory;
}

/* Publish the key of this side's memory, and return that of the other side's. */
static inline uint32_t key_of_other(struct party *p, const struct dib_region *region)
{
	uint32_t key = dib_key(region);

	check(dib_exchange_publish(p->exchange, "memory", &key, sizeof(key)), "publish");
	check(dib_exchange_barrier(p->exchange), "barrier");
	check(dib_exchange_look_up(p->exchange, 1 - p->node, "memory", &key, sizeof(key), NULL),
	      "look up");
	return key;
}

/* Take the completions that are there. */
static inline void take_completions(struct party *p)
{
	struct dib_completion completion;

	while (check(dib_poll(p->endpoint, &completion, 1), "poll"))
		if (completion.status) {
			fprintf(stderr, "a transfer ended with %s\n",
				dib_status_name(completion.status));
			exit(1);
		}
}

/* Wait until a transfer from the other side has arrived; returns its notice. A completion of this
 * side wakes it too. */
static inline uint32_t await_notice(struct party *p)
{
	struct dib_event event;

	while (!check(dib_poll_events(p->endpoint, &event, 1), "poll")) {
		take_completions(p);
		if (!check(dib_wait(p->endpoint, PATIENCE), "wait")) {
			fprintf(stderr, "nothing came\n");
			exit(1);
		}
	}
	return event.notice;
}

/* Meet the other side, so that neither closes its card while the other still needs it. */
static inline void party_close(struct party *p)
{
	check(dib_exchange_barrier(p->exchange), "barrier");
	check(dib_exchange_close(p->exchange), "exchange");
	dib_close(p->card);
}

#endif
