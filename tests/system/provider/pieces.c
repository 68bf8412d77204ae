/* Random pieces, cut and paired as libdibber-pmpi.so does it, against their bytes one by one.
 *
 *	pieces SEED COUNT
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdio.h>
#include <stdlib.h>

#include "../../../software/ofi/pmpi/piece.h"

#define MOST 20000 /* bytes of a sequence */
#define FEW  16

static uint64_t state;
static int64_t lists[1 << 16]; /* of both sides */

/* xorshift64*, Vigna 2016. */
static unsigned int draw(unsigned int below)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (unsigned int)((state * UINT64_C(2685821657736338717) >> 32) % below);
}

/* The places of all bytes of a piece, in their order. Returns how many there are. */
static size_t places(const struct piece *piece, int64_t *out)
{
	size_t count = 0;
	uint32_t c[3] = { 1, 1, 1 };

	for (unsigned int i = 0; i < piece->levels; i++)
		c[i] = piece->count[i];
	for (uint32_t e = 0; e < (piece->entries ? piece->entries : 1); e++)
		for (uint32_t z = 0; z < c[2]; z++)
			for (uint32_t y = 0; y < c[1]; y++)
				for (uint32_t x = 0; x < c[0]; x++)
					for (uint32_t b = 0; b < piece->block; b++) {
						int64_t at = piece->offset + b;

						at += piece->entries ? lists[piece->list / 8 + e]
								     : 0;
						at += piece->levels > 0 ? x * piece->stride[0] : 0;
						at += piece->levels > 1 ? y * piece->stride[1] : 0;
						at += piece->levels > 2 ? z * piece->stride[2] : 0;
						out[count++] = at;
					}
	return count;
}

static struct piece some_piece(void)
{
	struct piece piece = {
		.offset = (int64_t)draw(1000) - 500,
		.block = 1 + draw(draw(2) ? 9 : 300),
		.entries = draw(3) ? 0 : 1 + draw(6),
		.list = 8 * (uint64_t)draw(60000),
	};

	piece.levels = draw(piece.entries ? 3 : 4);
	for (unsigned int i = 0; i < piece.levels; i++) {
		piece.count[i] = 1 + draw(5);
		piece.stride[i] = (int64_t)draw(2000) - 1000;
	}
	return piece;
}

static size_t some_pieces(struct piece *out, unsigned int count, int64_t *bytes)
{
	size_t length = 0;

	for (unsigned int i = 0; i < count; i++) {
		do
			out[i] = some_piece();
		while (length + piece_bytes(&out[i]) > MOST - (count - i) * 20);
		length += places(&out[i], bytes + length);
	}
	return length;
}

static int fail(const char *what)
{
	fprintf(stderr, "%s\n", what);
	return 1;
}

int main(int argc, char **argv)
{
	static int64_t there_bytes[MOST], here_bytes[MOST], far[MOST], near[MOST];
	unsigned int paired = 0;

	state = strtoull(argv[1], NULL, 0) * 2 + 1;
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		lists[i] = (int64_t)draw(100000) - 50000;
	for (int round = 0; round < atoi(argv[argc - 1]); round++) {
		struct piece there[FEW], here[FEW];
		unsigned int there_count = 1 + draw(draw(2) ? 2 : FEW), here_count = 1 + draw(3);
		size_t there_length = some_pieces(there, there_count, there_bytes);
		size_t here_length = some_pieces(here, here_count, here_bytes);
		size_t length = there_length < here_length ? there_length : here_length, at = 0;
		struct pairs pairs;

		if (pieces_bytes(there, there_count) != there_length)
			return fail("pieces that make sense are refused, or others taken");
		if (!pieces_pair(&pairs, there, there_count, here, here_count)) {
			if (pairs.count < MOST_PIECES / 2)
				return fail("refused after a few pairs");
			continue;
		}
		paired++;
		for (unsigned int i = 0; i < pairs.count; i++) {
			size_t bytes = places(&pairs.pair[i].there, far);

			if (places(&pairs.pair[i].here, near) != bytes || at + bytes > length)
				return fail("the sides of a pair have other lengths");
			for (size_t k = 0; k < bytes; k++, at++)
				if (far[k] != there_bytes[at] || near[k] != here_bytes[at])
					return fail("a byte at another place");
		}
		if (at != length)
			return fail("bytes are missing");
	}
	printf("%u\n", paired);
	return 0;
}
