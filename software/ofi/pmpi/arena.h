/* Memory of this process that others can read at any time: index lists and tables of pieces. It is
 * registered once, because a registration for each message would take longer than many messages.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef ARENA_H
#define ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../src/direct.h"

/* Returns false if it cannot be registered. `place` is filled in for the other processes. */
bool arena_open(struct dibber_fi_place *place);
void arena_close(void);

/* Bytes at a multiple of 8, or NULL if there is no room. */
void *arena_get(size_t length);
void arena_put(void *memory, size_t length);

uint64_t arena_offset(const void *memory);
void *arena_at(uint64_t offset);
uint32_t arena_key(void);

#endif
