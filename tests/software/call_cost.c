/* So many calls of one kind, for test_call_cost.py to count the instructions of:  call_cost URI
 * FIRMWARE KIND COUNT
 *
 * Between two calls the program waits, so that each finds what its kind says and nothing else. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dibber/dibber.h>

#define BYTES  65536u
#define LONGER 100u /* bytes of a message that is copied */
#define RIGHTS                                                                           \
	(DIBBER_RIGHT_LOCAL_READ | DIBBER_RIGHT_LOCAL_WRITE | DIBBER_RIGHT_REMOTE_READ | \
	 DIBBER_RIGHT_REMOTE_WRITE)

static struct dib_endpoint *endpoint;
static struct dib_mailbox *mailbox;
static uint32_t key;
static uint8_t message[LONGER];

static int check(int rc)
{
	if (rc >= 0)
		return rc;
	fprintf(stderr, "%s: %s\n", dib_strerror(rc), dib_last_reason());
	exit(1);
}

/* All that was asked of the card is done: it answers in order. */
static void settle(void)
{
	struct dib_clock clock;

	check(dib_clock_now(endpoint, &clock));
}

static void take_one(void)
{
	struct dib_completion done;

	settle();
	if (check(dib_poll(endpoint, &done, 1)) != 1 || done.status != DIBBER_STATUS_OK)
		exit(1);
}

static struct dib_walk walk(uint32_t levels)
{
	return (struct dib_walk){
		.key = key,
		.block = 2,
		.levels = levels,
		.count = { 2, 2, 2 },
		.stride = { 4, 16, 64 },
	};
}

static void put_strided(uint32_t levels)
{
	struct dib_walk from = walk(levels), to = walk(levels);

	check(dib_put_strided(endpoint, &(struct dib_delivery){ .node = 1 }, &from, &to));
	take_one();
}

static void put(void)
{
	check(dib_put(endpoint, &(struct dib_delivery){ .node = 1 }, key, 0, key, 64, 8));
	take_one();
}

static void put_inline(void)
{
	check(dib_put_inline(endpoint, &(struct dib_delivery){ .node = 1 }, message, key, 64,
			     DIBBER_INLINE_BYTES));
	take_one();
}

static void get(void)
{
	check(dib_get(endpoint, &(struct dib_delivery){ .node = 1 }, key, 0, key, 64, 8));
	take_one();
}

static void put_one_level(void)
{
	put_strided(1);
}

static void put_three_levels(void)
{
	put_strided(3);
}

static void poll_empty(void)
{
	struct dib_completion done;

	check(dib_poll(endpoint, &done, 1));
}

static void poll_events(void)
{
	struct dib_delivery delivery = { .node = 1, .endpoint = 1, .flags = DIBBER_FLAG_NOTICE };
	struct dib_event event;

	check(dib_put_inline(endpoint, &delivery, message, key, 64, 8));
	take_one();
	if (check(dib_poll_events(endpoint, &event, 1)) != 1)
		exit(1);
}

/* The mailbox is its own peer. */
static void pass(uint32_t length)
{
	struct dib_message got;

	check(dib_mailbox_send(mailbox, 0, message, length));
	settle();
	/* Completion and event are taken by this, and the message is not. */
	check(dib_mailbox_wait(mailbox, DIB_MAILBOX_MESSAGE, 0));
	if (check(dib_mailbox_receive(mailbox, message, sizeof(message), &got)) != 1 ||
	    got.length != length)
		exit(1);
	settle();
	check(dib_mailbox_wait(mailbox, DIB_MAILBOX_MESSAGE, 0));
}

static void pass_inline(void)
{
	pass(8);
}

static void pass_copied(void)
{
	pass(LONGER);
}

static void mailbox_empty(void)
{
	struct dib_message got;

	check(dib_mailbox_receive(mailbox, message, sizeof(message), &got));
}

static const struct kind {
	const char *name;
	void (*call)(void);
	int by_mailbox;
} kinds[] = {
	{ "put", put, 0 },
	{ "put-inline", put_inline, 0 },
	{ "get", get, 0 },
	{ "put-one-level", put_one_level, 0 },
	{ "put-three-levels", put_three_levels, 0 },
	{ "poll-empty", poll_empty, 0 },
	{ "poll-events", poll_events, 0 },
	{ "pass-inline", pass_inline, 1 },
	{ "pass-copied", pass_copied, 1 },
	{ "mailbox-empty", mailbox_empty, 1 },
};

int main(int argc, char **argv)
{
	struct dib_mailbox_address address;
	const struct kind *kind = kinds;
	struct dib_region *region;
	struct dib_card *card;
	void *memory;

	if (argc != 5)
		return 2;
	while (strcmp(kind->name, argv[3]))
		kind++;
	check(dib_open(argv[1], NULL, &card));
	check(dib_firmware_load(card, argv[2]));
	check(dib_endpoint_open(card, 1, NULL, &endpoint));
	check(dib_alloc(BYTES, &memory));
	check(dib_register(endpoint, memory, BYTES, RIGHTS, &region));
	key = dib_key(region);
	if (kind->by_mailbox) {
		check(dib_mailbox_open(endpoint, NULL, &mailbox));
		check(dib_mailbox_address(mailbox, 0, &address));
		check(dib_mailbox_connect(mailbox, 0, &address));
	}
	for (int i = atoi(argv[4]); i > 0; i--)
		kind->call();
	dib_mailbox_close(mailbox);
	dib_unregister(region);
	dib_endpoint_close(endpoint);
	dib_close(card);
	dib_free(memory);
	return 0;
}
