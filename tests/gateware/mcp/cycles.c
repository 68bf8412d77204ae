/* A control program for tests: how many cycles TIMES of an instruction take at their worst, each
 * followed by one that needs its result where it has one. Each row runs until the instruction cache
 * has it; words at RESULTS, then the identity.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "dibber_interface.h"

#define REGISTER(name) (*(volatile uint32_t *)(DIBBER_MCP_REGISTER_BASE + DIBBER_MCP_##name))
#define RESULTS	       ((volatile uint32_t *)0x8000)
#define IDENTITY       0x600d600du
#define LINES 0xa000u /* two lines of the data cache that displace each other, 4 KiB apart */

__attribute__((naked, section(".start"))) void _start(void)
{
	__asm__("li sp, 0xf000\n\tj program");
}

/* The worst of the runs behind the first one. `x` and `y` are for the body, `odd` is another one in
 * each run. */
#define ROW(n, x, y, body)                                                                    \
	do {                                                                                  \
		uint32_t worst = 0;                                                           \
		for (uint32_t run = 0; run < 5; run++) {                                      \
			uint32_t begin, end, a = (x), b = (y), odd = run & 1;                 \
			__asm__ volatile(                                                     \
				"csrr %0, mcycle\n.rept 32\n" body "\n.endr\ncsrr %1, mcycle" \
				: "=&r"(begin), "=&r"(end), "+&r"(a), "+&r"(b), "+&r"(odd)    \
				:                                                             \
				: "t0", "t1", "ra", "memory");                                \
			if (run && end - begin > worst)                                       \
				worst = end - begin;                                          \
		}                                                                             \
		RESULTS[n] = worst;                                                           \
	} while (0)

__attribute__((used)) static void program(void)
{
	/* 64 loads: either line takes the other one's place. */
	ROW(0, LINES, LINES + 4096, "lw t0, 0(%2)\nadd t1, t1, t0\nlw t0, 0(%3)\nadd t1, t1, t0");
	ROW(1, DIBBER_MCP_REGISTER_BASE + DIBBER_MCP_CYCLES_LOW, 0, "lw t0, 0(%2)\nadd t1, t1, t0");
	ROW(2, DIBBER_MCP_SLOT_BASE, 0, "lw t0, 0(%2)\nadd t1, t1, t0");
	ROW(3, LINES, 0, "sw zero, 0(%2)");
	ROW(4, DIBBER_MCP_REGISTER_BASE + DIBBER_MCP_POST_COOKIE, 0, "sw zero, 0(%2)");
	ROW(5, 0, 0, "beqz %4, 1f\nnop\n1:");
	/* A call and its return, which leads somewhere else each time. */
	ROW(6, 0, 0, "jal 2f\nj 3f\n2: ret\n3:");
	ROW(7, 0x7fffffff, 3, "divu %2, %2, %3");
	ROW(8, 0x7fffffff, 3, "mul %2, %2, %3");
	ROW(9, 0x7fffffff, 3, "sll %2, %2, %3\nadd %2, %2, %3");
	ROW(10, 0, 0, "csrr t0, mcycle\nadd t1, t1, t0");
	/* Stores in front of a load that misses. */
	ROW(11, LINES, LINES + 4096,
	    "sw zero, 0(%2)\nlw t0, 0(%3)\nadd t1, t1, t0\nlw t0, 0(%2)\nadd t1, t1, t0");
	REGISTER(IDENTITY) = IDENTITY;
	for (;;)
		;
}
