/* This file is part of Dibber.
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Feed a fuzz target with inputs that are a function of the seed:  main SEED RUNS [FIRST]
 *
 * Zeros mean that nothing is wrong, so an input is zeros with a few short bursts of anything: the first of them may come
 * late in the program's life. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

#define LENGTH  192u
#define BURSTS  8u		/* at most */
#define BURST   12u		/* bytes at most */
#define SECONDS 60		/* after which an input hangs */

static char where[64];

static void hangs(int signal)
{
	static const char text[] = "hangs\n";

	(void)signal;
	if (write(2, where, strlen(where)) < 0 || write(2, text, sizeof(text) - 1) < 0)
		_exit(2);
	_exit(1);
}

/* SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): any seed is good, so that each run has its own. */
static uint64_t random_word(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static void make_input(uint8_t *input, uint64_t state)
{
	unsigned int bursts = random_word(&state) % (BURSTS + 1);

	memset(input, 0, LENGTH);
	while (bursts--) {
		uint64_t at = random_word(&state) % LENGTH, length = random_word(&state) % BURST + 1;

		for (; at < LENGTH && length > 0; at++, length--)
			input[at] = (uint8_t)random_word(&state);
	}
}

int main(int argc, char **argv)
{
	unsigned long runs, first;
	uint8_t input[LENGTH];
	uint64_t seed;

	if (argc < 3) {
		fprintf(stderr, "usage: %s SEED RUNS [FIRST]\n", argv[0]);
		return 2;
	}
	seed = strtoull(argv[1], NULL, 0);
	runs = strtoul(argv[2], NULL, 0);
	first = argc > 3 ? strtoul(argv[3], NULL, 0) : 0;
	signal(SIGALRM, hangs);
	for (unsigned long run = first; run < first + runs; run++) {
		snprintf(where, sizeof(where), "run %lu of seed %llu ", run, (unsigned long long)seed);
		alarm(SECONDS);
		make_input(input, seed << 32 ^ run);
		LLVMFuzzerTestOneInput(input, sizeof(input));
	}
	printf("%lu %lu %lu %lu %lu\n", runs, fuzz_reached.card, fuzz_reached.endpoint, fuzz_reached.region,
	       fuzz_reached.end);
	return 0;
}
