/* Access to what lies outside the control program's SRAM: its registers, the command slots, and
 * the processor's own counters. A native build (MCP_NATIVE) reaches the register fake of the
 * tests instead.
 *
 * On VexRiscv an uncached load takes 4 cycles, 7 when the next instruction needs it; a store
 * takes 2.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_REGISTERS_H
#define MCP_REGISTERS_H

#include <stddef.h>
#include <stdint.h>

#include "dibber_interface.h"

/* What happens rarely stays out of line, so that what happens always saves few registers. */
#define RARE __attribute__((noinline, cold))
/* A handler stays a function: all in one they would save more registers and displace each other. */
#define APART __attribute__((noinline))
/* The same of what each inline put needs. It is called from main, and so the compiler would take it
 * for rare. */
#define HOT __attribute__((noinline, hot))
/* Twice in the image, so that either place has what it needs in registers. */
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

/* The host's processor has no counters of ours: the fake's clock stands for both. */
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

/* What the instruction cache holds is fetched again. */
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

/* The same for a register that there are several of. */
#define REG_READ_AT(name, index) \
	bus_read(DIBBER_MCP_REGISTER_BASE + DIBBER_MCP_##name + 4 * (index))
#define REG_WRITE_AT(name, index, value) \
	bus_write(DIBBER_MCP_REGISTER_BASE + DIBBER_MCP_##name + 4 * (index), value)

/* A field of a register's value, and a value shifted to where its field lies. */
#define FIELD_GET(name, field, value) \
	(((value) >> DIBBER_MCP_##name##_##field##_SHIFT) & DIBBER_MCP_##name##_##field##_MASK)
#define FIELD_PUT(name, field, value) ((uint32_t)(value) << DIBBER_MCP_##name##_##field##_SHIFT)

#define EVENT(name) (1u << DIBBER_MCP_EVENTS_##name##_SHIFT)

/*
 * A word of a command, where it lies in its slot. `tag` is endpoint * SLOTS + slot, `offset`
 * bytes. The owner may write the slot at any time: a word that was checked must not be read
 * again.
 */
static inline uint32_t slot_word(uint32_t tag, uint32_t offset)
{
	return bus_read(DIBBER_MCP_SLOT_BASE + tag * DIBBER_SLOT_BYTES + offset);
}

/* The same for a slot of the OUTBOX, which is this program's. */
static inline void slot_write(uint32_t tag, uint32_t offset, uint32_t value)
{
	bus_write(DIBBER_MCP_SLOT_BASE + tag * DIBBER_SLOT_BYTES + offset, value);
}

#define COMMAND_WORD(tag, member) slot_word(tag, offsetof(struct dibber_command, member))
#define ADMIN_WORD(tag, member)	  slot_word(tag, offsetof(struct dibber_admin_command, member))

#endif
