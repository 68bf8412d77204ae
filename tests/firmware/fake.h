/* The parts of the register fake: fake.c, and fake_fast.c for what goes on beside the control
 * program. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef FAKE_H
#define FAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "dibber_interface.h"

enum fake_fifo { FIFO_JOB_DONE, FIFO_REFUSAL, FIFO_ARRIVAL, FIFO_ATOMIC, FIFO_SCOUT, FIFOS };

struct fake_log {
	uint32_t offset; /* of the register that started it */
	uint32_t value;	 /* written there */
	uint32_t cycles;
	uint32_t words[12]; /* of the registers before it */
};

extern uint32_t fake_registers[DIBBER_MCP_SIZE / 4];
extern uint8_t fake_slots[DIBBER_SLOT_SETS * DIBBER_SLOTS * DIBBER_SLOT_BYTES];

#define REG(name) fake_registers[DIBBER_MCP_##name / 4]

/* A register with a bit for each flow: the word of a flow, the flow's bit, and whether any is set.
 */
#define FLOW_WORDS	      ((DIBBER_LANES * DIBBER_NODES + 31) / 32)
#define FLOW_WORD(name, flow) (&REG(name))[(flow) / 32]
#define FLOW_BIT(flow)	      (1u << (flow) % 32)

static inline bool fake_any(const uint32_t *words)
{
	uint32_t any = 0;

	for (uint32_t i = 0; i < FLOW_WORDS; i++)
		any |= words[i];
	return any;
}

/* In the log, beside the value of JOB_START or EXPRESS_START: the fast path started it. */
#define FAKE_FAST (1u << 31)

void fake_push(uint32_t which, uint32_t a, uint32_t b, uint32_t c, uint32_t d);
bool fake_waiting(uint32_t which);
uint64_t fake_now(void);
void fake_log_write(uint32_t offset, uint32_t value, const uint32_t *words, uint32_t count);

/* fake_fast.c */

void fast_reset(void);
void fast_work(void); /* what goes on between two accesses */
uint32_t fast_pending(void);
uint32_t fast_digest(void); /* what EVENTS shows of an inline put, or 0 */
uint32_t fast_room(void);
uint32_t fast_busy(void);
uint32_t fast_active(uint32_t first); /* of 32 flows from `first` on */
bool fast_is_armed(uint32_t flow);
bool fast_waits(uint32_t flow); /* something that was asked there for its answer */
bool fast_job_done(uint32_t tag, uint32_t status, uint32_t psn); /* false: the program's */
bool fast_answered(uint32_t arrival, uint32_t value);		 /* the same */
uint32_t fast_claimed(uint32_t offset);
bool fast_request(uint32_t arrival, uint32_t message); /* false: the program's */
bool fast_atomic(uint32_t arrival, uint32_t message);  /* the same */
bool fast_reply(uint32_t done, uint32_t word);	       /* the same, ATOMIC_DONE and ATOMIC_WORD */
void fast_write(uint32_t offset, uint32_t value);

#endif
