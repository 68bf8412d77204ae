/* Access to what lies outside the control program's SRAM: its registers, the command slots,
 * and the processor's own counters. A native build (MCP_NATIVE) reaches the register fake of
 * the tests instead.
 *
 * On VexRiscv an uncached load takes 4 cycles, or 7 when the next instruction needs its
 * result. A store takes 2. A load of EVENTS_HELD takes up to EVENTS_HOLD cycles more.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_REGISTERS_H
#define MCP_REGISTERS_H

#include <stddef.h>
#include <stdint.h>

#include "dibber_interface.h"

/* Rarely used code is out of line, so that frequent code saves few registers. */
#define RARE __attribute__((noinline, cold))
/* A handler stays a function of its own. Inlined together, handlers would save more registers
 * and displace each other. */
#define APART __attribute__((noinline))
/* The same for what each inline put needs. main() calls it, so the compiler would take it for
 * rarely used. */
#define HOT __attribute__((noinline, hot))
/* Copied to each caller, so that each place has what it needs in registers. */
#define ALWAYS inline __attribute__((always_inline))

/* The compiler moves no memory access across this. */
#define IN_ORDER() __asm__ volatile("" : : : "memory")

#ifdef MCP_NATIVE

uint32_t fake_read(uint32_t address);
void fake_write(uint32_t address, uint32_t value);

static inline uint32_t bus_read(uint32_t address)
{
	return fake_read(address);
}

static inline void bus_write(uint32_t address, uint32_t value)
{
	fake_write(address, value);
}

/* The host's processor has no such counters: the fake's clock stands for both. */
static inline uint32_t cpu_cycles(void)
{
	return fake_read(DIBBER_MCP_REGISTER_BASE + DIBBER_MCP_CYCLES_LOW);
}

static inline uint32_t cpu_instructions(void)
{
	return cpu_cycles();
}

static inline void forget_code(void)
{
}

#else

static inline uint32_t bus_read(uint32_t address)
{
	return *(volatile uint32_t *)address;
}

static inline void bus_write(uint32_t address, uint32_t value)
{
	*(volatile uint32_t *)address = value;
}

static inline uint32_t cpu_cycles(void)
{
	uint32_t value;

	__asm__ volatile("csrr %0, mcycle" : "=r"(value));
	return value;
}

static inline uint32_t cpu_instructions(void)
{
	uint32_t value;

	__asm__ volatile("csrr %0, minstret" : "=r"(value));
	return value;
}

/* Fetch again what the instruction cache holds. */
static inline void forget_code(void)
{
	__asm__ volatile(".option push\n.option arch, +zifencei\nfence.i\n.option pop"
			 :
			 :
			 : "memory");
}

#endif

/* REG_READ(EVENTS), REG_WRITE(STATE, value): a register of bank `mcp` by its name. */
#define REG_READ(name)	       bus_read(DIBBER_MCP_REGISTER_BASE + DIBBER_MCP_##name)
#define REG_WRITE(name, value) bus_write(DIBBER_MCP_REGISTER_BASE + DIBBER_MCP_##name, value)

/* The same for one of several equal registers. */
#define REG_READ_AT(name, index) \
	bus_read(DIBBER_MCP_REGISTER_BASE + DIBBER_MCP_##name + 4 * (index))
#define REG_WRITE_AT(name, index, value) \
	bus_write(DIBBER_MCP_REGISTER_BASE + DIBBER_MCP_##name + 4 * (index), value)

/* A field of a register's value, and a value shifted to the place of its field. */
#define FIELD_GET(name, field, value) \
	(((value) >> DIBBER_MCP_##name##_##field##_SHIFT) & DIBBER_MCP_##name##_##field##_MASK)
#define FIELD_PUT(name, field, value) ((uint32_t)(value) << DIBBER_MCP_##name##_##field##_SHIFT)

#define EVENT(name) (1u << DIBBER_MCP_EVENTS_##name##_SHIFT)

/* The events of replay.c. A card for more than 16 nodes shows one bit for all three, a card with
 * more than 8 endpoints one bit for two. */
#if DIBBER_NODES > 16
#define EVENTS_REPLAY EVENT(REPLAY)
#elif DIBBER_ENDPOINTS > 8
#define EVENTS_REPLAY (EVENT(REPLAY) | EVENT(GIVEN))
#else
#define EVENTS_REPLAY (EVENT(NAK) | EVENT(LINK) | EVENT(GIVEN))
#endif

/* A word of a command in its slot. `tag` is endpoint * SLOTS + slot, `offset` is in bytes. The
 * owner may write the slot at any time, so a word that was checked must not be read again. */
static inline uint32_t slot_word(uint32_t tag, uint32_t offset)
{
	return bus_read(DIBBER_MCP_SLOT_BASE + tag * DIBBER_SLOT_BYTES + offset);
}

/* Write a word of an OUTBOX slot. Those slots belong to this program. */
static inline void slot_write(uint32_t tag, uint32_t offset, uint32_t value)
{
	bus_write(DIBBER_MCP_SLOT_BASE + tag * DIBBER_SLOT_BYTES + offset, value);
}

#define COMMAND_WORD(tag, member) slot_word(tag, offsetof(struct dibber_command, member))
#define ADMIN_WORD(tag, member)	  slot_word(tag, offsetof(struct dibber_admin_command, member))

#endif
