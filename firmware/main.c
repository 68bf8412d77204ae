/* The event loop: wait for EVENTS and run the handler of each bit. No interrupts. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "main.h"

#include "admin.h"
#include "arrival.h"
#include "atomic.h"
#include "closing.h"
#include "command.h"
#include "flows/bulk.h"
#include "flows/express.h"
#include "flows/flow.h"
#include "identity.h"
#include "operations.h"
#include "queue.h"
#include "receive.h"
#include "replay.h"
#include "restart.h"
#include "routes.h"
#include "scout.h"
#include "send.h"
#include "trace.h"

_Static_assert(DIBBER_MCP_STATE_TRAP < sizeof(mcp_shared.handler) / sizeof(mcp_shared.handler[0]),
	       "a handler has its place by its state");

/*
 * Run a handler and count its call. STATE shows the handler until the next one runs, or until the
 * caller sets IDLE. A handler that found nothing to do, such as a command that cannot go on yet,
 * is not counted.
 */
static HOT void account(enum dibber_mcp_state state, uint32_t cycles_before,
			uint32_t instructions_before)
{
	struct dibber_mcp_handler *handler = &mcp_shared.handler[state];
	uint32_t instructions = cpu_instructions() - instructions_before;
	uint32_t cycles = cpu_cycles() - cycles_before;

	handler->calls++;
	handler->cycles += cycles;
	handler->instructions += instructions;
	if (cycles > handler->longest)
		handler->longest = cycles;
}

static ALWAYS void run(enum dibber_mcp_state state, uint32_t (*handler)(void))
{
	uint32_t cycles, instructions;

	trace_state(state);
	cycles = cpu_cycles();
	instructions = cpu_instructions();
	if (handler())
		account(state, cycles, instructions);
}

static ALWAYS void run_alone(enum dibber_mcp_state state, uint32_t (*handler)(void))
{
	run(state, handler);
	trace_state(DIBBER_MCP_STATE_IDLE);
}

/* The same for the inline put that EVENTS shows. */
static ALWAYS void run_puts(uint32_t events)
{
	uint32_t cycles, instructions;

	trace_state(DIBBER_MCP_STATE_COMMAND);
	cycles = cpu_cycles();
	instructions = cpu_instructions();
	if (express_puts(events))
		account(DIBBER_MCP_STATE_COMMAND, cycles, instructions);
	trace_state(DIBBER_MCP_STATE_IDLE);
}

/* The event bits that `step` does not look at itself. Above the event bits EVENTS shows an
 * inline put. */
#define OTHERS                                          \
	(((1u << DIBBER_MCP_EVENTS_LENGTH_SHIFT) - 1) & \
	 ~(EVENT(COMMAND) | EVENT(ACK) | EVENT(REFUSAL)))

/* A handler that posts entries starts only when all that it may post has room (queue.c). */
static APART void step_others(uint32_t events)
{
	mcp_alive();
	if ((events & EVENT(ARRIVAL)) && queue_flush())
		run(DIBBER_MCP_STATE_ARRIVAL, arrival_handler);
	mcp_alive();
	if (events & EVENT(JOB_DONE))
		run(DIBBER_MCP_STATE_SEND_DONE, bulk_job_handler);
	if (events & EVENTS_REPLAY)
		run(DIBBER_MCP_STATE_ACK, replay_handler);
	if (events & EVENT(ATOMIC))
		run(DIBBER_MCP_STATE_ARRIVAL, atomic_handler);
	if ((events & EVENT(SCOUT)) && queue_flush())
		run(DIBBER_MCP_STATE_SCOUT, scout_handler);
	if ((events & EVENT(TIMER)) && queue_flush())
		run(DIBBER_MCP_STATE_TIMER, replay_timer_handler);
	trace_state(DIBBER_MCP_STATE_IDLE);
}

/* Work that has no EVENTS bit. */
static RARE void step_waiting(void)
{
	mcp_alive();
	if (message_work)
		run(DIBBER_MCP_STATE_ARRIVAL, message_handler);
	mcp_alive();
	if (request_turn_work)
		run(DIBBER_MCP_STATE_COMMAND, receive_handler);
	if (barrier_work && queue_flush())
		run(DIBBER_MCP_STATE_COMMAND, barrier_handler);
	mcp_alive();
	if (set_any(&flow_restart) && queue_flush())
		run(DIBBER_MCP_STATE_ACK, restart_step);
	mcp_alive();
	if (set_any(&flow_lost) && queue_flush())
		run(DIBBER_MCP_STATE_TIMER, send_lose_step);
	mcp_alive();
	if (scout_waiting && queue_flush())
		run(DIBBER_MCP_STATE_SCOUT, scout_step);
	if (command_closing && queue_flush())
		run(DIBBER_MCP_STATE_COMMAND, closing_step);
	trace_state(DIBBER_MCP_STATE_IDLE);
	queue_flush();
}

/* Not 0 while there is work for step_waiting(). */
static ALWAYS uint32_t waiting(void)
{
	return operations_work() | set_any(&flow_restart) | set_any(&flow_lost) | scout_waiting |
	       command_closing | queue_waiting;
}

/* One turn of the loop. Returns whether there is work that has no EVENTS bit. Commands come
 * first, so that a small put waits for nothing else. */
static ALWAYS bool step(uint32_t events)
{
	if (express_is_put(events))
		run_puts(events);
	if ((events & EVENT(COMMAND)) && queue_flush())
		run_alone(DIBBER_MCP_STATE_COMMAND, command_handler);
	if (((events & (EVENT(ACK) | EVENT(REFUSAL))) || set_any(&flow_work)) && queue_flush())
		run_alone(DIBBER_MCP_STATE_ACK, flow_ack_handler);
	if (events & OTHERS)
		step_others(events);
	if (waiting())
		step_waiting();
	return set_any(&flow_work) | waiting();
}

RARE void mcp_boot(void)
{
	trace_state(DIBBER_MCP_STATE_BOOT);
	mcp_shared.version = DIBBER_INTERFACE_VERSION;
	mcp_shared.hash = DIBBER_INTERFACE_HASH;
	mcp_tick = REG_READ(CLOCK_HZ) / MCP_TICKS_HZ;
	REG_WRITE(WATCHDOG, MCP_WATCHDOG);
	queue_boot();
	command_boot();
	flow_boot();
	request_boot();
	send_boot();
	barrier_boot();
	routes_boot();
	scout_boot();
	admin_boot();
	trace(DIBBER_TRACE_BOOT, MCP_IDENTITY, cpu_cycles());
	trace_state(DIBBER_MCP_STATE_IDLE);
	/* Last, because a host that sees it may send commands. */
	REG_WRITE(IDENTITY, MCP_IDENTITY);
}

#ifdef MCP_NATIVE
void mcp_step(void)
{
	step(REG_READ(EVENTS));
}
#else
/* Not in `main`: the compiler takes `main`, and all that is called from it, for rarely used
 * code. */
__attribute__((noreturn)) static HOT void loop(void)
{
	bool work = true;

	for (;;) {
		uint32_t events;

		REG_WRITE(WATCHDOG, MCP_WATCHDOG);
		mcp_shared.turns++;
		/* Work that has no EVENTS bit must not wait for one. */
		if (__builtin_expect(work, false))
			events = REG_READ(EVENTS);
		else
			events = REG_READ(EVENTS_HELD);
		if (events || work)
			work = step(events);
	}
}

void main(void)
{
	mcp_boot();
	loop();
}
#endif
