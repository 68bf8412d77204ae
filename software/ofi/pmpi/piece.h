/* A message's bytes as a sequence of pieces that the card can walk. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef PIECE_H
#define PIECE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dibber/dibber.h>

/* Blocks in nested levels, innermost first, and with `entries` repeated at the distances of a list.
 * It travels between ranks as it stands: 64 bytes. */
struct piece {
	int64_t offset; /* of the first block from the address of the message's buffer */
	uint64_t list;	/* place of the list in its owner's arena */
	int64_t stride[DIBBER_LEVELS];
	uint32_t count[DIBBER_LEVELS];
	uint32_t block;
	uint32_t entries; /* 0: no list */
	uint32_t levels;
};

#define MOST_PIECES 64u /* of a message */

/* Two pieces of as many bytes: what one command moves. */
struct pair {
	struct piece there, here;
};

struct pairs {
	unsigned int count;
	struct pair pair[MOST_PIECES];
};

uint64_t piece_bytes(const struct piece *piece);

/* How many bytes pieces that another process has sent have together; 0 if they cannot be walked. */
uint64_t pieces_bytes(const struct piece *piece, unsigned int count);

/* Split both sequences where one of them has an edge; the longer one ends with the shorter one.
 * Returns false if that makes more than MOST_PIECES pairs. */
bool pieces_pair(struct pairs *out, const struct piece *there, unsigned int there_count,
		 const struct piece *here, unsigned int here_count);

#endif
