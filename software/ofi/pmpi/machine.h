/* What the parts of typed messages share. All calls are made between typed_enter() and
 * typed_leave(), or by the engine's progress with the same lock.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MACHINE_H
#define MACHINE_H

#include "typed.h"

/* What a rank of MPI_COMM_WORLD has told the others. */
struct rank {
	struct dibber_fi_place arena;
	int good; /* it takes part */
};

extern struct world {
	bool on;
	int rank, ranks;
	struct rank *list;
	uint8_t mark[MARK_BYTES];
	MPI_Comm comm; /* for notes */
} world;

/* Requests that the engine has, and what follows their end. */
enum hidden_kind {
	HIDDEN_RECEIVE,
	HIDDEN_OFFER,
	HIDDEN_NOTE,
	HIDDEN_BELL, /* the receive of notes */
};

bool hidden_add(MPI_Request request, enum hidden_kind kind, struct request *owner);
/* Take ends, and tell machine_ended() of each. Returns how many there were. */
int hidden_test(void);
/* How many there are of these kinds. */
unsigned int hidden_count(enum hidden_kind kind);
void hidden_free(void);

void machine_ended(enum hidden_kind kind, struct request *owner, const MPI_Status *status,
		   int error);

/* Let a request be looked at by progress. It takes a user of the request. */
void machine_watch(struct request *request);
/* Look at all of them. Returns how many went on. */
int machine_step(void);
bool machine_is_idle(void);

/* A receive has `length` bytes, which are in `offer` if it bounces, else in its buffer. */
void machine_received(struct request *request, uint64_t length);
void machine_finish(struct request *request, int error);

/* The receive of notes: post it, and withdraw it. Returns whether it is posted. */
bool bell_post(void);
void bell_withdraw(void);

#endif
