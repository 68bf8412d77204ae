/* One put moves objects from any places to any places. Each side has written a list of its own
 * places. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <inttypes.h>

#include "two_sides.h"

#define MOVED 4

struct object {
	uint32_t number;
	float place[3];
};

struct memory {
	int64_t list[MOVED]; /* bytes from the first object */
	struct object objects[1000];
};

static const int leave[MOVED] = { 999, 0, 17, 400 }, land[MOVED] = { 3, 500, 2, 700 };

/* The side of a transfer that a region's list describes. */
static struct dib_side listed(uint32_t key)
{
	return (struct dib_side){
		.walk = { .key = key,
			  .offset = offsetof(struct memory, objects),
			  .block = sizeof(struct object) },
		.list_key = key,
		.list_offset = offsetof(struct memory, list),
	};
}

static void write_list(struct memory *memory, const int *places)
{
	for (int i = 0; i < MOVED; i++)
		memory->list[i] = places[i] * (int64_t)sizeof(struct object);
}

static void send_objects(struct side *s)
{
	struct dib_delivery delivery = { .node = 1, .endpoint = 1, .flags = DIBBER_FLAG_NOTICE };
	struct dib_side from = listed(dib_key(s->region)), to;
	struct memory *memory = s->memory;

	for (uint32_t i = 0; i < 1000; i++)
		memory->objects[i].number = i;
	write_list(memory, leave);
	to = listed(exchange_keys(s));
	check(dib_put_indexed(s->endpoint, &delivery, &from, &to, MOVED * sizeof(struct object)),
	      "put");
	printf("completion: %u bytes\n", completed(s).length);
}

static void receive_objects(struct side *s)
{
	struct memory *memory = s->memory;
	struct dib_event event;

	/* The other side may put as soon as it has the key, so the list is written before. */
	write_list(memory, land);
	exchange_keys(s);
	check(dib_wait(s->endpoint, PATIENCE), "waiting for the notice");
	if (check(dib_poll_events(s->endpoint, &event, 1), "poll") != 1) {
		fprintf(stderr, "no notice came\n");
		exit(1);
	}
	for (int i = 0; i < MOVED; i++)
		printf("at %d: object %" PRIu32 "\n", land[i], memory->objects[land[i]].number);
}

int main(int argc, char **argv)
{
	return run_two_sides(argc, argv, sizeof(struct memory),
			     DIBBER_RIGHT_LOCAL_READ | DIBBER_RIGHT_REMOTE_WRITE, send_objects,
			     receive_objects);
}
