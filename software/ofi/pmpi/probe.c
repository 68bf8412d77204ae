/* Probes: a message of as many bytes as an offer has is taken out of the engine, because only its
 * bytes tell how long the message really is. It waits here for its receive.
 *
 * Receives and probes look here first. What lies here came before all that the engine still has, so
 * messages keep their order.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>
#include <string.h>

#include "typed.h"

static struct stashed *stash;	/* oldest first */
static struct stashed *claimed; /* by matched probes: their handles are addresses of these */

bool stash_is_empty(void)
{
	return !__atomic_load_n(&stash, __ATOMIC_ACQUIRE);
}

static void append(struct stashed **list, struct stashed *stashed)
{
	stashed->next = NULL;
	while (*list)
		list = &(*list)->next;
	__atomic_store_n(list, stashed, __ATOMIC_RELEASE);
}

static bool fits(const struct stashed *stashed, int source, int tag, MPI_Comm comm)
{
	return stashed->comm == comm &&
	       (source == MPI_ANY_SOURCE || source == stashed->status.MPI_SOURCE) &&
	       (tag == MPI_ANY_TAG || tag == stashed->status.MPI_TAG);
}

static struct stashed **find(int source, int tag, MPI_Comm comm)
{
	for (struct stashed **place = &stash; *place; place = &(*place)->next)
		if (fits(*place, source, tag, comm))
			return place;
	return NULL;
}

struct stashed *stash_take(int source, int tag, MPI_Comm comm)
{
	struct stashed **place = find(source, tag, comm), *found = place ? *place : NULL;

	if (found)
		*place = found->next;
	return found;
}

void stash_forget(MPI_Comm comm)
{
	for (struct stashed **place = &stash; *place;) {
		struct stashed *stashed = *place;

		if (stashed->comm != comm) {
			place = &stashed->next;
			continue;
		}
		*place = stashed->next;
		free(stashed);
	}
}

/* What a probe tells of a message. */
static void tell(const struct stashed *stashed, MPI_Status *status)
{
	const struct offer *offer = (const struct offer *)(const void *)stashed->bytes;
	uint64_t bytes = typed_bytes(&stashed->status);
	int error;

	if (status == MPI_STATUS_IGNORE)
		return;
	if (stashed->message == MPI_MESSAGE_NULL && typed_is_offer(offer, bytes))
		bytes = offer->bytes;
	error = status->MPI_ERROR;
	*status = stashed->status;
	typed_set_bytes(status, bytes);
	status->MPI_ERROR = error;
}

/* Receive a matched message of as many bytes as an offer. Returns NULL if that fails. */
static struct stashed *take(MPI_Comm comm, MPI_Message *message, const MPI_Status *status)
{
	struct stashed *stashed = calloc(1, sizeof(*stashed));

	if (!stashed)
		PMPI_Abort(comm, MPI_ERR_NO_MEM);
	typed_know(comm);
	stashed->comm = comm;
	stashed->status = *status;
	stashed->message = *message;
	/* Another thread may have taken the message that the probe saw; then this is another. */
	if (typed_bytes(status) == OFFER_BYTES && PMPI_Mrecv(stashed->bytes, OFFER_BYTES, MPI_BYTE,
							     &stashed->message, &stashed->status)) {
		free(stashed);
		return NULL;
	}
	return stashed;
}

/* One look of a probe: at the messages here, then at the engine's. */
static int look(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
	struct stashed **place, *stashed = NULL;
	MPI_Message message;
	MPI_Status seen;
	int rc;

	typed_enter();
	place = find(source, tag, comm);
	*flag = place != NULL;
	if (place)
		tell(*place, status);
	typed_leave();
	if (place)
		return MPI_SUCCESS;
	rc = PMPI_Iprobe(source, tag, comm, flag, &seen);
	if (rc || !*flag)
		return rc;
	if (typed_bytes(&seen) != OFFER_BYTES) {
		if (status != MPI_STATUS_IGNORE) {
			seen.MPI_ERROR = status->MPI_ERROR;
			*status = seen;
		}
		return MPI_SUCCESS;
	}
	typed_enter();
	rc = PMPI_Improbe(seen.MPI_SOURCE, seen.MPI_TAG, comm, flag, &message, &seen);
	if (!rc && *flag) {
		stashed = take(comm, &message, &seen);
		*flag = stashed != NULL;
	}
	if (stashed) {
		append(&stash, stashed);
		tell(stashed, status);
	}
	typed_leave();
	return rc;
}

PUBLIC int MPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
	if (!typed_on() || source == MPI_PROC_NULL)
		return PMPI_Iprobe(source, tag, comm, flag, status);
	return look(source, tag, comm, flag, status);
}

PUBLIC int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status)
{
	int flag = 0, rc = MPI_SUCCESS;

	if (!typed_on() || source == MPI_PROC_NULL)
		return PMPI_Probe(source, tag, comm, status);
	while (!rc && !flag)
		rc = look(source, tag, comm, &flag, status);
	return rc;
}

/* Matched probes ------------------------------------------------------------------------------- */

/* One look of a matched probe. A message of another length stays the engine's. */
static int match(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
		 MPI_Status *status)
{
	struct stashed *stashed;
	MPI_Status seen;
	int rc = MPI_SUCCESS;

	typed_enter();
	stashed = stash_take(source, tag, comm);
	*flag = stashed != NULL;
	if (!stashed) {
		rc = PMPI_Improbe(source, tag, comm, flag, message, &seen);
		if (!rc && *flag && *message != MPI_MESSAGE_NO_PROC &&
		    typed_bytes(&seen) == OFFER_BYTES) {
			stashed = take(comm, message, &seen);
			*flag = stashed != NULL;
		} else if (!rc && *flag && status != MPI_STATUS_IGNORE) {
			seen.MPI_ERROR = status->MPI_ERROR;
			*status = seen;
		}
	}
	if (stashed) {
		append(&claimed, stashed);
		tell(stashed, status);
		*message = (MPI_Message)(void *)stashed;
	}
	typed_leave();
	return rc;
}

PUBLIC int MPI_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
		       MPI_Status *status)
{
	if (!typed_on() || source == MPI_PROC_NULL)
		return PMPI_Improbe(source, tag, comm, flag, message, status);
	return match(source, tag, comm, flag, message, status);
}

PUBLIC int MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
	int flag = 0, rc = MPI_SUCCESS;

	if (!typed_on() || source == MPI_PROC_NULL)
		return PMPI_Mprobe(source, tag, comm, message, status);
	while (!rc && !flag)
		rc = match(source, tag, comm, &flag, message, status);
	return rc;
}

static struct stashed *redeem(MPI_Message *message)
{
	struct stashed *found = NULL;

	typed_enter();
	for (struct stashed **place = &claimed; *place && !found; place = &(*place)->next)
		if ((void *)*place == (void *)*message) {
			found = *place;
			*place = found->next;
			break;
		}
	typed_leave();
	if (found)
		*message = MPI_MESSAGE_NULL;
	return found;
}

static struct request *deliver(void *buffer, int count, MPI_Datatype type, struct stashed *stashed,
			       bool handle)
{
	MPI_Comm comm = stashed->comm;
	struct request *request = typed_deliver(buffer, count, type, comm, stashed, handle);

	if (!request)
		PMPI_Comm_call_errhandler(comm, MPI_ERR_NO_MEM);
	return request;
}

PUBLIC int MPI_Mrecv(void *buffer, int count, MPI_Datatype type, MPI_Message *message,
		     MPI_Status *status)
{
	struct stashed *stashed = redeem(message);
	struct request *request;

	if (!stashed)
		return PMPI_Mrecv(buffer, count, type, message, status);
	request = deliver(buffer, count, type, stashed, false);
	return request ? typed_end(request, status) : MPI_ERR_NO_MEM;
}

PUBLIC int MPI_Imrecv(void *buffer, int count, MPI_Datatype type, MPI_Message *message,
		      MPI_Request *handle)
{
	struct stashed *stashed = redeem(message);
	struct request *request;

	if (!stashed)
		return PMPI_Imrecv(buffer, count, type, message, handle);
	request = deliver(buffer, count, type, stashed, true);
	if (!request)
		return MPI_ERR_NO_MEM;
	*handle = request->handle;
	typed_put(request);
	return MPI_SUCCESS;
}
