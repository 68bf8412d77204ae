/* A control program for tests. It publishes an identity, then answers every command of endpoint 0
 * with an entry of four words (the command's first word, the card's clock, mcycle, minstret), the
 * first one of a queue at the address in the command's words 2 and 3, and with the interrupt of
 * vector 1. PEEK answers with the word at the address in word 4 instead of the first one; POKE
 * stores word 5 there.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "dibber_interface.h"

#define REGISTER(name) (*(volatile uint32_t *)(DIBBER_MCP_REGISTER_BASE + DIBBER_MCP_##name))
#define CSR(name)                                                  \
	({                                                         \
		uint32_t value;                                    \
		__asm__ volatile("csrr %0, " #name : "=r"(value)); \
		value;                                             \
	})

#define IDENTITY 0x600d600du
#define GET_LOST 0x0bad0badu /* a command that makes the program run where nothing is */
#define PEEK	 0x4b454550u
#define POKE	 0x454b4f50u
#define NOWHERE	 0x00100000u
#define CAUSE	 0x00008000u /* where the trap handler leaves mcause and mepc */

__attribute__((naked, section(".start"))) void _start(void)
{
	__asm__("li sp, 0xf000\n\tj program");
}

__attribute__((interrupt)) static void trap(void)
{
	volatile uint32_t *cause = (volatile uint32_t *)CAUSE;

	cause[0] = CSR(mcause);
	cause[1] = CSR(mepc);
	REGISTER(STATE) = DIBBER_MCP_STATE_TRAP;
	for (;;)
		;
}

static void answer(uint32_t number)
{
	const volatile uint32_t *command =
		(const volatile uint32_t *)(DIBBER_MCP_SLOT_BASE +
					    number % DIBBER_SLOTS * DIBBER_SLOT_BYTES);
	volatile uint32_t *place = (volatile uint32_t *)command[4];

	if (command[0] == GET_LOST)
		((void (*)(void))NOWHERE)();
	if (command[0] == POKE)
		*place = command[5];
	REGISTER(QUEUE_BASE_LOW) = command[2];
	REGISTER(QUEUE_BASE_HIGH) = command[3];
	REGISTER(QUEUE_OPEN) =
		5u << DIBBER_MCP_QUEUE_OPEN_SIZE_SHIFT | 1u << DIBBER_MCP_QUEUE_OPEN_VECTOR_SHIFT;
	REGISTER(POST_COOKIE) = command[0] == PEEK ? *place : command[0];
	REGISTER(POST_LENGTH) = REGISTER(CYCLES_LOW);
	REGISTER(POST_WHAT) = CSR(mcycle);
	REGISTER(POST_KEY) = CSR(minstret);
	REGISTER(POST_START) = number % DIBBER_SLOTS << DIBBER_MCP_POST_START_SLOT_SHIFT |
			       1u << DIBBER_MCP_POST_START_FREE_SHIFT |
			       1u << DIBBER_MCP_POST_START_INTERRUPT_SHIFT;
}

__attribute__((used)) static void program(void)
{
	uint32_t taken = 0;

	__asm__ volatile("csrw mtvec, %0" ::"r"(trap));
	REGISTER(STATE) = DIBBER_MCP_STATE_IDLE;
	REGISTER(IDENTITY) = IDENTITY;
	for (;;) {
		if (!(REGISTER(EVENTS) & DIBBER_MCP_EVENTS_COMMAND_MASK))
			continue;
		REGISTER(COMMAND_TAKE) = 0;
		answer(taken++);
	}
}
