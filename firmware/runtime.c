/* The ground floor of the control program: shared memory, bit numbers, the watchdog. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "runtime.h"

struct dibber_mcp_shared mcp_shared __attribute__((section(".shared")));

const uint8_t bit_index[32] = {
	0,  1,	28, 2,	29, 14, 24, 3, 30, 22, 20, 15, 25, 17, 4,  8,
	31, 27, 13, 23, 21, 19, 16, 7, 26, 12, 18, 6,  11, 5,  10, 9,
};

uint32_t mcp_tick;

RARE void mcp_alive(void)
{
	REG_WRITE(WATCHDOG, MCP_WATCHDOG);
}
