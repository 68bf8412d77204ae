/* One put copies a column of one machine's matrix into a column of the other's. A notice tells the
 * other program. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "two_sides.h"

#define ROWS	64
#define COLUMNS 32

typedef double row[COLUMNS];

/* The walk along column `column` of a matrix. */
static struct dib_walk column_of(uint32_t key, uint32_t column)
{
	return (struct dib_walk){
		.key = key,
		.offset = column * sizeof(double),
		.block = sizeof(double),
		.levels = 1,
		.count = { ROWS },
		.stride = { sizeof(row) },
	};
}

static void send_column(struct side *s)
{
	struct dib_delivery delivery = {
		.node = 1, .endpoint = 1, .flags = DIBBER_FLAG_NOTICE, .notice = 7
	};
	struct dib_walk from = column_of(dib_key(s->region), 3);
	struct dib_walk to = column_of(exchange_keys(s), 5);
	row *matrix = s->memory;

	for (int i = 0; i < ROWS; i++)
		matrix[i][3] = i;
	check(dib_put_strided(s->endpoint, &delivery, &from, &to), "put");
	printf("completion: %u bytes\n", completed(s).length);
}

static void receive_column(struct side *s)
{
	struct dib_event event;
	row *matrix = s->memory;

	exchange_keys(s);
	check(dib_wait(s->endpoint, PATIENCE), "waiting for the notice");
	if (check(dib_poll_events(s->endpoint, &event, 1), "poll") != 1) {
		fprintf(stderr, "no notice came\n");
		exit(1);
	}
	printf("notice %u: %u bytes; the last element is %g\n", event.notice, event.length,
	       matrix[ROWS - 1][5]);
}

int main(int argc, char **argv)
{
	return run_two_sides(argc, argv, ROWS * sizeof(row),
			     DIBBER_RIGHT_LOCAL_READ | DIBBER_RIGHT_REMOTE_WRITE, send_column,
			     receive_column);
}
