/* Sends and receives. The receiver sleeps on a descriptor, as a program does that also waits for
 * other descriptors. Then it counts the messages in the sender's memory. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <poll.h>
#include <string.h>

#include "two_sides.h"

#define MESSAGES 4
#define LENGTH	 64 /* bytes of a message at most */
#define COUNTER	 (MESSAGES * LENGTH)
#define RIGHTS                                                                           \
	(DIBBER_RIGHT_LOCAL_READ | DIBBER_RIGHT_LOCAL_WRITE | DIBBER_RIGHT_REMOTE_READ | \
	 DIBBER_RIGHT_REMOTE_WRITE)

static void send_messages(struct side *s)
{
	struct dib_delivery delivery = { .node = 1, .endpoint = 1 };
	struct dib_event counted;
	char *text = s->memory;

	exchange_keys(s);
	for (int i = 0; i < MESSAGES; i++) {
		snprintf(text + i * LENGTH, LENGTH, "message %d", i);
		check(dib_send(s->endpoint, &delivery, dib_key(s->region), (uint64_t)i * LENGTH,
			       (uint32_t)strlen(text + i * LENGTH) + 1),
		      "send");
	}
	for (int i = 0; i < MESSAGES; i++)
		completed(s);
	/* Wait inside the clock: the other side sleeps outside it, and one participant must let
	 * time go on. */
	while (check(dib_poll_events(s->endpoint, &counted, 1), "poll") == 0) {
		if (!check(dib_wait(s->endpoint, PATIENCE), "waiting for the notice")) {
			fprintf(stderr, "no notice came\n");
			exit(1);
		}
	}
	printf("counted: %llu\n", *(unsigned long long *)(text + COUNTER));
}

/* Sleep in poll(2) until the card interrupts. On a simulated card the program leaves the clock for
 * that; time goes on as long as a participant is left in it. */
static void sleep_for(struct side *s, int event_fd)
{
	struct pollfd waiting = { .fd = event_fd, .events = POLLIN };
	uint64_t interrupts;

	check(dib_clock_leave(s->endpoint), "clock");
	if (poll(&waiting, 1, (int)(PATIENCE / 1000000u)) != 1 ||
	    read(event_fd, &interrupts, sizeof(interrupts)) != sizeof(interrupts)) {
		fprintf(stderr, "no interrupt came\n");
		exit(1);
	}
	check(dib_clock_enter(s->endpoint), "clock");
}

static void receive_messages(struct side *s)
{
	struct dib_delivery delivery = { .endpoint = 1, .flags = DIBBER_FLAG_SOLICIT };
	struct dib_delivery counted = { .endpoint = 1,
					.flags = DIBBER_FLAG_NOTICE,
					.notice = MESSAGES };
	struct dib_completion done;
	struct dib_atomic count = {
		.opcode = DIBBER_OPCODE_FETCH_ADD,
		.size = 8,
		.offset = COUNTER,
		.operand = 1,
	};
	int event_fd = check(dib_event_fd(s->endpoint), "event descriptor"), received = 0;
	char *text = s->memory;

	for (int i = 0; i < MESSAGES; i++) {
		delivery.tag = (uint64_t)i;
		check(dib_receive(s->endpoint, &delivery, dib_key(s->region), (uint64_t)i * LENGTH,
				  LENGTH),
		      "receive");
	}
	count.key = exchange_keys(s);
	while (received < MESSAGES) {
		sleep_for(s, event_fd);
		while (check(dib_poll(s->endpoint, &done, 1), "poll") == 1) {
			printf("%u bytes: %s\n", done.length, text + done.tag * LENGTH);
			received++;
		}
	}
	for (int i = 0; i < received; i++) {
		check(dib_atomic(s->endpoint, &(struct dib_delivery){ .node = 0 }, &count),
		      "fetch and add");
		completed(s);
	}
	check(dib_put_inline(s->endpoint, &counted, "", count.key, COUNTER + 8, 1), "notice");
	completed(s);
}

int main(int argc, char **argv)
{
	return run_two_sides(argc, argv, COUNTER + 16, RIGHTS, send_messages, receive_messages);
}
