/* A message's bytes as a sequence of pieces, cut where two sequences have their edges.
 *
 * A part of a nest is the rest of a block, of a row, of a plane and so on at its begin, a whole
 * nest in its middle, and the same as at its begin at its end.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <string.h>

#include "piece.h"

#define MOST_PARTS 9u /* of a piece that is cut: four levels with the list, from both ends */
#define DEPTH	   64 /* of splitting; each step has shorter pieces */

struct parts {
	unsigned int count;
	struct piece piece[MOST_PARTS];
};

uint64_t piece_bytes(const struct piece *piece)
{
	uint64_t bytes = piece->block * (uint64_t)(piece->entries ? piece->entries : 1);

	for (unsigned int i = 0; i < piece->levels; i++)
		bytes *= piece->count[i];
	return bytes;
}

static bool makes_sense(const struct piece *piece)
{
	unsigned int most = piece->entries ? DIBBER_LIST_LEVELS : DIBBER_LEVELS;
	uint64_t bytes = piece->block;

	if (!bytes || piece->levels > most || piece->list % 8)
		return false;
	if (piece->entries)
		bytes *= piece->entries;
	for (unsigned int i = 0; i < piece->levels; i++) {
		if (!piece->count[i] || bytes > DIBBER_MAX_LENGTH)
			return false;
		bytes *= piece->count[i];
	}
	return bytes <= DIBBER_MAX_LENGTH;
}

uint64_t pieces_bytes(const struct piece *piece, unsigned int count)
{
	uint64_t sum = 0;

	if (count > MOST_PIECES)
		return 0;
	for (unsigned int i = 0; i < count; i++) {
		if (!makes_sense(&piece[i]))
			return 0;
		sum += piece_bytes(&piece[i]);
	}
	return sum <= DIBBER_MAX_LENGTH ? sum : 0;
}

/* `count` elements from `first` on of the outermost level. */
static struct piece part(struct piece piece, uint64_t first, uint64_t count)
{
	unsigned int top;

	if (piece.entries > 1) {
		piece.list += 8 * first;
		piece.entries = (uint32_t)count;
		return piece;
	}
	top = piece.levels - 1;
	piece.offset += (int64_t)first * piece.stride[top];
	piece.count[top] = (uint32_t)count;
	if (count == 1)
		piece.levels = top;
	return piece;
}

static bool append(struct parts *out, const struct piece *piece)
{
	if (out->count == MOST_PARTS)
		return false;
	out->piece[out->count++] = *piece;
	return true;
}

/* Append the bytes [from, to) of a piece. */
static bool cut(struct parts *out, struct piece piece, uint64_t from, uint64_t to)
{
	uint64_t bytes = piece_bytes(&piece), each, first, last, head, tail, whole;

	if (from == to)
		return true;
	if (!from && to == bytes)
		return append(out, &piece);
	if (piece.entries <= 1 && !piece.levels) {
		piece.offset += (int64_t)from;
		piece.block = (uint32_t)(to - from);
		return append(out, &piece);
	}
	each = bytes / (piece.entries > 1 ? piece.entries : piece.count[piece.levels - 1]);
	first = from / each;
	last = (to - 1) / each;
	head = from % each;
	tail = to - last * each;
	if (first == last)
		return cut(out, part(piece, first, 1), head, tail);
	if (head && !cut(out, part(piece, first++, 1), head, each))
		return false;
	whole = last - first + (tail == each);
	if (whole && !cut(out, part(piece, first, whole), 0, whole * each))
		return false;
	return tail == each || cut(out, part(piece, last, 1), 0, tail);
}

static bool split(struct pairs *out, const struct piece *there, unsigned int there_count,
		  const struct piece *here, unsigned int here_count, unsigned int depth)
{
	uint64_t there_from = 0, here_from = 0;

	if (depth == DEPTH)
		return false;
	while (there_count && here_count) {
		uint64_t there_left = piece_bytes(there) - there_from;
		uint64_t here_left = piece_bytes(here) - here_from;
		uint64_t bytes = there_left < here_left ? there_left : here_left;
		struct parts far = { .count = 0 }, near = { .count = 0 };

		if (!cut(&far, *there, there_from, there_from + bytes) ||
		    !cut(&near, *here, here_from, here_from + bytes))
			return false;
		if (far.count == 1 && near.count == 1) {
			if (out->count == MOST_PIECES)
				return false;
			out->pair[out->count++] = (struct pair){ far.piece[0], near.piece[0] };
		} else if (!split(out, far.piece, far.count, near.piece, near.count, depth + 1)) {
			return false;
		}
		there_from += bytes;
		here_from += bytes;
		if (bytes == there_left) {
			there++, there_count--;
			there_from = 0;
		}
		if (bytes == here_left) {
			here++, here_count--;
			here_from = 0;
		}
	}
	return true;
}

bool pieces_pair(struct pairs *out, const struct piece *there, unsigned int there_count,
		 const struct piece *here, unsigned int here_count)
{
	out->count = 0;
	return split(out, there, there_count, here, here_count, 0);
}
