/* The fuzzer of the control program: engines, wire and what is checked (firmware_engines.c) for
 * what inputs say (firmware.c). */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_FUZZ_FIRMWARE_H
#define DIBBER_FUZZ_FIRMWARE_H

#include <stdbool.h>
#include <stdint.h>

#include "fake.h"
#include "command.h"
#include "flows/bulk.h"
#include "main.h"
#include "requests.h"
#include "scout.h"
#include "transfer.h"

/* fake.c and fake_fast.c: what tests do to the card. */
extern struct fake_log fake_log[];
extern uint32_t fake_logged, fake_accesses, fake_fast, fake_atomics;
uint32_t fake_atomic_done(uint32_t status, uint32_t low, uint32_t high);
extern uint32_t fake_cq_consumer[DIBBER_ENDPOINTS], fake_eq_consumer[DIBBER_ENDPOINTS];

void fake_reset(void);
void fake_ack(uint32_t flow, uint32_t psn);
void fake_job_done(uint32_t tag, uint32_t status, uint32_t psn, uint32_t checksum);
void fake_nak(uint32_t flow);
void fake_left(uint32_t flow, uint32_t psn);
void fake_link(uint32_t up);
void fake_advance(uint64_t by);

/* Of each command; its slot always says it, so that a completion tells whose it is. */
static inline uint32_t cookie_of(uint32_t tag)
{
	return 0x5a5a0000u | tag;
}

extern bool inbox_used[DIBBER_SLOTS];
extern bool posts_flow; /* posts leave at once, not when an input says so */
extern uint32_t refusals_waiting;
extern uint32_t completions;
extern uint32_t scout_number; /* of the last one that went out */

/* Requests that went to other nodes; the index is the command's tag. */
extern struct request {
	bool sent;
	uint8_t node;
	uint32_t word;
} requests[MCP_COMMANDS];

void engines_reset(void);
void engines_observe(void); /* take over what the program has told them */
void engines_turn(void);    /* a turn of its loop, which is short */
bool engines_are_idle(void);
void posts_leave(void);

void engines_job(uint32_t status,
		 uint32_t packets);		 /* the oldest ends; packets of one that fails */
void engines_express(void);			 /* the oldest packet is sent */
bool engines_ack(uint32_t flow, uint32_t count); /* of what was sent; false: of nothing */
bool is_all_completed(void);

#endif
