/* dibber-mpi-bench: benchmarks of MPI that any MPI library runs.
 *
 *	dibber-mpi-bench SEED TEST[=NUMBER,…]…
 *
 * It needs two ranks or more. The numbers of a test are in `tests` below; `put` takes strides in
 * elements, `barrier` rounds, `distance` switches, `b_eff` its limits, `typed` patterns, all others
 * bytes.
 * Rank 0 prints a line `SERIES X VALUE` for each point, and a last one `compared BYTES WRONG`.
 * Times are MPI_Wtime(); MB is 10^6 bytes.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

int rank, ranks;
uint64_t seed;
static uint64_t state;
static unsigned long compared, wrong;

/* How many numbers a test takes, and the largest. A message is shorter than 2 GiB, also twice it.
 */
#define MOST_BYTES  (1ul << 29)
#define MOST_STRIDE (1ul << 12)
#define SHORTEST    4096ul /* longest message of b_eff */
#define MANY	    (sizeof(((struct words *)0)->value) / sizeof(unsigned long))

static const struct {
	const char *name;
	void (*run)(const struct words *words);
	unsigned int fewest, most;
	unsigned long least, largest;
} tests[] = {
	{ "restricted", restricted, 1, MANY, 1, MOST_BYTES },
	{ "postal", postal, 1, MANY, 1, MOST_BYTES },
	{ "distance", distance, 1, 1, 0, 16 },
	{ "barrier", barrier, 0, 1, 1, 1000000 },
	{ "reduce", reduce, 1, MANY, 4, MOST_BYTES },
	{ "alltoall", alltoall, 1, MANY, 1, MOST_BYTES },
	{ "aapc", aapc, 1, 1, 1, MOST_BYTES },
	{ "simple", simple, 1, 1, 1, MOST_BYTES },
	{ "cumulative", cumulative, 1, 1, 1, MOST_BYTES },
	{ "random", random_pairs, 1, 1, 1, MOST_BYTES },
	{ "b_eff", b_eff, 3, 3, 1, MOST_BYTES },
	{ "put", put_vector, 1, MANY, 1, MOST_STRIDE },
	{ "typed", typed, 1, MANY, 0, 8 },
};
#define COUNT (sizeof(tests) / sizeof(tests[0]))

void *memory(size_t length)
{
	void *bytes = calloc(1, length ? length : 1);

	if (!bytes) {
		fprintf(stderr, "no memory for %zu bytes\n", length);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return bytes;
}

static uint8_t byte_of(int from, unsigned int round, size_t place)
{
	uint64_t word = seed + (uint64_t)(from + 1) * 0x9e3779b97f4a7c15u + round * 0x2545f491u +
			(place >> 3) * 0xd1342543de82ef95u;

	word ^= word >> 29;
	return (uint8_t)(word >> 8 * (place & 7));
}

void fill(void *bytes, size_t length, int from, unsigned int round)
{
	for (size_t i = 0; i < length; i++)
		((uint8_t *)bytes)[i] = byte_of(from, round, i);
}

void compare(const void *bytes, size_t length, int from, unsigned int round)
{
	compared += length;
	for (size_t i = 0; i < length; i++)
		wrong += ((const uint8_t *)bytes)[i] != byte_of(from, round, i);
}

void result(const char *series, double x, double value)
{
	if (rank == 0) {
		printf("%s %.10g %.10g\n", series, x, value);
		fflush(stdout);
	}
}

/* xorshift64*, Vigna 2016. */
unsigned int draw(unsigned int below)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (unsigned int)((state * UINT64_C(2685821657736338717) >> 32) % below);
}

/* The numbers behind a test's name. Returns whether they are numbers, and not too many. */
static bool read_numbers(const char *at, struct words *words)
{
	while (at) {
		char *end;

		if (words->count == MANY || at[1] < '0' || at[1] > '9')
			return false;
		errno = 0;
		words->value[words->count++] = strtoul(at + 1, &end, 10);
		if (errno || (*end && *end != ','))
			return false;
		at = *end ? end : NULL;
	}
	return true;
}

static int refuse(const char *word, const char *why)
{
	if (rank == 0)
		fprintf(stderr, "%s: %s\n", word, why);
	return 2;
}

static int run(const char *word)
{
	const char *equals = strchr(word, '=');
	size_t length = equals ? (size_t)(equals - word) : strlen(word), i = 0;
	struct words words = { .count = 0 };

	while (i < COUNT &&
	       (strlen(tests[i].name) != length || strncmp(tests[i].name, word, length)))
		i++;
	if (i == COUNT)
		return refuse(word, "no such test");
	if (!read_numbers(equals, &words) || words.count < tests[i].fewest ||
	    words.count > tests[i].most)
		return refuse(word, "not the numbers that this test takes");
	for (unsigned int k = 0; k < words.count; k++)
		if (words.value[k] < tests[i].least || words.value[k] > tests[i].largest)
			return refuse(word, "a number is too small or too large");
	if (tests[i].run == b_eff && words.value[0] < SHORTEST)
		return refuse(word, "the longest message has less than 4096 bytes");
	tests[i].run(&words);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long mine[2], all[2] = { 0, 0 };
	int rc = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (ranks < 2)
		rc = refuse(argv[0], "one rank has no partner: start two or more");
	else if (argc < 3 || !*argv[1] || argv[1][strspn(argv[1], "0123456789")])
		rc = refuse(argv[0], "give a seed, which is a number, and tests");
	seed = rc ? 0 : strtoull(argv[1], NULL, 10);
	state = seed * 2 + 1;
	for (int i = 2; i < argc && !rc; i++)
		rc = run(argv[i]);
	if (rc) {
		/* All ranks have the same words, so all of them end here. */
		MPI_Finalize();
		return rc;
	}
	mine[0] = compared;
	mine[1] = wrong;
	MPI_Reduce(mine, all, 2, MPI_UNSIGNED_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("compared %lu %lu\n", all[0], all[1]);
	MPI_Finalize();
	return 0;
}
