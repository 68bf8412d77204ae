/* Sets of flows and of nodes: a bit for each, in as many words as a register of flows has. With 16
 * nodes, as cards have without another choice, a set is one word, and the loops below are no loops.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_SETS_H
#define MCP_SETS_H

#include "runtime.h"

#define SET_WORDS ((DIBBER_LANES * DIBBER_NODES + 31) / 32)

_Static_assert(SET_WORDS <= 4, "set_take() looks at four words");

struct set {
	uint32_t word[SET_WORDS];
};

static ALWAYS uint32_t set_word(uint32_t number)
{
	return SET_WORDS == 1 ? 0 : number / 32;
}

static ALWAYS uint32_t set_bit(uint32_t number)
{
	return 1u << number % 32;
}

/* Not 0 if the number is in the set. */
static ALWAYS uint32_t set_has(const struct set *set, uint32_t number)
{
	return set->word[set_word(number)] & set_bit(number);
}

static ALWAYS void set_add(struct set *set, uint32_t number)
{
	set->word[set_word(number)] |= set_bit(number);
}

static ALWAYS void set_remove(struct set *set, uint32_t number)
{
	set->word[set_word(number)] &= ~set_bit(number);
}

/* Not 0 if the set has any number. */
static ALWAYS uint32_t set_any(const struct set *set)
{
	uint32_t any = set->word[0];

	for (uint32_t i = 1; i < SET_WORDS; i++)
		any |= set->word[i];
	return any;
}

/* Take the lowest number out of a word of a set. False: the word is 0, or the set does not have
 * it. */
static ALWAYS bool set_take_of(struct set *set, uint32_t index, uint32_t *number)
{
	uint32_t *word = &set->word[index % SET_WORDS];

	if (index >= SET_WORDS || !*word)
		return false;
	*number = 32 * index + lowest_bit(*word);
	*word &= *word - 1;
	return true;
}

/* Take the lowest number out of a set. False: the set is empty. Without a loop, because bounds.py
 * counts the passes of the caller's loop. */
static ALWAYS bool set_take(struct set *set, uint32_t *number)
{
	return set_take_of(set, 0, number) || set_take_of(set, 1, number) ||
	       set_take_of(set, 2, number) || set_take_of(set, 3, number);
}

/* Round robin: the first number at or after `turn` in a set that is not empty. `turn` is a number
 * that the set may have. */
static ALWAYS uint32_t set_next(const struct set *set, uint32_t turn)
{
	if (SET_WORDS == 1)
		return next_turn(set->word[0], turn);
	for (uint32_t i = 0; i < SET_WORDS; i++) {
		uint32_t at = (turn / 32 + i) % SET_WORDS;
		uint32_t later = i ? set->word[at] : set->word[at] >> turn % 32 << turn % 32;

		if (later)
			return 32 * at + lowest_bit(later);
	}
	return 32 * (turn / 32) + lowest_bit(set->word[turn / 32]);
}

/* By words: for a set of several, the compiler would call memcpy() or memset() for a struct. */
static ALWAYS void set_copy(struct set *set, const struct set *from)
{
	for (uint32_t i = 0; i < SET_WORDS; i++)
		set->word[i] = from->word[i];
}

static ALWAYS void set_clear(struct set *set)
{
	for (uint32_t i = 0; i < SET_WORDS; i++)
		set->word[i] = 0;
}

/* Make a set that of the numbers below `count`. */
static ALWAYS void set_fill(struct set *set, uint32_t count)
{
	for (uint32_t i = 0; i < SET_WORDS; i++)
		set->word[i] = count >= 32 * (i + 1) ? ~0u
			       : count > 32 * i	     ? (1u << count % 32) - 1
						     : 0;
}

/* The first `count` numbers of a set are taken out. */
static ALWAYS void set_cut(struct set *set, uint32_t count)
{
	for (uint32_t i = 0; i < SET_WORDS; i++)
		if (count >= 32 * (i + 1))
			set->word[i] = 0;
		else if (count > 32 * i)
			set->word[i] = set->word[i] >> count % 32 << count % 32;
}

/* Read a register of flows into a set; and write one, which clears its numbers there. */
#define SET_READ(name, set)                                     \
	do {                                                    \
		for (uint32_t i_ = 0; i_ < SET_WORDS; i_++)     \
			(set).word[i_] = REG_READ_AT(name, i_); \
	} while (0)
#define SET_WRITE(name, set)                                    \
	do {                                                    \
		for (uint32_t i_ = 0; i_ < SET_WORDS; i_++)     \
			REG_WRITE_AT(name, i_, (set).word[i_]); \
	} while (0)

#endif
