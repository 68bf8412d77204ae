/* Values that start.S and mcp.ld need from the interface. This is compiled to assembly, of
 * which the lines with -> are kept.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stddef.h>

#include "dibber_interface.h"
#include "identity.h"

#define DEFINE(name, value) __asm__ volatile("->" #name " %0" : : "i"(value))

void asm_offsets(void)
{
	DEFINE(SHARED_BYTES, sizeof(struct dibber_mcp_shared));
	DEFINE(SHARED_ADDRESS, MCP_SRAM_BYTES - DIBBER_SHARED_FROM_END);
	DEFINE(IMAGE_LIMIT, MCP_IMAGE_LIMIT);
	DEFINE(SHARED_IMAGE, offsetof(struct dibber_mcp_shared, image_bytes));
	DEFINE(TRAP_OFFSET, offsetof(struct dibber_mcp_shared, trap));
	DEFINE(TRAP_CAUSE, offsetof(struct dibber_mcp_trap, cause));
	DEFINE(TRAP_PC, offsetof(struct dibber_mcp_trap, pc));
	DEFINE(TRAP_VALUE, offsetof(struct dibber_mcp_trap, value));
	DEFINE(TRAP_STATUS, offsetof(struct dibber_mcp_trap, status));
	DEFINE(TRAP_X, offsetof(struct dibber_mcp_trap, x));
	DEFINE(TRAP_CYCLES, offsetof(struct dibber_mcp_trap, cycles));
	DEFINE(REGISTERS, DIBBER_MCP_REGISTER_BASE);
	DEFINE(REGISTER_CYCLES, DIBBER_MCP_CYCLES_LOW);
	DEFINE(REGISTER_STATE, DIBBER_MCP_STATE);
	DEFINE(REGISTER_WATCHDOG, DIBBER_MCP_WATCHDOG);
	DEFINE(STATE_TRAP, DIBBER_MCP_STATE_TRAP);
}
