/* The event loop's two entries. The native build of the tests calls them in place of main(). */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_MAIN_H
#define MCP_MAIN_H

void mcp_boot(void);
void mcp_step(void); /* one turn of the event loop; native builds only */

#endif
