/* All endpoints of two cards at once, each in the hands of its own thread:
 *
 *	threads FIRMWARE URI_OF_CARD_0 URI_OF_CARD_1 SEED SECONDS
 *
 * A thread and the one with the same endpoint on the other card are partners: each has a window
 * that only the other one changes, by puts, inline puts and atomics, so that the other one knows
 * what every byte of it must be. It reads them back by gets, and at the end of a batch both
 * compare. Each round registers memory anew and withdraws it, so that endpoint 0, by which the
 * library asks for that, is used by all threads beside the one that has it. Prints rounds, bytes,
 * notices and wrong bytes; exit code 1 when any was wrong or a call failed. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <dibber/dibber.h>

#define CARDS	 2
#define WORKERS	 DIBBER_ENDPOINTS
#define WINDOW	 16384u /* bytes, of which the last 8 are a counter */
#define COUNTER	 (WINDOW - 8u)
#define LONGEST	 4096u	     /* bytes of a transfer */
#define MESSAGE	 200u	     /* bytes of a message */
#define ROUNDS	 2	     /* of a batch, after which partners compare */
#define PATIENCE 1000000000u /* nanoseconds */
#define RIGHTS                                                                           \
	(DIBBER_RIGHT_LOCAL_READ | DIBBER_RIGHT_LOCAL_WRITE | DIBBER_RIGHT_REMOTE_READ | \
	 DIBBER_RIGHT_REMOTE_WRITE)

struct worker {
	pthread_t thread;
	struct worker *partner;
	struct dib_card *card;
	struct dib_endpoint *endpoint;
	struct dib_region *region; /* of the window */
	unsigned int node, number; /* card; endpoint */
	uint8_t *window;
	uint8_t expected[WINDOW]; /* the partner's window */
	uint8_t inbox[MESSAGE];	  /* reached by message */
	uint8_t outbox[MESSAGE + LONGEST + 1];
	uint64_t random;
	unsigned long rounds, bytes, sent, noticed, lost, wrong;
};

static struct worker workers[CARDS][WORKERS];
static const char *firmware, *uris[CARDS];
static pthread_barrier_t barrier;
static struct timespec until;
static int go_on = 1;		  /* written by one thread between two barriers */
static atomic_uint opened[CARDS]; /* workers whose endpoint is open */

static int check(const struct worker *w, int rc, const char *what)
{
	if (rc >= 0)
		return rc;
	fprintf(stderr, "card %u endpoint %u: %s: %s: %s\n", w->node, w->number, what,
		dib_strerror(rc), dib_last_reason());
	exit(1);
}

/* SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
static uint64_t any(struct worker *w)
{
	uint64_t z = w->random += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static uint32_t below(struct worker *w, uint32_t limit)
{
	return (uint32_t)(any(w) % limit);
}

/* All threads meet, while simulated time stands. */
static void meet(struct worker *w)
{
	check(w, dib_clock_leave(w->endpoint), "leaving the clock");
	pthread_barrier_wait(&barrier);
	check(w, dib_clock_enter(w->endpoint), "entering the clock");
}

static void drain_events(struct worker *w)
{
	struct dib_event events[16];
	int count;

	while ((count = check(w, dib_poll_events(w->endpoint, events, 16), "events")) > 0) {
		w->noticed += (unsigned long)count;
		w->lost = events[count - 1].overruns;
	}
}

/* Wait for `count` completions, all of which must be good; the last one's is returned. */
static struct dib_completion complete(struct worker *w, int count)
{
	struct dib_completion done;

	while (count > 0) {
		while (check(w, dib_poll(w->endpoint, &done, 1), "poll") == 0) {
			drain_events(w);
			if (!check(w, dib_wait(w->endpoint, PATIENCE), "wait")) {
				fprintf(stderr, "card %u endpoint %u: no completion came\n",
					w->node, w->number);
				exit(1);
			}
		}
		if (done.status != DIBBER_STATUS_OK) {
			fprintf(stderr, "card %u endpoint %u: a command ended with %s\n", w->node,
				w->number, dib_status_name(done.status));
			exit(1);
		}
		count--;
	}
	return done;
}

static void compare(struct worker *w, const uint8_t *found, const uint8_t *expected, size_t length)
{
	for (size_t i = 0; i < length; i++)
		w->wrong += found[i] != expected[i];
	w->bytes += length;
}

/* Contiguous or strided bytes from memory of this round into the partner's window. */
static void put(struct worker *w, uint32_t key, struct dib_delivery *d)
{
	uint32_t block = 1 + below(w, 64), count = 1 + below(w, 48), gap = below(w, 100);
	struct dib_walk from = { .key = key, .block = block * count };
	struct dib_walk to = {
		.key = dib_key(w->partner->region),
		.block = block,
		.levels = 1,
		.count = { count },
		.stride = { block + gap },
	};

	to.offset = below(w, COUNTER - (block + gap) * count);
	for (uint32_t i = 0; i < block * count; i++)
		w->outbox[MESSAGE + i] = (uint8_t)any(w);
	for (uint32_t i = 0; i < count; i++)
		memcpy(w->expected + to.offset + i * (block + gap), w->outbox + MESSAGE + i * block,
		       block);
	if (below(w, 4) == 0) {
		d->flags = DIBBER_FLAG_NOTICE;
		w->sent++;
	}
	check(w, dib_put_strided(w->endpoint, d, &from, &to), "put");
	d->flags = 0;
	complete(w, 1);
	w->bytes += block * count;
}

static void put_inline(struct worker *w, struct dib_delivery *d)
{
	uint32_t length = 1 + below(w, DIBBER_INLINE_BYTES), at = below(w, COUNTER - length);

	for (uint32_t i = 0; i < length; i++)
		w->expected[at + i] = (uint8_t)any(w);
	check(w,
	      dib_put_inline(w->endpoint, d, w->expected + at, dib_key(w->partner->region), at,
			     length),
	      "inline put");
	complete(w, 1);
	w->bytes += length;
}

static void add(struct worker *w, struct dib_delivery *d)
{
	struct dib_atomic atomic = {
		.opcode = DIBBER_OPCODE_FETCH_ADD,
		.size = 8,
		.key = dib_key(w->partner->region),
		.offset = COUNTER,
		.operand = any(w),
	};
	uint64_t before, after;

	memcpy(&before, w->expected + COUNTER, sizeof(before));
	after = before + atomic.operand;
	memcpy(w->expected + COUNTER, &after, sizeof(after));
	check(w, dib_atomic(w->endpoint, d, &atomic), "atomic");
	w->wrong += complete(w, 1).value != before;
	w->bytes += 8;
}

static void get(struct worker *w, uint32_t key, struct dib_delivery *d)
{
	uint32_t length = 1 + below(w, LONGEST), at = below(w, WINDOW - length);

	check(w, dib_get(w->endpoint, d, dib_key(w->partner->region), at, key, 0, length), "get");
	complete(w, 1);
	compare(w, w->outbox + MESSAGE, w->expected + at, length);
}

/* A message each way. Its bytes follow from the sender, the round and the place. */
static void exchange(struct worker *w, struct dib_region *inbox, uint32_t outbox_key,
		     struct dib_delivery *d)
{
	uint8_t expected[MESSAGE];

	for (uint32_t i = 0; i < MESSAGE; i++) {
		w->outbox[i] = (uint8_t)(w->rounds * 7 + i * 3 + w->node);
		expected[i] = (uint8_t)(w->rounds * 7 + i * 3 + !w->node);
	}
	check(w, dib_receive(w->endpoint, d, dib_key(inbox), 0, MESSAGE), "receive");
	check(w, dib_send(w->endpoint, d, outbox_key, 0, MESSAGE), "send");
	complete(w, 2);
	compare(w, w->inbox, expected, MESSAGE);
}

static void play_round(struct worker *w)
{
	struct dib_delivery d = { .node = (uint16_t)!w->node, .endpoint = (uint8_t)w->number };
	struct dib_region *inbox, *messages, *store;
	struct dib_card_info info;

	/* What the threads of a card share is its regions; these begin and end anywhere in a page.
	 */
	check(w, dib_register(w->endpoint, w->inbox, MESSAGE, RIGHTS, &inbox), "region");
	check(w, dib_register(w->endpoint, w->outbox, MESSAGE, RIGHTS, &messages), "region");
	check(w, dib_register(w->endpoint, w->outbox + MESSAGE, LONGEST, RIGHTS, &store), "region");
	for (int i = 0; i < 4; i++) {
		switch (below(w, 4)) {
		case 0:
			put(w, dib_key(store), &d);
			break;
		case 1:
			put_inline(w, &d);
			break;
		case 2:
			add(w, &d);
			break;
		case 3:
			get(w, dib_key(store), &d);
			break;
		}
	}
	/* Endpoint 0 knows no sends and receives. */
	if (w->number)
		exchange(w, inbox, dib_key(messages), &d);
	else
		check(w, dib_card_info(w->card, &info), "information");
	check(w, dib_unregister(store), "region");
	check(w, dib_unregister(messages), "region");
	check(w, dib_unregister(inbox), "region");
	w->rounds++;
}

static int time_is_over(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > until.tv_sec ||
	       (now.tv_sec == until.tv_sec && now.tv_nsec >= until.tv_nsec);
}

static void work(struct worker *w)
{
	void *memory;

	check(w, dib_alloc(WINDOW, &memory), "memory");
	w->window = memory;
	check(w, dib_register(w->endpoint, memory, WINDOW, RIGHTS, &w->region), "window");
	meet(w);
	while (go_on) {
		for (int i = 0; i < ROUNDS; i++)
			play_round(w);
		meet(w);
		/* Nobody changes anything between these two. */
		compare(w, w->window, w->partner->expected, WINDOW);
		if (w == &workers[0][0])
			go_on = !time_is_over();
		meet(w);
	}
	/* A notice may come after the completion of its put. */
	while (w->noticed + w->lost < w->partner->sent &&
	       check(w, dib_wait(w->endpoint, PATIENCE), "wait"))
		drain_events(w);
	w->wrong += w->noticed + w->lost != w->partner->sent;
	check(w, dib_unregister(w->region), "window");
	dib_free(memory);
}

/* Endpoints 1 and above: each has its own place in the simulator's clock. */
static void *worker(void *argument)
{
	struct dib_endpoint_options options = { .own_clock = 1 };
	struct worker *w = argument;

	check(w, dib_endpoint_open(w->card, w->number, &options, &w->endpoint), "endpoint");
	opened[w->node]++;
	work(w);
	dib_endpoint_close(w->endpoint);
	return NULL;
}

/* Endpoint 0, and the card itself. */
static void *opener(void *argument)
{
	struct worker *w = argument, *all = workers[w->node];

	check(w, dib_open(uris[w->node], NULL, &w->card), "card");
	check(w, dib_node_set(w->card, w->node), "node number");
	check(w, dib_firmware_load(w->card, firmware), "control program");
	check(w, dib_endpoint_open(w->card, w->number, NULL, &w->endpoint), "endpoint");
	for (unsigned int i = 1; i < WORKERS; i++) {
		all[i].card = w->card;
		if (pthread_create(&all[i].thread, NULL, worker, &all[i])) {
			fprintf(stderr, "no thread\n");
			exit(1);
		}
	}
	/* Time would stop if all who take part in the clock left it before these do. */
	while (opened[w->node] < WORKERS - 1)
		check(w, dib_wait(w->endpoint, 10000), "wait");
	work(w);
	/* The others still need time to close theirs, so that this one must not hold the clock
	 * while it waits. */
	check(w, dib_clock_leave(w->endpoint), "leaving the clock");
	for (unsigned int i = 1; i < WORKERS; i++)
		pthread_join(all[i].thread, NULL);
	check(w, dib_clock_enter(w->endpoint), "entering the clock");
	dib_endpoint_close(w->endpoint);
	dib_close(w->card);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned long rounds = 0, bytes = 0, notices = 0, wrong = 0;

	if (argc != 6) {
		fprintf(stderr, "usage: %s FIRMWARE URI_OF_CARD_0 URI_OF_CARD_1 SEED SECONDS\n",
			argv[0]);
		return 2;
	}
	firmware = argv[1];
	uris[0] = argv[2];
	uris[1] = argv[3];
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += atoi(argv[5]);
	pthread_barrier_init(&barrier, NULL, CARDS * WORKERS);
	for (unsigned int node = 0; node < CARDS; node++) {
		for (unsigned int i = 0; i < WORKERS; i++) {
			struct worker *w = &workers[node][i];

			w->node = node;
			w->number = i;
			w->partner = &workers[!node][i];
			w->random = strtoull(argv[4], NULL, 0) << 8 ^ node << 4 ^ i;
		}
	}
	for (int node = 0; node < CARDS; node++)
		pthread_create(&workers[node][0].thread, NULL, opener, &workers[node][0]);
	for (int node = 0; node < CARDS; node++)
		pthread_join(workers[node][0].thread, NULL);
	for (int node = 0; node < CARDS; node++) {
		for (unsigned int i = 0; i < WORKERS; i++) {
			rounds += workers[node][i].rounds;
			bytes += workers[node][i].bytes;
			notices += workers[node][i].noticed;
			wrong += workers[node][i].wrong;
		}
	}
	printf("%lu %lu %lu %lu\n", rounds, bytes, notices, wrong);
	return wrong != 0;
}
