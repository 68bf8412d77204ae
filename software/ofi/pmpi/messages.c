/* MPI's calls that send and receive. What typed.h does not take goes the engine's way. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>

#include "typed.h"

/* Begin and end -------------------------------------------------------------------------------- */

PUBLIC int MPI_Init(int *argc, char ***argv)
{
	int rc = PMPI_Init(argc, argv);

	if (!rc)
		typed_open();
	return rc;
}

PUBLIC int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	int rc = PMPI_Init_thread(argc, argv, required, provided);

	if (!rc)
		typed_open();
	return rc;
}

PUBLIC int MPI_Finalize(void)
{
	collectives_close();
	typed_close();
	return PMPI_Finalize();
}

/* Calls that block ----------------------------------------------------------------------------- */

PUBLIC int MPI_Send(const void *buffer, int count, MPI_Datatype type, int dest, int tag,
		    MPI_Comm comm)
{
	struct request *request = typed_send(buffer, count, type, dest, tag, comm, false);

	return request ? typed_end(request, MPI_STATUS_IGNORE)
		       : PMPI_Send(buffer, count, type, dest, tag, comm);
}

PUBLIC int MPI_Recv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
		    MPI_Status *status)
{
	struct request *request = typed_receive(buffer, count, type, source, tag, comm, false);

	return request ? typed_end(request, status)
		       : PMPI_Recv(buffer, count, type, source, tag, comm, status);
}

/* A send of either way, as a request of the engine or of this library. */
struct way {
	struct request *request;
	MPI_Request engine;
};

static int begin_send(struct way *way, const void *buffer, int count, MPI_Datatype type, int dest,
		      int tag, MPI_Comm comm)
{
	way->request = typed_send(buffer, count, type, dest, tag, comm, false);
	return way->request ? MPI_SUCCESS
			    : PMPI_Isend(buffer, count, type, dest, tag, comm, &way->engine);
}

static int end_send(struct way *way)
{
	return way->request ? typed_end(way->request, MPI_STATUS_IGNORE)
			    : PMPI_Wait(&way->engine, MPI_STATUS_IGNORE);
}

PUBLIC int MPI_Sendrecv(const void *out, int out_count, MPI_Datatype out_type, int dest,
			int out_tag, void *in, int in_count, MPI_Datatype in_type, int source,
			int in_tag, MPI_Comm comm, MPI_Status *status)
{
	struct request *receive;
	struct way send;
	int error, rc;

	receive = typed_receive(in, in_count, in_type, source, in_tag, comm, false);
	if (!receive && source != MPI_PROC_NULL)
		return PMPI_Sendrecv(out, out_count, out_type, dest, out_tag, in, in_count, in_type,
				     source, in_tag, comm, status);
	error = begin_send(&send, out, out_count, out_type, dest, out_tag, comm);
	rc = receive ? typed_end(receive, status)
		     : PMPI_Recv(in, in_count, in_type, source, in_tag, comm, status);
	if (!error)
		error = end_send(&send);
	return rc ? rc : error;
}

PUBLIC int MPI_Sendrecv_replace(void *buffer, int count, MPI_Datatype type, int dest, int out_tag,
				int source, int in_tag, MPI_Comm comm, MPI_Status *status)
{
	int length = 0, at = 0, rc;
	void *packed;

	if (!typed_on() || PMPI_Pack_size(count, type, comm, &length))
		return PMPI_Sendrecv_replace(buffer, count, type, dest, out_tag, source, in_tag,
					     comm, status);
	packed = malloc((size_t)length + 1);
	if (!packed) {
		PMPI_Comm_call_errhandler(comm, MPI_ERR_NO_MEM);
		return MPI_ERR_NO_MEM;
	}
	rc = PMPI_Pack(buffer, count, type, packed, length, &at, comm);
	if (!rc)
		rc = MPI_Sendrecv(packed, at, MPI_PACKED, dest, out_tag, buffer, count, type,
				  source, in_tag, comm, status);
	free(packed);
	return rc;
}

/* Calls with requests -------------------------------------------------------------------------- */

static int hand_over(struct request *request, MPI_Request *handle)
{
	*handle = request->handle;
	typed_put(request);
	return MPI_SUCCESS;
}

PUBLIC int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int dest, int tag,
		     MPI_Comm comm, MPI_Request *handle)
{
	struct request *request = typed_send(buffer, count, type, dest, tag, comm, true);

	return request ? hand_over(request, handle)
		       : PMPI_Isend(buffer, count, type, dest, tag, comm, handle);
}

PUBLIC int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
		     MPI_Request *handle)
{
	struct request *request = typed_receive(buffer, count, type, source, tag, comm, true);

	return request ? hand_over(request, handle)
		       : PMPI_Irecv(buffer, count, type, source, tag, comm, handle);
}

/* Persistent requests -------------------------------------------------------------------------- */

PUBLIC int MPI_Send_init(const void *buffer, int count, MPI_Datatype type, int dest, int tag,
			 MPI_Comm comm, MPI_Request *handle)
{
	int rc = PMPI_Send_init(buffer, count, type, dest, tag, comm, handle);

	if (!rc)
		typed_keep(*handle, true, (void *)(uintptr_t)buffer, count, type, dest, tag, comm);
	return rc;
}

PUBLIC int MPI_Recv_init(void *buffer, int count, MPI_Datatype type, int source, int tag,
			 MPI_Comm comm, MPI_Request *handle)
{
	int rc = PMPI_Recv_init(buffer, count, type, source, tag, comm, handle);

	/* A receive that the library does not know would take an offer for data. */
	if (!rc && typed_on() && source != MPI_PROC_NULL &&
	    !typed_keep(*handle, false, buffer, count, type, source, tag, comm)) {
		PMPI_Request_free(handle);
		PMPI_Comm_call_errhandler(comm, MPI_ERR_NO_MEM);
		return MPI_ERR_NO_MEM;
	}
	return rc;
}

static int start(struct request *kept, MPI_Request *handle)
{
	struct request *request = kept->sends
					  ? typed_send(kept->buffer, kept->count, kept->type,
						       kept->peer, kept->tag, kept->comm, true)
					  : typed_receive(kept->buffer, kept->count, kept->type,
							  kept->peer, kept->tag, kept->comm, true);

	if (request)
		return hand_over(request, &kept->active);
	kept->active = *handle;
	return PMPI_Start(handle);
}

PUBLIC int MPI_Start(MPI_Request *handle)
{
	struct request *kept = typed_find(*handle);
	int rc;

	if (!kept)
		return PMPI_Start(handle);
	rc = start(kept, handle);
	typed_put(kept);
	return rc;
}

PUBLIC int MPI_Startall(int count, MPI_Request handles[])
{
	int rc = MPI_SUCCESS;

	if (!handles_any())
		return PMPI_Startall(count, handles);
	for (int i = 0; i < count && !rc; i++)
		rc = MPI_Start(&handles[i]);
	return rc;
}

PUBLIC int MPI_Request_free(MPI_Request *handle)
{
	struct request *kept = typed_find(*handle);
	MPI_Request own = *handle;
	int rc = MPI_SUCCESS;

	if (!kept || !kept->persistent) {
		typed_put(kept);
		return PMPI_Request_free(handle);
	}
	handles_remove(own);
	if (kept->active != MPI_REQUEST_NULL && kept->active != own)
		rc = PMPI_Request_free(&kept->active);
	PMPI_Type_free(&kept->type);
	typed_put(kept);
	typed_put(kept);
	*handle = MPI_REQUEST_NULL;
	return rc ? rc : PMPI_Request_free(&own);
}

PUBLIC int MPI_Cancel(MPI_Request *handle)
{
	struct request *kept = typed_find(*handle);
	MPI_Request active = *handle;

	if (kept && kept->persistent)
		active = kept->active;
	typed_put(kept);
	return PMPI_Cancel(&active);
}
