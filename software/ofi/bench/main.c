/* dibber-mpi-bench: benchmarks of MPI that any MPI library runs.
 *
 *	dibber-mpi-bench SEED TEST[=NUMBER,…]…
 *
 * Rank 0 prints a line `SERIES X VALUE` for each point, and a last one `compared BYTES WRONG`.
 * Times are MPI_Wtime(); MB is 10^6 bytes.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

int rank, ranks;
uint64_t seed;
static uint64_t state;
static unsigned long compared, wrong;

static const struct {
	const char *name;
	void (*run)(const struct words *words);
} tests[] = {
	{ "restricted", restricted },
	{ "postal", postal },
	{ "distance", distance },
	{ "barrier", barrier },
	{ "reduce", reduce },
	{ "alltoall", alltoall },
	{ "aapc", aapc },
	{ "simple", simple },
	{ "cumulative", cumulative },
	{ "random", random_pairs },
	{ "b_eff", b_eff },
	{ "put", put_vector },
};

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

static int run(const char *word)
{
	const char *equals = strchr(word, '=');
	size_t length = equals ? (size_t)(equals - word) : strlen(word);
	struct words words = { .count = 0 };

	for (const char *at = equals; at && words.count < 32; at = strchr(at + 1, ','))
		words.value[words.count++] = strtoul(at + 1, NULL, 10);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (strlen(tests[i].name) == length && !strncmp(tests[i].name, word, length)) {
			tests[i].run(&words);
			return 0;
		}
	fprintf(stderr, "no test %s\n", word);
	return 2;
}

int main(int argc, char **argv)
{
	unsigned long mine[2], all[2] = { 0, 0 };
	int rc = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	state = seed * 2 + 1;
	for (int i = 2; i < argc && !rc; i++)
		rc = run(argv[i]);
	if (rc)
		MPI_Abort(MPI_COMM_WORLD, rc);
	mine[0] = compared;
	mine[1] = wrong;
	MPI_Reduce(mine, all, 2, MPI_UNSIGNED_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("compared %lu %lu\n", all[0], all[1]);
	MPI_Finalize();
	return 0;
}
