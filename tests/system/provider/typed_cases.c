/* Messages at the edges of what libdibber-pmpi.so takes, on 2 ranks.
 *
 * Each case has the outcome that MPI promises, with the library and without it.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ranks.h"

#define ROWS	 1500 /* of a column: 12,000 bytes */
#define OFFER	 192  /* bytes of a message that the library looks at */
#define MANY	 24
#define THREADED 6

static double matrix[ROWS][2], wanted[ROWS];
static MPI_Datatype column;

static void fill(double base)
{
	for (int i = 0; i < ROWS; i++) {
		matrix[i][0] = base + i;
		matrix[i][1] = -1;
	}
}

/* The column has what fill(base) makes of it, up to a row, and nothing else was touched. */
static void check(double base, int rows)
{
	for (int i = 0; i < ROWS; i++) {
		need(i >= rows || matrix[i][0] == base + i, "row %d has %g, not %g", i,
		     matrix[i][0], base + i);
		need(matrix[i][1] == -1, "the gap of row %d", i);
	}
}

static int error_class(int error)
{
	int class;

	MPI_Error_class(error, &class);
	return class;
}

/* A receive that is too short ends with an error, and the send as if all were well. */
static void truncated(int by)
{
	uint8_t few[100];
	MPI_Request request = MPI_REQUEST_NULL;
	MPI_Status statuses[1];
	int error = MPI_SUCCESS;

	if (rank == 0) {
		fill(1);
		error = MPI_Send(matrix, 1, column, 1, 1, MPI_COMM_WORLD);
		need(!error, "the sender has error %d", error);
		return;
	}
	switch (by) {
	case 0:
		error = MPI_Recv(few, sizeof(few), MPI_BYTE, 0, 1, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
		break;
	case 1:
		error = MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		break;
	case 2:
		MPI_Irecv(matrix, ROWS / 2, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, &request);
		error = MPI_Wait(&request, MPI_STATUS_IGNORE);
		break;
	default:
		MPI_Irecv(matrix, ROWS / 2, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, &request);
		error = MPI_Waitall(1, &request, statuses);
		need(error_class(error) == MPI_ERR_IN_STATUS, "error %d", error);
		error = statuses[0].MPI_ERROR;
	}
	need(error_class(error) == MPI_ERR_TRUNCATE, "case %d: error %d", by, error);
}

/* A short message into a long receive, and one that ends in the middle of a block. */
static void shorter(void)
{
	MPI_Datatype words;
	int count;
	MPI_Status status;

	MPI_Type_vector(ROWS, 2, 4, MPI_INT, &words);
	MPI_Type_commit(&words);
	fill(rank ? 0 : 7);
	if (rank == 0) {
		MPI_Datatype part;

		MPI_Type_vector(ROWS / 2 * 2 + 1, 1, 1, MPI_INT, &part);
		MPI_Type_commit(&part);
		/* 1,501 ints of a contiguous list: 750 rows and a half. */
		double list[ROWS];

		for (int i = 0; i < ROWS; i++)
			list[i] = 7 + i;
		MPI_Send(list, 1, part, 1, 2, MPI_COMM_WORLD);
		MPI_Type_free(&part);
	} else {
		MPI_Recv(matrix, 1, words, 0, 2, MPI_COMM_WORLD, &status);
		MPI_Get_count(&status, words, &count);
		need(count == MPI_UNDEFINED, "%d whole elements", count);
		MPI_Get_elements(&status, words, &count);
		need(count == ROWS / 2 * 2 + 1, "%d elements", count);
		check(7, ROWS / 2);
		need(matrix[ROWS / 2 + 1][0] == ROWS / 2 + 1, "a row behind the message");
	}
	MPI_Type_free(&words);
}

/* Receives whose type the card does not walk: a list of too many places. The messages end inside
 * the only element of the receive; the short one is probed first. */
static void of_an_unknown_type(void)
{
	enum { PLACES = 40000, BLOCK = 3, CAME = 1500 };
	static int places[PLACES], in[PLACES * BLOCK], list[CAME];
	const int came[2] = { CAME, OFFER / (int)sizeof(int) };
	MPI_Datatype element, type;
	MPI_Status status;
	int count;

	for (int i = 0; i < PLACES; i++)
		places[i] = i * BLOCK + i % 2;
	MPI_Type_contiguous(1, MPI_INT, &element);
	MPI_Type_create_indexed_block(PLACES, 1, places, element, &type);
	MPI_Type_commit(&type);
	for (int i = 0; i < CAME; i++)
		list[i] = 900 + i;
	for (int round = 0; round < 2; round++) {
		if (rank == 0) {
			MPI_Send(list, came[round], MPI_INT, 1, 13, MPI_COMM_WORLD);
			continue;
		}
		memset(in, 0xff, sizeof(in));
		if (round)
			MPI_Probe(0, 13, MPI_COMM_WORLD, &status);
		MPI_Recv(in, 1, type, 0, 13, MPI_COMM_WORLD, &status);
		MPI_Get_elements(&status, type, &count);
		need(count == came[round], "%d elements, not %d", count, came[round]);
		for (int i = 0, at = 0; i < PLACES * BLOCK; i++) {
			bool listed = at < PLACES && places[at] == i;
			int right = listed && at < count ? 900 + at : -1;

			need(in[i] == right, "place %d has %d, not %d", i, in[i], right);
			at += listed;
		}
	}
	MPI_Type_free(&type);
	MPI_Type_free(&element);
}

/* A receive that says it has room for 8 GiB: more than a command of the card moves. */
static void much_room(void)
{
	MPI_Status status;
	int count;

	fill(rank ? 0 : 1000);
	if (rank == 0) {
		MPI_Send(matrix, 1, column, 1, 14, MPI_COMM_WORLD);
		return;
	}
	MPI_Recv(wanted, 1 << 30, MPI_DOUBLE, 0, 14, MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, MPI_DOUBLE, &count);
	need(count == ROWS, "%d rows", count);
	for (int i = 0; i < ROWS; i++)
		need(wanted[i] == 1000 + i, "row %d has %g", i, wanted[i]);
}

/* Data of as many bytes as an offer, also some that looks like one, stays data. */
static void looks_like_an_offer(int by)
{
	uint8_t out[OFFER], in[OFFER] = { 0 };
	MPI_Message message;
	MPI_Status status;
	int count;

	for (int i = 0; i < OFFER; i++)
		out[i] = (uint8_t)(i < 16 ? 0xa5 : i == 24 ? 0xff : i == 52 ? 1 : 0);
	if (rank == 0) {
		MPI_Send(out, OFFER, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
		return;
	}
	if (by == 1 || by == 2)
		MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
	if (by == 2 || by == 3) {
		MPI_Mprobe(0, 3, MPI_COMM_WORLD, &message, &status);
		MPI_Mrecv(in, OFFER, MPI_BYTE, &message, &status);
		need(message == MPI_MESSAGE_NULL, "the message stays");
	} else {
		MPI_Recv(in, OFFER, MPI_BYTE, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &status);
	}
	MPI_Get_count(&status, MPI_BYTE, &count);
	need(count == OFFER && !memcmp(in, out, OFFER), "the bytes are others");
}

/* A probe takes an offer out of the engine; messages keep their order. */
static void order(void)
{
	double list[ROWS];
	MPI_Status status;
	int count;

	fill(rank ? 0 : 100);
	if (rank == 0) {
		MPI_Request requests[3];

		for (int i = 0; i < ROWS; i++)
			list[i] = 200 + i;
		MPI_Isend(matrix, 1, column, 1, 4, MPI_COMM_WORLD, &requests[0]);
		MPI_Isend(list, ROWS, MPI_DOUBLE, 1, 4, MPI_COMM_WORLD, &requests[1]);
		MPI_Isend(list, 1, MPI_DOUBLE, 1, 4, MPI_COMM_WORLD, &requests[2]);
		MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
		return;
	}
	MPI_Probe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, MPI_DOUBLE, &count);
	need(count == ROWS && status.MPI_TAG == 4, "a probe tells %d", count);
	MPI_Recv(matrix, 1, column, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
	check(100, ROWS);
	MPI_Recv(matrix, 1, column, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	check(200, ROWS);
	MPI_Recv(list, ROWS, MPI_DOUBLE, 0, 4, MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, MPI_DOUBLE, &count);
	need(count == 1 && list[0] == 200, "the third message");
}

/* A receive goes on while its rank is in a collective call, and an unnamed send ends. */
static void goes_on(void)
{
	MPI_Request request;

	fill(rank ? 0 : 300);
	if (rank == 1)
		MPI_Irecv(matrix, 1, column, 0, 5, MPI_COMM_WORLD, &request);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		MPI_Send(matrix, 1, column, 1, 5, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 1) {
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		check(300, ROWS);
		MPI_Recv(matrix, 1, column, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		check(301, ROWS);
		MPI_Send(NULL, 0, MPI_BYTE, 0, 6, MPI_COMM_WORLD);
	} else if (rank == 0) {
		fill(301);
		MPI_Isend(matrix, 1, column, 1, 6, MPI_COMM_WORLD, &request);
		MPI_Request_free(&request);
		MPI_Recv(NULL, 0, MPI_BYTE, 1, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}

static void nobody_and_oneself(void)
{
	MPI_Request request;
	MPI_Status status;
	int flag, count;

	MPI_Send(matrix, 1, column, MPI_PROC_NULL, 7, MPI_COMM_WORLD);
	MPI_Recv(matrix, 1, column, MPI_PROC_NULL, 7, MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, MPI_BYTE, &count);
	need(status.MPI_SOURCE == MPI_PROC_NULL && !count, "a message of nobody");
	MPI_Iprobe(MPI_PROC_NULL, 7, MPI_COMM_WORLD, &flag, &status);
	need(flag, "a probe for nobody");
	MPI_Sendrecv(matrix, 1, column, MPI_PROC_NULL, 7, wanted, 1, MPI_DOUBLE, MPI_PROC_NULL, 7,
		     MPI_COMM_WORLD, &status);
	fill(400 + rank);
	MPI_Irecv(wanted, ROWS, MPI_DOUBLE, rank, 7, MPI_COMM_WORLD, &request);
	MPI_Send(matrix, 1, column, rank, 7, MPI_COMM_WORLD);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	need(wanted[5] == 405 + rank, "a message to oneself");
}

static void cancelled(void)
{
	MPI_Request request;
	MPI_Status status;
	int flag;

	MPI_Irecv(matrix, 1, column, MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, &request);
	MPI_Cancel(&request);
	MPI_Wait(&request, &status);
	MPI_Test_cancelled(&status, &flag);
	need(flag, "the receive is not cancelled");
}

static void both_ways(void)
{
	double lines[ROWS][2];

	fill(500 + rank);
	for (int i = 0; i < ROWS; i++)
		lines[i][0] = lines[i][1] = -1;
	MPI_Sendrecv(matrix, 1, column, 1 - rank, 9, lines, 1, column, 1 - rank, 9, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	memcpy(matrix, lines, sizeof(lines));
	check(500 + 1 - rank, ROWS);
	MPI_Sendrecv_replace(matrix, 1, column, 1 - rank, 9, 1 - rank, 9, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
	check(500 + rank, ROWS);
}

/* A group each, and a message between them. */
static void between_groups(void)
{
	MPI_Comm own, inter;
	MPI_Status status;

	MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &own);
	if (rank < 2) {
		MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, 1 - rank, 10, &inter);
		fill(rank ? 0 : 600);
		if (rank == 0)
			MPI_Send(matrix, 1, column, 0, 11, inter);
		else
			MPI_Recv(matrix, 1, column, MPI_ANY_SOURCE, 11, inter, &status);
		if (rank == 1) {
			check(600, ROWS);
			need(status.MPI_SOURCE == 0, "rank %d of the other group",
			     status.MPI_SOURCE);
		}
		MPI_Comm_free(&inter);
	}
	MPI_Comm_free(&own);
}

/* Columns to all, and to the neighbours on a line. The types of the two sides differ. */
static void collectives(void)
{
	static double in[2][ROWS];
	MPI_Datatype list, out_types[2] = { column, column }, in_types[2];
	int counts[2] = { 1, 1 }, places[2] = { 0, sizeof(in[0]) }, out_places[2] = { 0, 0 };
	int both[2] = { 2, 1 }, alone = 0;
	MPI_Aint far_places[2] = { 0, sizeof(in[0]) }, far_out_places[2] = { 0, 0 };
	MPI_Comm line;

	MPI_Type_contiguous(ROWS, MPI_DOUBLE, &list);
	MPI_Type_commit(&list);
	in_types[0] = in_types[1] = list;
	for (int round = 0; round < 2; round++) {
		fill(700 + 10 * round + rank);
		memset(in, 0, sizeof(in));
		MPI_Alltoallw(matrix, counts, out_places, out_types, in, counts, places, in_types,
			      MPI_COMM_WORLD);
		for (int from = 0; from < 2; from++)
			for (int i = 0; i < ROWS; i++)
				need(in[from][i] == 700 + 10 * round + from + i, "row %d of %d", i,
				     from);
	}
	MPI_Cart_create(MPI_COMM_WORLD, 1, both, &alone, 0, &line);
	memset(in, 0, sizeof(in));
	MPI_Neighbor_alltoallw(matrix, counts, far_out_places, out_types, in, counts, far_places,
			       in_types, line);
	for (int i = 0; i < ROWS; i++)
		need(in[1 - rank][i] == 710 + 1 - rank + i && in[rank][i] == 0,
		     "row %d of the neighbour", i);
	MPI_Comm_free(&line);
	MPI_Type_free(&list);
}

/* A receive into two pages, with one between them that is not mapped. */
static void beside_a_hole(void)
{
	enum { PAGE = 4096 };
	int lengths[2] = { PAGE, PAGE }, places[2] = { 0, 2 * PAGE };
	uint8_t *pages =
		mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MPI_Datatype type;

	need(pages != MAP_FAILED, "no pages");
	munmap(pages + PAGE, PAGE);
	MPI_Type_indexed(2, lengths, places, MPI_BYTE, &type);
	MPI_Type_commit(&type);
	fill(800);
	if (rank == 0) {
		/* The sender's own type with a hole goes by the engine. */
		memset(pages, 5, PAGE);
		memset(pages + 2 * PAGE, 6, PAGE);
		MPI_Send(matrix, 2 * PAGE, MPI_BYTE, 1, 12, MPI_COMM_WORLD);
		MPI_Send(pages, 1, type, 1, 12, MPI_COMM_WORLD);
	} else {
		uint8_t *came = malloc(2 * PAGE);

		MPI_Recv(pages, 1, type, 0, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		need(!memcmp(pages, matrix, PAGE) &&
			     !memcmp(pages + 2 * PAGE, (uint8_t *)matrix + PAGE, PAGE),
		     "the pages beside a hole");
		MPI_Recv(came, 2 * PAGE, MPI_BYTE, 0, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		need(came[0] == 5 && came[PAGE - 1] == 5 && came[PAGE] == 6 &&
			     came[2 * PAGE - 1] == 6,
		     "what was sent beside a hole");
		free(came);
	}
	MPI_Type_free(&type);
	munmap(pages, PAGE);
	munmap(pages + 2 * PAGE, PAGE);
}

/* More under way at once than the card has regions. */
static void many(void)
{
	static double lists[MANY][2 * ROWS];
	MPI_Request requests[MANY];

	for (int k = 0; k < MANY; k++)
		for (int i = 0; i < 2 * ROWS; i++)
			lists[k][i] = rank ? -1 : k + i;
	for (int k = 0; k < MANY; k++) {
		if (rank == 0)
			MPI_Isend(lists[k], 1, column, 1, 100 + k, MPI_COMM_WORLD, &requests[k]);
		else
			MPI_Irecv(lists[k], 1, column, 0, 100 + k, MPI_COMM_WORLD,
				  &requests[MANY - 1 - k]);
	}
	MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
	for (int k = 0; k < MANY && rank; k++)
		for (int i = 0; i < 2 * ROWS; i++)
			need(lists[k][i] == (i % 2 ? -1 : k + i), "message %d, item %d: %g", k, i,
			     lists[k][i]);
}

/* Sixteen pieces meet a nest whose blocks begin elsewhere: more edges than commands. The first
 * pieces move before the receiver knows of that. */
static void many_edges(void)
{
	enum { PIECES = 16, PLANES = 48, ROW = 11, BYTES = PLANES * ROW * ROW };
	static uint8_t out[2 * BYTES], in[4 * BYTES], expected[4 * BYTES], packed[BYTES];
	const int sizes[3] = { PLANES + 1, ROW + 3, ROW + 6 }, inside[3] = { PLANES, ROW, ROW };
	const int starts[3] = { 1, 2, 3 };
	int lengths[PIECES], at = 0;
	MPI_Aint places[PIECES];
	MPI_Datatype pieces[PIECES], from, to;

	for (int i = 0; i < PIECES; i++) {
		lengths[i] = 1;
		places[i] = i * 500;
		if (i < 2)
			MPI_Type_contiguous(371, MPI_BYTE, &pieces[i]);
		else if (i < PIECES - 1)
			MPI_Type_vector(53, 7, 9, MPI_BYTE, &pieces[i]);
		else
			MPI_Type_vector(27, 9, 11, MPI_BYTE, &pieces[i]);
	}
	MPI_Type_create_struct(PIECES, lengths, places, pieces, &from);
	MPI_Type_create_subarray(3, sizes, inside, starts, MPI_ORDER_C, MPI_BYTE, &to);
	MPI_Type_commit(&from);
	MPI_Type_commit(&to);
	for (int i = 0; i < 2 * BYTES; i++)
		out[i] = (uint8_t)(i * 7 + i / 251);
	memset(in, 0xee, sizeof(in));
	memset(expected, 0xee, sizeof(expected));
	MPI_Pack(out, 1, from, packed, BYTES, &at, MPI_COMM_WORLD);
	at = 0;
	MPI_Unpack(packed, BYTES, &at, expected, 1, to, MPI_COMM_WORLD);
	if (rank == 0)
		MPI_Send(out, 1, from, 1, 9, MPI_COMM_WORLD);
	else
		MPI_Recv(in, 1, to, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	need(rank == 0 || !memcmp(in, expected, sizeof(in)), "wrong bytes among many edges");
	for (int i = 0; i < PIECES; i++)
		MPI_Type_free(&pieces[i]);
	MPI_Type_free(&from);
	MPI_Type_free(&to);
}

static void *talk(void *argument)
{
	int tag = 20 + (int)(intptr_t)argument;
	double lines[ROWS][2];

	for (int round = 0; round < THREADED; round++) {
		for (int i = 0; i < ROWS; i++) {
			lines[i][0] = rank ? 0 : tag * 1e4 + round + i;
			lines[i][1] = -1;
		}
		if (rank == round % 2)
			MPI_Send(lines, 1, column, 1 - rank, tag, MPI_COMM_WORLD);
		else
			MPI_Recv(lines, 1, column, 1 - rank, tag, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
		for (int i = 0; i < ROWS; i++)
			need(lines[i][1] == -1 && (rank == 0 || round % 2 ||
						   lines[i][0] == tag * 1e4 + round + i),
			     "thread %d, row %d: %g", tag, i, lines[i][0]);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t other;

	pthread_create(&other, NULL, talk, (void *)1);
	talk((void *)0);
	pthread_join(other, NULL);
}

int main(int argc, char **argv)
{
	int provided, threaded = argc > 1 && !strcmp(argv[1], "threads");

	MPI_Init_thread(&argc, &argv, threaded ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
			&provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Type_vector(ROWS, 1, 2, MPI_DOUBLE, &column);
	MPI_Type_commit(&column);
	if (threaded) {
		need(provided == MPI_THREAD_MULTIPLE, "no threads");
		threads();
	} else {
		for (int i = 0; i < 4; i++) {
			truncated(i);
			looks_like_an_offer(i);
		}
		shorter();
		of_an_unknown_type();
		much_room();
		order();
		goes_on();
		nobody_and_oneself();
		cancelled();
		both_ways();
		between_groups();
		many();
		many_edges();
		collectives();
		beside_a_hole();
	}
	MPI_Type_free(&column);
	MPI_Finalize();
	if (rank == 0)
		puts("all is well");
	return 0;
}
