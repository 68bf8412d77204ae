/* The opcode PUT, and the check of a walk. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_PUT_H
#define MCP_PUT_H

#include "runtime.h"

bool put_command(uint32_t tag, uint32_t first_word);

/* Each side has half of a command's `levels`: values up to this one are known. */
#define MCP_LEVELS_MAX (DIBBER_LIST + DIBBER_LIST_LEVELS)
_Static_assert(DIBBER_LIST == DIBBER_LEVELS + 1 && !(DIBBER_LIST & DIBBER_LEVELS),
	       "an index list is a bit above the strides");

/* Whether block times counts of a walk is the length. `walk` is its offset in the slot. With an
 * index list: whether the list can have entries. */
enum dibber_status put_check_walk(uint32_t tag, uint32_t walk, uint32_t levels, uint32_t length);

#endif
