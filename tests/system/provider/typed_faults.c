/* Typed messages and alltoalls while a rank dies, or a cable is away.
 *
 *	typed_faults CASE MICROSECONDS [FILE]
 *
 * At this simulated time something happens: the last rank dies, or the caller pulls a cable.
 *
 *	receiver   the last rank dies while its card gets a message of rank 0
 *	sender     the last rank dies while rank 0's card gets its message
 *	absent     the last rank dies and has posted no receive
 *	alltoall   the last rank dies; the others are in MPI_Alltoallw
 *	cable      alltoalls and messages go on until this time, or until one fails
 *	late       rank 1 posts its receive when rank 0's send has failed, the cable is back since
 * this time, and rank 0 has written other bytes into its buffer; FILE tells rank 1
 *
 * Rank 0 prints "error" or "whole" and the microseconds of the longest call. A wrong byte, or a
 * message with a dead rank that ends well, ends the program with 1. With three ranks the others go
 * on among themselves.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROWS  1500
#define MANY  100000 /* rows of a message that takes longer than a rank needs to die */
#define WIDTH 2	     /* a column of it is sent; the others are gaps */
#define GAP   -7.0

#define PATIENCE_MS 300000 /* of the wall clock: until rank 0's send has failed */

static int rank, ranks, last;
static double until;

static void need(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "rank %d: %s\n", rank, what);
	_Exit(1);
}

static double value(int from, int round, int row)
{
	return from * 1e6 + round * 1e3 + row % 997;
}

static double *new_column(int rows, int from, int round)
{
	double *column = malloc(sizeof(*column) * WIDTH * (size_t)rows);

	need(column != NULL, "no memory");
	for (int i = 0; i < rows * WIDTH; i++)
		column[i] = i % WIDTH ? GAP : value(from, round, i / WIDTH);
	return column;
}

static void compare(const double *column, int rows, int from, int round, int error)
{
	for (int i = 0; i < rows * WIDTH; i++)
		if (i % WIDTH)
			need(column[i] == GAP, "a byte beside the message has changed");
		else if (!error)
			need(column[i] == value(from, round, i / WIDTH), "a byte is wrong");
}

/* A long column goes in three pieces, the last quarter of it ahead of the third. So the first ones
 * move while the table of pieces is got. */
static MPI_Datatype column_of(int rows)
{
	const int lengths[3] = { 1, 1, 1 }, half = rows / 2, quarter = rows / 4;
	const MPI_Aint row = sizeof(double) * WIDTH;
	const MPI_Aint places[3] = { 0, (half + quarter) * row, half * row };
	MPI_Datatype type, parts[3];

	if (rows < MANY) {
		MPI_Type_vector(rows, 1, WIDTH, MPI_DOUBLE, &type);
	} else {
		MPI_Type_vector(half, 1, WIDTH, MPI_DOUBLE, &parts[0]);
		MPI_Type_vector(quarter, 1, WIDTH, MPI_DOUBLE, &parts[1]);
		parts[2] = parts[1];
		MPI_Type_create_struct(3, lengths, places, parts, &type);
		MPI_Type_free(&parts[0]);
		MPI_Type_free(&parts[1]);
	}
	MPI_Type_commit(&type);
	return type;
}

static int alltoall(int round)
{
	const size_t bytes = sizeof(double) * WIDTH * ROWS;
	MPI_Datatype types[16], column = column_of(ROWS);
	double *out = new_column(ROWS * ranks, rank, round);
	double *in = new_column(ROWS * ranks, -1, round);
	int counts[16], places[16], error;

	for (int i = 0; i < ranks; i++) {
		counts[i] = 1;
		places[i] = i * (int)bytes;
		types[i] = column;
		for (int row = 0; row < ROWS; row++)
			out[(i * ROWS + row) * WIDTH] = value(rank, round, row);
	}
	error = MPI_Alltoallw(out, counts, places, types, in, counts, places, types,
			      MPI_COMM_WORLD);
	for (int i = 0; i < ranks; i++)
		compare(in + i * ROWS * WIDTH, ROWS, i, round, error);
	free(out);
	free(in);
	MPI_Type_free(&column);
	return error;
}

/* A message from one rank to another; these two call it. */
static int message(int from, int to, int rows, int round)
{
	double *column = new_column(rows, rank == from ? from : -1, round);
	MPI_Datatype type = column_of(rows);
	int error = rank == from
			    ? MPI_Send(column, 1, type, to, 1, MPI_COMM_WORLD)
			    : MPI_Recv(column, 1, type, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);

	if (rank == to)
		compare(column, rows, from, round, error);
	free(column);
	MPI_Type_free(&type);
	return error;
}

/* The last rank goes on with MPI until it is time, and dies. */
static void die(int sends, int receives)
{
	double *column = new_column(MANY, last, 0);
	MPI_Datatype type = column_of(MANY);
	MPI_Request request = MPI_REQUEST_NULL;
	int flag;

	if (sends)
		MPI_Isend(column, 1, type, 0, 1, MPI_COMM_WORLD, &request);
	if (receives)
		MPI_Irecv(column, 1, type, 0, 1, MPI_COMM_WORLD, &request);
	while (MPI_Wtime() < until) {
		MPI_Iprobe(0, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
		if (request == MPI_REQUEST_NULL)
			continue;
		MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
		need(!flag, "the message has ended before it was time");
	}
	kill(getpid(), SIGKILL);
}

static int survive(const char *what)
{
	int error = 0;

	if (!strcmp(what, "alltoall"))
		error = alltoall(1);
	else if (rank == 0 && !strcmp(what, "sender"))
		error = message(last, 0, MANY, 0);
	else if (rank == 0)
		error = message(0, last, MANY, 0);
	/* Others than these two have no part in it. */
	if (rank == 0 || !strcmp(what, "alltoall")) {
		need(error, "a call with a dead rank ended well");
		need(message(rank, last, ROWS, 1), "a send to a dead rank ended well");
	}
	for (int round = 0; ranks > 2 && rank < 2 && round < 2; round++)
		need(!message(round, 1 - round, ROWS, 2), "the others do not go on");
	return error;
}

/* Contiguous, so that without libdibber-pmpi.so the provider offers the buffer itself. */
static int send_and_change(const char *file)
{
	double *column = new_column(MANY, 0, 0);
	int error = MPI_Send(column, MANY * WIDTH, MPI_DOUBLE, last, 1, MPI_COMM_WORLD), flag;
	FILE *made;

	need(error, "the send did not fail");
	while (MPI_Wtime() < until)
		MPI_Iprobe(last, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	memset(column, 0, sizeof(*column) * WIDTH * MANY);
	made = fopen(file, "w");
	need(made && !fclose(made), "no file");
	/* The memory stays until the other rank's receive has ended. */
	while (!access(file, F_OK))
		MPI_Iprobe(last, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	free(column);
	return error;
}

static int receive_late(const char *file)
{
	double *column = new_column(MANY, -1, 0);
	int error;

	/* A rank that sleeps outside MPI holds no simulated time. */
	for (int ms = 0; access(file, F_OK); ms++) {
		need(ms < PATIENCE_MS, "rank 0 did not come so far");
		usleep(1000);
	}
	error = MPI_Recv(column, MANY * WIDTH, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	unlink(file);
	if (!error)
		compare(column, MANY, 0, 0, 0);
	printf("%s\n", error ? "failed" : "whole");
	fflush(stdout);
	free(column);
	return error;
}

/* Until it is time. All ranks stop in the same round: rank 0 says which. */
static int go_on(double *longest)
{
	int error = 0, go = 1;

	for (int round = 0; go && !error; round++) {
		double begin = MPI_Wtime(), taken;

		go = begin < until;
		error = MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
		if (!error)
			error = alltoall(round);
		if (!error && (rank == 0 || rank == last))
			error = message(0, last, ROWS, round);
		taken = MPI_Wtime() - begin;
		*longest = taken > *longest ? taken : *longest;
	}
	return error;
}

int main(int argc, char **argv)
{
	const char *what = argv[1];
	double begin, longest = 0;
	int error, kills;

	MPI_Init(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	last = ranks - 1;
	until = atof(argv[2]) * 1e-6;
	kills = strcmp(what, "cable");
	if (!strcmp(what, "late")) {
		if (rank == 0)
			send_and_change(argv[3]);
		else
			receive_late(argv[3]);
		_Exit(0);
	}
	need(!alltoall(0) && !MPI_Barrier(MPI_COMM_WORLD), "the first alltoall failed");
	begin = MPI_Wtime();
	if (kills && rank == last)
		die(!strcmp(what, "sender"), !strcmp(what, "receiver"));
	error = kills ? survive(what) : go_on(&longest);
	longest = kills ? MPI_Wtime() - begin : longest;
	if (rank == 0)
		printf("%s %.0f\n", error ? "error" : "whole", longest * 1e6);
	fflush(stdout);
	/* MPI cannot end with a rank that is dead. */
	if (error || kills)
		_Exit(0);
	MPI_Finalize();
	return 0;
}
