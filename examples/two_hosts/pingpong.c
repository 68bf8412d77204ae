/* Eight bytes to and fro, 100 times: half of a round trip, by the notice of each put. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "party.h"

#define ROUNDS 100

static void put(struct party *p, uint32_t key, uint32_t n)
{
	struct dib_delivery to = { .node = (uint16_t)(1 - p->node),
				   .endpoint = 1,
				   .flags = DIBBER_FLAG_NOTICE,
				   .notice = n };
	uint64_t word = n;

	check(dib_put_inline(p->endpoint, &to, &word, key, 0, sizeof(word)), "put");
}

int main(int argc, char **argv)
{
	struct dib_clock begin, end;
	struct dib_region *region;
	volatile uint64_t *word;
	struct party p;
	uint32_t key;

	party_open(&p, argc, argv);
	word = party_memory(&p, sizeof(*word), &region);
	key = key_of_other(&p, region);
	check(dib_clock_now(p.endpoint, &begin), "clock");
	for (uint32_t n = 0; n < ROUNDS; n++) {
		if (p.node == 0)
			put(&p, key, n);
		if (await_notice(&p) != n || *word != n) {
			fprintf(stderr, "round %u: another word came\n", n);
			return 1;
		}
		if (p.node == 1)
			put(&p, key, n);
		take_completions(&p);
	}
	check(dib_clock_now(p.endpoint, &end), "clock");
	if (p.node == 0)
		printf("%.2f µs half a round trip, %s\n",
		       (double)(end.now_ps - begin.now_ps) / 2e6 / ROUNDS,
		       end.simulated ? "simulated time" : "the host's clock");
	party_close(&p);
	return 0;
}
