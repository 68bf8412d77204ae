/* This file is part of Dibber. */
/* SPDX-License-Identifier: BSD-2-Clause */

/* The event loop: read EVENTS, run the handler of each bit. No interrupts, no waiting. */

#include "identity.h"
#include "mcp.h"
#include "registers.h"

struct dibber_mcp_shared mcp_shared __attribute__((section(".shared")));

const uint8_t bit_index[32] = {
	 0,  1, 28,  2, 29, 14, 24,  3, 30, 22, 20, 15, 25, 17,  4,  8,
	31, 27, 13, 23, 21, 19, 16,  7, 26, 12, 18,  6, 11,  5, 10,  9,
};

_Static_assert(DIBBER_MCP_STATE_TRAP < sizeof(mcp_shared.handler) / sizeof(mcp_shared.handler[0]),
	       "a handler has its place by its state");

/*
 * Run a handler and account for it. STATE says what it is for as long as it lasts. A handler that
 * found nothing to do (a command that cannot go on yet) is not counted.
 */
__attribute__((hot)) static APART void run(enum dibber_mcp_state state, uint32_t (*handler)(void))
{
	struct dibber_mcp_handler *account = &mcp_shared.handler[state];
	uint32_t cycles, instructions;

	trace_state(state);
	cycles = cpu_cycles();
	instructions = cpu_instructions();
	if (handler()) {
		instructions = cpu_instructions() - instructions;
		cycles = cpu_cycles() - cycles;
		account->calls++;
		account->cycles += cycles;
		account->instructions += instructions;
		if (cycles > account->longest)
			account->longest = cycles;
	}
	trace_state(DIBBER_MCP_STATE_IDLE);
}

static APART uint32_t handle_commands(void)
{
	return command_handler() + (admin_is_closing() ? admin_close_step() : 0);
}

/* Called once as the compiler sees it, which would count it among the rare. */
__attribute__((hot)) APART void mcp_step(void)
{
	uint32_t events = REG_READ(EVENTS);

	/* A handler starts only when all that it may post has a place (queue.c). */
	if ((events & EVENT(ARRIVAL)) && queue_flush())
		run(DIBBER_MCP_STATE_ARRIVAL, arrival_handler);
	if (events & EVENT(JOB_DONE))
		run(DIBBER_MCP_STATE_SEND_DONE, transfer_done_handler);
	if (((events & (EVENT(ACK) | EVENT(REFUSAL))) || flow_has_work()) && queue_flush())
		run(DIBBER_MCP_STATE_ACK, flow_ack_handler);
	if (events & EVENT(TIMER))
		run(DIBBER_MCP_STATE_TIMER, flow_timer_handler);
	if (((events & EVENT(COMMAND)) || admin_is_closing()) && queue_flush())
		run(DIBBER_MCP_STATE_COMMAND, handle_commands);
	queue_flush();
}

RARE void mcp_boot(void)
{
	trace_state(DIBBER_MCP_STATE_BOOT);
	flow_boot();
	command_boot();
	admin_boot();
	mcp_shared.version = DIBBER_INTERFACE_VERSION;
	mcp_shared.hash = DIBBER_INTERFACE_HASH;
	trace(TRACE_BOOT, MCP_IDENTITY, cpu_cycles());
	trace_state(DIBBER_MCP_STATE_IDLE);
	/* Last: whoever sees it may send commands. */
	REG_WRITE(IDENTITY, MCP_IDENTITY);
}

#ifndef MCP_NATIVE
void main(void)
{
	mcp_boot();
	for (;;)
		mcp_step();
}
#endif
