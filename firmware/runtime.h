/* The ground floor of the control program: its sizes and limits, bit masks, the memory that it
 * shares with the host, the clock's tick and the watchdog. Every other module may include this
 * one; it includes only the access to registers.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_RUNTIME_H
#define MCP_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>

#include "dibber_interface.h"
#include "registers.h"

#define MCP_BATCH    8		     /* items that one call of a handler does at most */
#define MCP_PUTS     16		     /* inline puts that one call does at most: each is short */
#define MCP_POSTS    (2 * MCP_BATCH) /* queue entries that one call of a handler makes at most */
#define MCP_TICKS_HZ 20000u	     /* ticks of the flows' timer in a second: one each 50 us */
/* Cycles: 1 ms at 125 MHz. bounds.py shows that two calls of mcp_alive() are closer together. */
#define MCP_WATCHDOG 125000u

/* A tag is set * SLOTS + slot: commands of the endpoints first, then the OUTBOX, then the INBOX. */
#define MCP_COMMANDS  (DIBBER_ENDPOINTS * DIBBER_SLOTS)
#define MCP_OUTBOX    (DIBBER_OUTBOX * DIBBER_SLOTS)
#define MCP_INBOX     (DIBBER_INBOX * DIBBER_SLOTS)
#define MCP_TRANSFERS (DIBBER_SLOT_SETS * DIBBER_SLOTS)
#define MCP_NO_TAG    0xffffu

_Static_assert(MCP_TRANSFERS <= 1024, "a job's tag has 10 bits");
_Static_assert(DIBBER_OUTBOX == DIBBER_ENDPOINTS && DIBBER_INBOX == DIBBER_OUTBOX + 1,
	       "tags of commands come first");

/* Masks ---------------------------------------------------------------------------------------- */

extern const uint8_t bit_index[32];

/* Number of the lowest bit of a mask that is not 0. The isolated bit times a de Bruijn sequence
 * gives the index of the table (Leiserson, Prokop, Randall, MIT 1998). */
static inline uint32_t lowest_bit(uint32_t mask)
{
	return bit_index[(mask & -mask) * 0x077cb531u >> 27];
}

/* Round robin: the first bit of a mask (not 0) at or after `turn`, which is below 32. */
static inline uint32_t next_turn(uint32_t mask, uint32_t turn)
{
	uint32_t later = mask >> turn << turn;

	return lowest_bit(later ? later : mask);
}

/* Shared memory and time ----------------------------------------------------------------------- */

/* The host reads this structure. It lies SHARED_FROM_END bytes before the end of the SRAM. */
extern struct dibber_mcp_shared mcp_shared;

extern uint32_t mcp_tick; /* cycles of the card's clock in one tick */

/*
 * Tell the watchdog that a part of a long turn is done. Call this only where a counter limits how
 * often, never once for each element of a list: the watchdog must find a list that has become a
 * ring.
 */
void mcp_alive(void);

#endif
