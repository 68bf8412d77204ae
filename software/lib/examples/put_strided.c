/* This file is part of Dibber.
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* A column of one machine's matrix becomes a column of the other's.
 *
 *	put_strided FIRMWARE URI_OF_CARD_0 URI_OF_CARD_1
 *
 * Two processes, one card each: the child receives, the parent sends. What they must know of each other (a key) goes
 * through a pipe, and while they wait for that they leave the simulator's clock.
 */

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dibber/dibber.h>

#define ROWS    64
#define COLUMNS 32
#define SECOND  1000000000u	/* nanoseconds */

typedef double row[COLUMNS];

struct side {
	struct dib_card *card;
	struct dib_endpoint *endpoint;
	struct dib_region *region;
	row *matrix;
};

static void check(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %s: %s\n", what, dib_strerror(rc), dib_last_reason());
	exit(1);
}

static void open_side(struct side *s, unsigned int node, const char *firmware, const char *uri)
{
	void *memory;

	check(dib_open(uri, NULL, &s->card), "card");
	check(dib_node_set(s->card, node), "node number");
	check(dib_firmware_load(s->card, firmware), "control program");
	check(dib_endpoint_open(s->card, 1, NULL, &s->endpoint), "endpoint");
	check(dib_alloc(ROWS * sizeof(row), &memory), "memory");
	s->matrix = memory;
	check(dib_register(s->endpoint, memory, ROWS * sizeof(row),
			   DIBBER_RIGHT_LOCAL_READ | DIBBER_RIGHT_REMOTE_WRITE, &s->region), "region");
}

static void close_side(struct side *s)
{
	check(dib_unregister(s->region), "region");
	dib_endpoint_close(s->endpoint);
	dib_close(s->card);
	dib_free(s->matrix);
}

/* Where column `column` of a matrix lies. */
static struct dib_walk column_of(uint32_t key, uint32_t column)
{
	return (struct dib_walk){
		.key = key, .offset = column * sizeof(double), .block = sizeof(double),
		.levels = 1, .count = { ROWS }, .stride = { sizeof(row) },
	};
}

static void receive(struct side *s, int pipe_end)
{
	uint32_t key = dib_key(s->region);
	struct dib_event event;

	check(dib_clock_leave(s->endpoint), "clock");
	if (write(pipe_end, &key, sizeof(key)) != sizeof(key))
		exit(1);
	check(dib_clock_enter(s->endpoint), "clock");

	check(dib_wait(s->endpoint, SECOND), "waiting for the notice");
	if (dib_poll_events(s->endpoint, &event, 1) != 1) {
		fprintf(stderr, "no notice came\n");
		exit(1);
	}
	printf("notice %u: %u bytes; the last element is %g\n", event.notice, event.length,
	       s->matrix[ROWS - 1][5]);
}

static void send_column(struct side *s, int pipe_end)
{
	struct dib_delivery delivery = { .node = 1, .endpoint = 1, .flags = DIBBER_FLAG_NOTICE, .notice = 7 };
	struct dib_completion completion;
	struct dib_walk from, to;
	uint32_t key;

	check(dib_clock_leave(s->endpoint), "clock");
	if (read(pipe_end, &key, sizeof(key)) != sizeof(key))
		exit(1);
	check(dib_clock_enter(s->endpoint), "clock");

	for (int i = 0; i < ROWS; i++)
		s->matrix[i][3] = i;
	from = column_of(dib_key(s->region), 3);
	to = column_of(key, 5);
	check(dib_put_strided(s->endpoint, &delivery, &from, &to), "put");
	check(dib_wait(s->endpoint, SECOND), "waiting for the completion");
	if (dib_poll(s->endpoint, &completion, 1) != 1) {
		fprintf(stderr, "no completion came\n");
		exit(1);
	}
	printf("completion: %s\n", dib_status_string(completion.status));
}

int main(int argc, char **argv)
{
	struct side side;
	int ends[2], status = 1;
	pid_t child;

	if (argc != 4) {
		fprintf(stderr, "usage: %s FIRMWARE URI_OF_CARD_0 URI_OF_CARD_1\n", argv[0]);
		return 2;
	}
	if (pipe(ends) < 0 || (child = fork()) < 0) {
		perror("pipe or fork");
		return 1;
	}
	if (child == 0) {
		close(ends[0]);
		open_side(&side, 1, argv[1], argv[3]);
		receive(&side, ends[1]);
		close_side(&side);
		return 0;
	}
	close(ends[1]);
	open_side(&side, 0, argv[1], argv[2]);
	send_column(&side, ends[0]);
	close_side(&side);
	waitpid(child, &status, 0);
	return status ? 1 : 0;
}
