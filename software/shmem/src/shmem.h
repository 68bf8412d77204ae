/* What the parts of libdibber-shmem share. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef SHMEM_INTERNAL_H
#define SHMEM_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dibber/dibber.h>
#include <dibber/exchange.h>

#include "dibber_shmem.h"

#define MOST_PES DIB_EXCHANGE_PARTIES
#define ROUNDS	 6u /* of a barrier: log2 of MOST_PES */

/* What a PE tells the others. */
struct seat {
	uint32_t node;
	uint32_t endpoint;
	uint32_t key;
	uint32_t reserved;
	uint64_t heap_bytes;
};

/* The begin of each heap, which no program gets. */
struct control {
	uint64_t arrived[ROUNDS]; /* barriers that a PE has begun, for each distance */
	uint64_t landing;	  /* of single fetched values */
};

extern struct pe {
	bool on;
	unsigned int number, count;
	struct seat seats[MOST_PES];
	struct dib_card *card;
	struct dib_endpoint *endpoint;
	struct dib_exchange *exchange;
	uint8_t *heap;
	uint64_t heap_bytes;
	struct dib_region *region;
	uint64_t barriers;
} pe;

/* A command under way. Its completion sets `done`. */
struct operation {
	bool done;
	uint64_t value; /* of an atomic */
};

/* End the program with a reason. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for a code of libdibber, 0 or more is good. */
void check(int code, const char *what);

/* Where memory of the symmetric heap lies in each heap; ends the program if [memory, memory +
 * bytes) is not in it. `other` must be a PE. */
uint64_t offset_of(const void *memory, uint64_t bytes, int other, const char *what);
/* Whether local memory lies in the heap. */
bool in_heap(const void *memory, uint64_t bytes);

void heap_open(void);

/* Issue a command again and again until there is a slot for it. */
#define issue(call, what)                                   \
	do {                                                \
		int issued_;                                \
                                                            \
		while ((issued_ = (call)) == DIB_ERR_AGAIN) \
			progress();                         \
		check(issued_, what);                       \
	} while (0)

void progress(void);
void wait_for(const struct operation *operation);
/* A delivery to a PE; `operation` may be NULL. It is counted as under way. */
struct dib_delivery delivery_to(int other, struct operation *operation, uint8_t flags);

#endif
