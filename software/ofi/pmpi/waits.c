/* MPI's calls that wait for requests and test them.
 *
 * The engine does the work, because each request of this library is a general request of the
 * engine. These calls put the general request in the place of a persistent one, and tell errors to
 * the handler of the communicator that they belong to.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>

#include "typed.h"

#define FEW 8

struct row {
	MPI_Request handle, former; /* what the engine gets */
	struct request *request;    /* behind it, or NULL */
	struct request *persistent; /* in whose place it stands, or NULL */
};

struct rows {
	int count;
	struct row *row, few[FEW];
	MPI_Request *handles, few_handles[FEW];
};

static struct row row_of(MPI_Request handle)
{
	struct request *found = typed_find(handle);
	struct row row = { .handle = handle, .request = found };

	if (found && found->persistent) {
		row.persistent = found;
		row.handle = found->active;
		row.request = typed_find(row.handle);
		/* The engine has started the persistent request itself. */
		if (row.request == found) {
			typed_put(found);
			row.request = NULL;
		}
	}
	row.former = row.handle;
	return row;
}

/* Returns false if no handle is of this library. Without memory the program ends, because the
 * engine does not know the persistent requests that this library has started. */
static bool look(struct rows *rows, int count, const MPI_Request *list)
{
	bool any = false;

	if (!handles_any() || count <= 0)
		return false;
	rows->count = count;
	rows->row = rows->few;
	rows->handles = rows->few_handles;
	if (count > FEW) {
		rows->row = malloc((size_t)count * sizeof(*rows->row));
		rows->handles = malloc((size_t)count * sizeof(*rows->handles));
		if (!rows->row || !rows->handles)
			PMPI_Abort(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
	}
	for (int i = 0; i < count; i++) {
		rows->row[i] = row_of(list[i]);
		rows->handles[i] = rows->row[i].handle;
		any |= rows->row[i].request || rows->row[i].persistent;
	}
	if (!any && rows->row != rows->few) {
		free(rows->row);
		free(rows->handles);
	}
	return any;
}

static int error_at(const struct rows *rows, int i)
{
	const struct row *row = &rows->row[i];
	bool ended = row->former != MPI_REQUEST_NULL && rows->handles[i] == MPI_REQUEST_NULL;

	return ended && row->request ? row->request->error : MPI_SUCCESS;
}

/* Give back what look() holds, and the handles that the engine has changed. */
static void leave(struct rows *rows, MPI_Request *list)
{
	for (int i = 0; i < rows->count; i++) {
		struct row *row = &rows->row[i];

		if (!row->persistent)
			list[i] = rows->handles[i];
		else if (rows->handles[i] == MPI_REQUEST_NULL)
			row->persistent->active = MPI_REQUEST_NULL;
		typed_put(row->request);
		typed_put(row->persistent);
	}
	if (rows->row != rows->few) {
		free(rows->row);
		free(rows->handles);
	}
}

/* The end of a call that tells of one request at most. */
static int end_one(struct rows *rows, MPI_Request *list, int index, int rc)
{
	int error = !rc && index >= 0 ? error_at(rows, index) : MPI_SUCCESS;

	if (error && !rows->row[index].request->told)
		PMPI_Comm_call_errhandler(rows->row[index].request->comm, error);
	leave(rows, list);
	return error ? error : rc;
}

/* The end of a call that tells of several; `indices` says which, or is NULL for all. */
static int end_many(struct rows *rows, MPI_Request *list, int count, const int *indices,
		    MPI_Status *statuses, int rc)
{
	const struct request *first = NULL;
	int former = rc;

	for (int i = 0; i < count && (!former || former == MPI_ERR_IN_STATUS); i++) {
		int at = indices ? indices[i] : i, error = error_at(rows, at);

		if (!error)
			continue;
		if (rc != MPI_ERR_IN_STATUS && statuses != MPI_STATUSES_IGNORE)
			for (int k = 0; k < count; k++)
				statuses[k].MPI_ERROR = MPI_SUCCESS;
		if (statuses != MPI_STATUSES_IGNORE)
			statuses[i].MPI_ERROR = error;
		rc = MPI_ERR_IN_STATUS;
		if (!first && !rows->row[at].request->told)
			first = rows->row[at].request;
	}
	if (first && !former)
		PMPI_Comm_call_errhandler(first->comm, MPI_ERR_IN_STATUS);
	leave(rows, list);
	return rc;
}

PUBLIC int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
	struct rows rows;

	if (!look(&rows, 1, request))
		return PMPI_Wait(request, status);
	return end_one(&rows, request, 0, PMPI_Wait(rows.handles, status));
}

PUBLIC int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
	struct rows rows;

	if (!look(&rows, 1, request))
		return PMPI_Test(request, flag, status);
	return end_one(&rows, request, 0, PMPI_Test(rows.handles, flag, status));
}

PUBLIC int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
	struct rows rows;
	int rc;

	if (!look(&rows, 1, &request))
		return PMPI_Request_get_status(request, flag, status);
	rc = PMPI_Request_get_status(rows.handles[0], flag, status);
	leave(&rows, &request);
	return rc;
}

PUBLIC int MPI_Waitany(int count, MPI_Request list[], int *index, MPI_Status *status)
{
	struct rows rows;
	int rc;

	if (!look(&rows, count, list))
		return PMPI_Waitany(count, list, index, status);
	rc = PMPI_Waitany(count, rows.handles, index, status);
	return end_one(&rows, list, *index == MPI_UNDEFINED ? -1 : *index, rc);
}

PUBLIC int MPI_Testany(int count, MPI_Request list[], int *index, int *flag, MPI_Status *status)
{
	struct rows rows;
	int rc;

	if (!look(&rows, count, list))
		return PMPI_Testany(count, list, index, flag, status);
	rc = PMPI_Testany(count, rows.handles, index, flag, status);
	return end_one(&rows, list, !*flag || *index == MPI_UNDEFINED ? -1 : *index, rc);
}

PUBLIC int MPI_Waitall(int count, MPI_Request list[], MPI_Status statuses[])
{
	struct rows rows;
	int rc;

	if (!look(&rows, count, list))
		return PMPI_Waitall(count, list, statuses);
	rc = PMPI_Waitall(count, rows.handles, statuses);
	return end_many(&rows, list, count, NULL, statuses, rc);
}

PUBLIC int MPI_Testall(int count, MPI_Request list[], int *flag, MPI_Status statuses[])
{
	struct rows rows;
	int rc;

	if (!look(&rows, count, list))
		return PMPI_Testall(count, list, flag, statuses);
	rc = PMPI_Testall(count, rows.handles, flag, statuses);
	return end_many(&rows, list, *flag ? count : 0, NULL, statuses, rc);
}

PUBLIC int MPI_Waitsome(int count, MPI_Request list[], int *done, int indices[],
			MPI_Status statuses[])
{
	struct rows rows;
	int rc;

	if (!look(&rows, count, list))
		return PMPI_Waitsome(count, list, done, indices, statuses);
	rc = PMPI_Waitsome(count, rows.handles, done, indices, statuses);
	return end_many(&rows, list, *done == MPI_UNDEFINED ? 0 : *done, indices, statuses, rc);
}

PUBLIC int MPI_Testsome(int count, MPI_Request list[], int *done, int indices[],
			MPI_Status statuses[])
{
	struct rows rows;
	int rc;

	if (!look(&rows, count, list))
		return PMPI_Testsome(count, list, done, indices, statuses);
	rc = PMPI_Testsome(count, rows.handles, done, indices, statuses);
	return end_many(&rows, list, *done == MPI_UNDEFINED ? 0 : *done, indices, statuses, rc);
}
