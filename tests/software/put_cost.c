/* So many puts of 8 bytes, for test_put_cost.py to count the instructions of:  put_cost URI
 * FIRMWARE COUNT */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdio.h>
#include <stdlib.h>

#include <dibber/dibber.h>

#define LENGTH	 8u
#define FOR_EVER UINT64_MAX

static void check(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %s: %s\n", what, dib_strerror(rc), dib_last_reason());
	exit(1);
}

/* Wait for completions; returns how many came. */
static int collect(struct dib_endpoint *endpoint)
{
	struct dib_completion done[DIBBER_SLOTS];
	int count;

	check(dib_wait(endpoint, FOR_EVER), "wait");
	check(count = dib_poll(endpoint, done, DIBBER_SLOTS), "poll");
	for (int i = 0; i < count; i++) {
		if (done[i].status != DIBBER_STATUS_OK) {
			fprintf(stderr, "a put ended with %s\n", dib_status_name(done[i].status));
			exit(1);
		}
	}
	return count;
}

int main(int argc, char **argv)
{
	struct dib_delivery delivery = { .node = 1 };
	struct dib_endpoint *endpoint;
	struct dib_region *region;
	struct dib_card *card;
	int count, ended = 0;
	void *memory;

	if (argc != 4) {
		fprintf(stderr, "usage: %s URI FIRMWARE COUNT\n", argv[0]);
		return 2;
	}
	count = atoi(argv[3]);
	check(dib_open(argv[1], NULL, &card), "card");
	check(dib_firmware_load(card, argv[2]), "control program");
	check(dib_endpoint_open(card, 1, NULL, &endpoint), "endpoint");
	check(dib_alloc(4096, &memory), "memory");
	check(dib_register(endpoint, memory, 4096,
			   DIBBER_RIGHT_LOCAL_READ | DIBBER_RIGHT_REMOTE_WRITE, &region),
	      "region");

	for (int posted = 0; ended < count; ended += collect(endpoint)) {
		for (; posted < count && posted - ended < (int)DIBBER_SLOTS; posted++)
			check(dib_put(endpoint, &delivery, dib_key(region), 0, dib_key(region), 64,
				      LENGTH),
			      "put");
	}
	check(dib_unregister(region), "region");
	dib_endpoint_close(endpoint);
	dib_close(card);
	dib_free(memory);
	return 0;
}
