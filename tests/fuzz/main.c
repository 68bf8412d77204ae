/* Feed a fuzz target with inputs that are a function of the seed:  main SEED RUNS [FIRST]
 *
 * Zeros mean that nothing is wrong, so an input is zeros with a few short bursts of anything: the
 * first of them may come late in the program's life. For a target to which zeros say nothing the
 * bursts are as long as the input. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

#define SECONDS 60 /* after which an input hangs */

static char where[64];

/* Sanitizers abort, too (fuzz.py): whatever ends this process before its time, the run is named. */
static void ends(int signal)
{
	const char *text = signal == SIGALRM ? "hangs\n" : "aborts\n";

	if (write(2, where, strlen(where)) < 0 || write(2, text, strlen(text)) < 0)
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
	unsigned int bursts = random_word(&state) % (fuzz_form.bursts + 1);

	memset(input, 0, fuzz_form.length);
	while (bursts--) {
		uint64_t at = random_word(&state) % fuzz_form.length,
			 length = random_word(&state) % fuzz_form.burst + 1;

		for (; at < fuzz_form.length && length > 0; at++, length--)
			input[at] = (uint8_t)random_word(&state);
	}
}

int main(int argc, char **argv)
{
	unsigned long runs, first;
	uint8_t *input;
	uint64_t seed;

	if (argc < 3) {
		fprintf(stderr, "usage: %s SEED RUNS [FIRST]\n", argv[0]);
		return 2;
	}
	seed = strtoull(argv[1], NULL, 0);
	runs = strtoul(argv[2], NULL, 0);
	first = argc > 3 ? strtoul(argv[3], NULL, 0) : 0;
	signal(SIGALRM, ends);
	signal(SIGABRT, ends);
	for (unsigned long run = first; run < first + runs; run++) {
		snprintf(where, sizeof(where), "run %lu of seed %llu ", run,
			 (unsigned long long)seed);
		alarm(SECONDS);
		/* Of its own, so that a read behind its end is seen. */
		input = malloc(fuzz_form.length);
		if (!input)
			return 2;
		make_input(input, seed << 32 ^ run);
		LLVMFuzzerTestOneInput(input, fuzz_form.length);
		free(input);
	}
	printf("runs %lu\n", runs);
	for (const struct fuzz_reached *place = fuzz_reached; place->name; place++)
		printf("%s %lu\n", place->name, place->count);
	return 0;
}
