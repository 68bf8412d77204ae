/* Requests that the engine has, tested together: a test of several lets the engine go on once. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>
#include <string.h>

#include "machine.h"

struct end {
	enum hidden_kind kind;
	struct request *owner;
	MPI_Status status;
	int error;
};

static struct {
	MPI_Request *request;
	struct request **owner;
	enum hidden_kind *kind;
	int *index;
	MPI_Status *status;
	struct end *end;
	int count, room;
	unsigned int of_kind[HIDDEN_BELL + 1];
} hidden;

static bool resize(void *list, size_t size, int room)
{
	void **place = list, *more = realloc(*place, (size_t)room * size);

	if (more)
		*place = more;
	return more != NULL;
}

static bool grow(void)
{
	int room = hidden.room ? 2 * hidden.room : 16;

	if (hidden.count < hidden.room)
		return true;
	if (!resize(&hidden.request, sizeof(*hidden.request), room) ||
	    !resize(&hidden.owner, sizeof(*hidden.owner), room) ||
	    !resize(&hidden.kind, sizeof(*hidden.kind), room) ||
	    !resize(&hidden.index, sizeof(*hidden.index), room) ||
	    !resize(&hidden.status, sizeof(*hidden.status), room) ||
	    !resize(&hidden.end, sizeof(*hidden.end), room))
		return false;
	hidden.room = room;
	return true;
}

bool hidden_add(MPI_Request request, enum hidden_kind kind, struct request *owner)
{
	if (!grow())
		return false;
	hidden.of_kind[kind]++;
	hidden.request[hidden.count] = request;
	hidden.kind[hidden.count] = kind;
	hidden.owner[hidden.count++] = owner;
	return true;
}

unsigned int hidden_count(enum hidden_kind kind)
{
	return hidden.of_kind[kind];
}

void hidden_free(void)
{
	free(hidden.request);
	free(hidden.owner);
	free(hidden.kind);
	free(hidden.index);
	free(hidden.status);
	free(hidden.end);
	memset(&hidden, 0, sizeof(hidden));
}

int hidden_test(void)
{
	int done = 0, rc, kept = 0;

	if (!hidden.count)
		return 0;
	provider.poll_only(1);
	rc = PMPI_Testsome(hidden.count, hidden.request, &done, hidden.index, hidden.status);
	provider.poll_only(0);
	if (done == MPI_UNDEFINED || done <= 0)
		return 0;
	for (int i = 0; i < done; i++) {
		int at = hidden.index[i];

		hidden.end[i] = (struct end){
			.kind = hidden.kind[at],
			.owner = hidden.owner[at],
			.status = hidden.status[i],
			/* Without an error the engine leaves the field as it was. */
			.error = rc == MPI_SUCCESS ? MPI_SUCCESS : hidden.status[i].MPI_ERROR,
		};
		hidden.of_kind[hidden.kind[at]]--;
		hidden.request[at] = MPI_REQUEST_NULL;
	}
	for (int i = 0; i < hidden.count; i++) {
		if (hidden.request[i] == MPI_REQUEST_NULL)
			continue;
		hidden.request[kept] = hidden.request[i];
		hidden.kind[kept] = hidden.kind[i];
		hidden.owner[kept++] = hidden.owner[i];
	}
	hidden.count = kept;
	/* What follows may add requests, but `end` has room for all. */
	for (int i = 0; i < done; i++) {
		struct end end = hidden.end[i];

		machine_ended(end.kind, end.owner, &end.status, end.error);
	}
	return done;
}
