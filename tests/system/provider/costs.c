/* Calls of each kind on rank 0, for mpi_costs.py to count the instructions of. Rank 1 is its
 * partner.
 *
 * Callgrind collects only inside the functions `call_…`. After the calls of a kind it writes what
 * it has collected, with the name of the kind. The rounds are few, so no message of credit comes
 * between.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <valgrind/callgrind.h>

#define ROUNDS	  6
#define QUESTIONS 200	/* for the time: the provider lets some microseconds pass */
#define COPIED	  1024	/* bytes of a message that is copied */
#define OFFERED	  16384 /* bytes of a message that is offered */
#define BLOCKS	  512	/* of a vector of doubles */
#define CALL	  static __attribute__((noinline)) void

static int rank;
static char bytes[OFFERED], landed[OFFERED];
static double matrix[4 * BLOCKS];
static MPI_Request request;
static MPI_Datatype vector;
static MPI_Win window;
static long value, result;

static void begin(void)
{
	CALLGRIND_TOGGLE_COLLECT;
}

static void end(void)
{
	CALLGRIND_TOGGLE_COLLECT;
}

/* What was sent arrives, and the engine is not told. */
static void let_time_pass(void)
{
	for (int i = 0; i < QUESTIONS; i++)
		MPI_Wtime();
}

#define MEASURED(call)   \
	do {             \
		begin(); \
		call;    \
		end();   \
	} while (0)

static void report(const char *kind)
{
	if (rank == 0)
		CALLGRIND_DUMP_STATS_AT(kind);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		CALLGRIND_ZERO_STATS;
}

CALL call_send(int length)
{
	MPI_Send(bytes, length, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
}

CALL call_isend(int length)
{
	MPI_Isend(bytes, length, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
}

CALL call_receive(int length)
{
	MPI_Irecv(landed, length, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
}

CALL call_look(void)
{
	int done;

	MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

CALL call_wait(void)
{
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

CALL call_put(void)
{
	MPI_Put(bytes, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, window);
}

CALL call_flush(void)
{
	MPI_Win_flush(1, window);
}

CALL call_atomic(void)
{
	MPI_Fetch_and_op(&value, &result, MPI_LONG, 1, 0, MPI_SUM, window);
}

CALL call_move(void)
{
	MPI_Put(matrix, 2 * BLOCKS, MPI_DOUBLE, 1, 0, 1, vector, window);
}

CALL call_typed_isend(void)
{
	MPI_Isend(matrix, 1, vector, 1, 0, MPI_COMM_WORLD, &request);
}

CALL call_typed_irecv(void)
{
	MPI_Irecv(matrix, 1, vector, 1, 1, MPI_COMM_WORLD, &request);
}

/* Both sides of one message to rank 1. */
static void take(int length)
{
	MPI_Recv(landed, length, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void sends(int length, const char *kind)
{
	for (int i = 0; i < ROUNDS; i++) {
		if (rank == 0)
			MEASURED(call_send(length));
		else
			take(length);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	report(kind);
}

/* The first offer of memory registers it. */
static void offers(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		if (rank == 0) {
			if (i == 0)
				call_isend(OFFERED);
			else
				MEASURED(call_isend(OFFERED));
			MPI_Wait(&request, MPI_STATUS_IGNORE);
		} else {
			take(OFFERED);
		}
		MPI_Barrier(MPI_COMM_WORLD);
	}
	report("send-offered");
}

static void looks(void)
{
	if (rank == 0) {
		call_receive(8);
		for (int i = 0; i < ROUNDS; i++)
			MEASURED(call_look());
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank)
		MPI_Send(bytes, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
	else
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	report("look");
}

static void receives(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		if (rank == 0)
			MEASURED(call_receive(8));
		MPI_Barrier(MPI_COMM_WORLD);
		if (rank)
			MPI_Send(bytes, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
		else
			MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	report("receive");
}

static void entries(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		if (rank == 0)
			call_receive(8);
		MPI_Barrier(MPI_COMM_WORLD);
		if (rank) {
			MPI_Send(bytes, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
		} else {
			let_time_pass();
			MEASURED(call_wait());
		}
		MPI_Barrier(MPI_COMM_WORLD);
	}
	report("entry");
}

/* Waits that look many times before the message comes. */
static void idle_waits(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		if (rank == 0)
			call_receive(8);
		MPI_Barrier(MPI_COMM_WORLD);
		if (rank) {
			let_time_pass();
			MPI_Send(bytes, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
		} else {
			MEASURED(call_wait());
		}
		MPI_Barrier(MPI_COMM_WORLD);
	}
	report("idle");
}

static void transfers(void)
{
	for (int i = 0; i < ROUNDS && rank == 0; i++) {
		MEASURED(call_put());
		let_time_pass();
		MPI_Win_flush(1, window);
	}
	report("transfer");
	for (int i = 0; i < ROUNDS && rank == 0; i++) {
		call_put();
		let_time_pass();
		MEASURED(call_flush());
	}
	report("command");
	for (int i = 0; i < ROUNDS && rank == 0; i++) {
		MEASURED(call_atomic());
		MPI_Win_flush(1, window);
	}
	report("atomic");
}

static void moves(void)
{
	for (int i = 0; i < ROUNDS && rank == 0; i++) {
		if (i == 0)
			call_move();
		else
			MEASURED(call_move());
		MPI_Win_flush(1, window);
	}
	report("move");
}

static void typed(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		if (rank == 0) {
			if (i == 0)
				call_typed_isend();
			else
				MEASURED(call_typed_isend());
			MPI_Wait(&request, MPI_STATUS_IGNORE);
		} else {
			MPI_Recv(matrix, 1, vector, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		}
		MPI_Barrier(MPI_COMM_WORLD);
	}
	report("typed-send");
	for (int i = 0; i < ROUNDS; i++) {
		if (rank == 0) {
			if (i == 0)
				call_typed_irecv();
			else
				MEASURED(call_typed_irecv());
		}
		MPI_Barrier(MPI_COMM_WORLD);
		if (rank) {
			MPI_Send(matrix, 1, vector, 0, 1, MPI_COMM_WORLD);
		} else {
			let_time_pass();
			if (i == 0)
				call_wait();
			else
				MEASURED(call_wait());
		}
		MPI_Barrier(MPI_COMM_WORLD);
	}
	report("typed-receive");
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Type_vector(BLOCKS, 2, 4, MPI_DOUBLE, &vector);
	MPI_Type_commit(&vector);
	MPI_Win_create(matrix, sizeof(matrix), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	MPI_Win_lock_all(0, window);
	/* Peers greet each other with the first message, and keys are asked for once. */
	sends(8, "warm");
	if (rank == 0) {
		call_put();
		MPI_Win_flush(1, window);
		CALLGRIND_START_INSTRUMENTATION;
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (argc > 1 && !strcmp(argv[1], "strided")) {
		moves();
		typed();
	} else {
		sends(8, "send");
		sends(COPIED, "send-copied");
		offers();
		receives();
		looks();
		entries();
		idle_waits();
		transfers();
	}
	MPI_Win_unlock_all(window);
	MPI_Win_free(&window);
	MPI_Type_free(&vector);
	MPI_Finalize();
	return 0;
}
