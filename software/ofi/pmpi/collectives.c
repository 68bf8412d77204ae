/* MPI_Alltoallw and MPI_Neighbor_alltoallw as messages of typed.h, so that the card moves what it
 * can. They have a communicator of their own, kept with that of the program, so the program's
 * receives do not meet their messages.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>

#include "typed.h"

static int key = MPI_KEYVAL_INVALID;

static int forget(MPI_Comm comm, int keyval, void *value, void *extra)
{
	MPI_Comm *own = value;

	(void)comm, (void)keyval, (void)extra;
	PMPI_Comm_free(own);
	free(own);
	return MPI_SUCCESS;
}

/* All ranks of the communicator come here, with the same outcome, and the first time they make the
 * communicator. MPI_COMM_NULL: the engine does the call. */
static MPI_Comm own_of(MPI_Comm comm)
{
	MPI_Comm *own = NULL;
	int found = 0, inter = 1;

	if (!typed_on() || comm == MPI_COMM_NULL || PMPI_Comm_test_inter(comm, &inter) || inter)
		return MPI_COMM_NULL;
	if (key == MPI_KEYVAL_INVALID)
		PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &key, NULL);
	if (!PMPI_Comm_get_attr(comm, key, &own, &found) && found)
		return *own;
	own = malloc(sizeof(*own));
	if (!own || PMPI_Comm_dup(comm, own) || PMPI_Comm_set_attr(comm, key, own))
		PMPI_Abort(comm, MPI_ERR_NO_MEM);
	PMPI_Comm_set_errhandler(*own, MPI_ERRORS_RETURN);
	return *own;
}

/* Before MPI ends, because it frees no communicator in the attributes of MPI_COMM_WORLD. */
void collectives_close(void)
{
	MPI_Comm *own = NULL;
	int found = 0;

	if (key != MPI_KEYVAL_INVALID && !PMPI_Comm_get_attr(MPI_COMM_WORLD, key, &own, &found) &&
	    found)
		PMPI_Comm_delete_attr(MPI_COMM_WORLD, key);
}

/* Messages of one call. */
struct message {
	int other, tag;
	void *buffer;
	int count;
	MPI_Datatype type;
	struct request *request; /* of this library */
	MPI_Request engine;	 /* of the engine, if that is NULL */
};

static int begin(struct message *message, bool sends, MPI_Comm own)
{
	message->engine = MPI_REQUEST_NULL;
	message->request = NULL;
	if (message->other == MPI_PROC_NULL)
		return MPI_SUCCESS;
	message->request = sends ? typed_send(message->buffer, message->count, message->type,
					      message->other, message->tag, own, false)
				 : typed_receive(message->buffer, message->count, message->type,
						 message->other, message->tag, own, false);
	if (message->request)
		return MPI_SUCCESS;
	return sends ? PMPI_Isend(message->buffer, message->count, message->type, message->other,
				  message->tag, own, &message->engine)
		     : MPI_ERR_OTHER;
}

static int end(struct message *message)
{
	return message->request ? typed_end(message->request, MPI_STATUS_IGNORE)
				: PMPI_Wait(&message->engine, MPI_STATUS_IGNORE);
}

/* Returns the first error, which is told to the handler of `comm`. */
static int exchange(MPI_Comm comm, MPI_Comm own, struct message *in, int in_count,
		    struct message *out, int out_count)
{
	int error = MPI_SUCCESS, rc;

	for (int i = 0; i < in_count; i++)
		if ((rc = begin(&in[i], false, own)) && !error)
			error = rc;
	for (int i = 0; i < out_count; i++)
		if ((rc = begin(&out[i], true, own)) && !error)
			error = rc;
	for (int i = 0; i < in_count + out_count; i++)
		if ((rc = end(i < in_count ? &in[i] : &out[i - in_count])) && !error)
			error = rc;
	if (error)
		PMPI_Comm_call_errhandler(comm, error);
	return error;
}

static struct message *new_messages(MPI_Comm comm, int count)
{
	struct message *messages = calloc((size_t)count + 1, sizeof(*messages));

	/* The other ranks wait for this one. */
	if (!messages)
		PMPI_Abort(comm, MPI_ERR_NO_MEM);
	return messages;
}

PUBLIC int MPI_Alltoallw(const void *out, const int out_counts[], const int out_places[],
			 const MPI_Datatype out_types[], void *in, const int in_counts[],
			 const int in_places[], const MPI_Datatype in_types[], MPI_Comm comm)
{
	MPI_Comm own = out == MPI_IN_PLACE ? MPI_COMM_NULL : own_of(comm);
	struct message *messages;
	int rank, ranks, rc;

	if (own == MPI_COMM_NULL)
		return PMPI_Alltoallw(out, out_counts, out_places, out_types, in, in_counts,
				      in_places, in_types, comm);
	PMPI_Comm_rank(comm, &rank);
	PMPI_Comm_size(comm, &ranks);
	messages = new_messages(comm, 2 * ranks);
	for (int i = 0; i < ranks; i++) {
		/* Each begins with another partner. */
		int from = (rank + ranks - i) % ranks, to = (rank + i) % ranks;

		messages[i] = (struct message){ .other = from,
						.buffer = (char *)in + in_places[from],
						.count = in_counts[from],
						.type = in_types[from] };
		messages[ranks + i] = (struct message){
			.other = to,
			.buffer = (char *)(uintptr_t)out + out_places[to],
			.count = out_counts[to],
			.type = out_types[to],
		};
	}
	rc = exchange(comm, own, messages, ranks, messages + ranks, ranks);
	free(messages);
	return rc;
}

/* Neighbours ----------------------------------------------------------------------------------- */

struct neighbours {
	int in_count, out_count;
	int *in, *out, *in_tag, *out_tag;
};

static void free_neighbours(struct neighbours *n)
{
	free(n->in);
}

static void make_room(struct neighbours *n, MPI_Comm comm)
{
	size_t each = (size_t)n->in_count + (size_t)n->out_count + 1;

	n->in = calloc(2 * each, sizeof(*n->in));
	if (!n->in)
		PMPI_Abort(comm, MPI_ERR_NO_MEM);
	n->out = n->in + n->in_count;
	n->in_tag = n->in + each;
	n->out_tag = n->in_tag + n->in_count;
}

/* What a rank sends to its lower neighbour comes there from the upper one. With two ranks in a
 * circle both are the same rank; the tags tell which is which. */
static void of_grid(struct neighbours *n, MPI_Comm comm)
{
	int dimensions;

	PMPI_Cartdim_get(comm, &dimensions);
	n->in_count = n->out_count = 2 * dimensions;
	make_room(n, comm);
	for (int d = 0; d < dimensions; d++) {
		int *place = &n->in[2 * d];

		PMPI_Cart_shift(comm, d, 1, &place[0], &place[1]);
		n->out[2 * d] = place[0];
		n->out[2 * d + 1] = place[1];
		n->out_tag[2 * d] = n->in_tag[2 * d + 1] = 2 * d;
		n->out_tag[2 * d + 1] = n->in_tag[2 * d] = 2 * d + 1;
	}
}

/* Returns false if the communicator has no neighbours. */
static bool find_neighbours(struct neighbours *n, MPI_Comm comm)
{
	int kind = MPI_UNDEFINED, rank, weighted;

	PMPI_Topo_test(comm, &kind);
	PMPI_Comm_rank(comm, &rank);
	if (kind == MPI_CART) {
		of_grid(n, comm);
	} else if (kind == MPI_DIST_GRAPH) {
		PMPI_Dist_graph_neighbors_count(comm, &n->in_count, &n->out_count, &weighted);
		make_room(n, comm);
		/* The tags' room serves for the weights, which nobody wants. */
		PMPI_Dist_graph_neighbors(comm, n->in_count, n->in,
					  weighted ? n->in_tag : MPI_UNWEIGHTED, n->out_count,
					  n->out, weighted ? n->out_tag : MPI_UNWEIGHTED);
		for (int i = 0; i < n->in_count + n->out_count; i++)
			n->in_tag[i] = 0;
	} else if (kind == MPI_GRAPH) {
		PMPI_Graph_neighbors_count(comm, rank, &n->in_count);
		n->out_count = n->in_count;
		make_room(n, comm);
		PMPI_Graph_neighbors(comm, rank, n->in_count, n->in);
		for (int i = 0; i < n->in_count; i++)
			n->out[i] = n->in[i];
	} else {
		return false;
	}
	return true;
}

PUBLIC int MPI_Neighbor_alltoallw(const void *out, const int out_counts[],
				  const MPI_Aint out_places[], const MPI_Datatype out_types[],
				  void *in, const int in_counts[], const MPI_Aint in_places[],
				  const MPI_Datatype in_types[], MPI_Comm comm)
{
	MPI_Comm own = own_of(comm);
	struct message *messages;
	struct neighbours n = { 0 };
	int rc;

	if (own == MPI_COMM_NULL || !find_neighbours(&n, comm))
		return PMPI_Neighbor_alltoallw(out, out_counts, out_places, out_types, in,
					       in_counts, in_places, in_types, comm);
	messages = new_messages(comm, n.in_count + n.out_count);
	for (int i = 0; i < n.in_count; i++)
		messages[i] = (struct message){ .other = n.in[i],
						.tag = n.in_tag[i],
						.buffer = (char *)in + in_places[i],
						.count = in_counts[i],
						.type = in_types[i] };
	for (int i = 0; i < n.out_count; i++)
		messages[n.in_count + i] = (struct message){
			.other = n.out[i],
			.tag = n.out_tag[i],
			.buffer = (char *)(uintptr_t)out + out_places[i],
			.count = out_counts[i],
			.type = out_types[i],
		};
	rc = exchange(comm, own, messages, n.in_count, messages + n.in_count, n.out_count);
	free(messages);
	free_neighbours(&n);
	return rc;
}
