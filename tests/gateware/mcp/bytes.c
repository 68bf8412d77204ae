/* A control program for tests: what STATE is after a store of a word, and after stores of parts of
 * it; words at RESULTS, then the identity. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "dibber_interface.h"

#define REGISTER(type, name, at) \
	(*(volatile type *)(DIBBER_MCP_REGISTER_BASE + DIBBER_MCP_##name + (at)))
#define RESULTS	 ((volatile uint32_t *)0x8000)
#define IDENTITY 0x600d600du

__attribute__((naked, section(".start"))) void _start(void)
{
	__asm__("li sp, 0xf000\n\tj program");
}

__attribute__((used)) static void program(void)
{
	REGISTER(uint32_t, STATE, 0) = 0x12345678;
	RESULTS[0] = REGISTER(uint32_t, STATE, 0);
	for (uint32_t n = 0; n < 4; n++)
		REGISTER(uint8_t, STATE, n) = 0xff;
	RESULTS[1] = REGISTER(uint32_t, STATE, 0);
	REGISTER(uint16_t, STATE, 0) = 0xffff;
	REGISTER(uint16_t, STATE, 2) = 0xffff;
	RESULTS[2] = REGISTER(uint32_t, STATE, 0);
	REGISTER(uint32_t, STATE, 0) = 0x87654321;
	RESULTS[3] = REGISTER(uint32_t, STATE, 0);
	REGISTER(uint32_t, IDENTITY, 0) = IDENTITY;
	for (;;)
		;
}
