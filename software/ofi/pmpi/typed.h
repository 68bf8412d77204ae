/* Typed messages: the engine matches an offer of 192 bytes, the card moves the bytes.
 *
 * docs/design/typed-sends.md says how. Calls that say so are made between typed_enter() and
 * typed_leave(). The engine's progress drives all that is under way.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef TYPED_H
#define TYPED_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "flat.h"
#include "provider.h"

#define OFFER_BYTES 192u
#define MARK_BYTES  16u
#define FIRST	    2u /* pieces that an offer holds itself */

/* What travels in place of a message. */
struct offer {
	uint8_t mark[MARK_BYTES];
	uint64_t cookie; /* of the sender */
	uint64_t bytes;
	int64_t base;	/* the buffer's address from the begin of the region */
	uint64_t table; /* all pieces in the sender's arena, if there are more than FIRST */
	uint32_t key;	/* of the region */
	uint32_t rank;	/* of the sender in MPI_COMM_WORLD */
	uint32_t pieces;
	uint32_t reserved;
	struct piece first[FIRST];
};

_Static_assert(sizeof(struct offer) == OFFER_BYTES, "an offer fills its message");

/* Answer to an offer. */
struct note {
	uint64_t cookie;
	uint64_t failed;
};

/* A message of the engine that a probe has taken: bytes, or one that is still to be received. */
struct stashed {
	struct stashed *next;
	MPI_Comm comm;
	MPI_Status status;
	MPI_Message message; /* MPI_MESSAGE_NULL: the bytes are here */
	uint8_t bytes[OFFER_BYTES];
};

enum stage {
	WITH_ENGINE, /* the receive is posted; or the offer is out */
	GETS_TABLE,
	WAITS_FOR_REGION,
	MOVES,
	ENDED,
};

struct request {
	struct request *next; /* among those that are looked at */
	unsigned int users;
	enum stage stage;
	bool sends;
	MPI_Request handle; /* general request of the program, or MPI_REQUEST_NULL */
	MPI_Request engine; /* receive that the engine has */
	MPI_Comm comm;
	MPI_Status status;
	uint64_t count_bytes; /* that the status tells */
	int error;
	bool told; /* the error handler knows of it */

	void *buffer;
	int count;
	MPI_Datatype type; /* a duplicate, a predefined one, or MPI_DATATYPE_NULL */
	bool duplicate;
	MPI_Datatype posted_type; /* of the program, until the call returns */
	struct flat *flat;
	uint64_t room; /* bytes of the buffer's type */
	bool bounces;  /* the message goes to `offer` first, because the buffer is shorter */
	struct offer offer;

	bool offered, noted; /* of a send */
	struct note note;
	int world; /* the other side's rank */
	struct piece *table;
	size_t table_bytes;
	unsigned int early; /* pairs that are moved while the table is got */
	struct dibber_fi_hold *hold;
	uint32_t reached; /* key of the held memory */
	int64_t base;	  /* the buffer's address from its begin */
	struct dibber_fi_counts counts, table_counts;
	uint8_t *temporary; /* of a type that no command writes */

	/* A persistent request: its handle is the engine's, which the engine starts only when the
	 * message is its own. */
	bool persistent;
	MPI_Request active; /* what a start has made: a general request, or the handle */
	int peer, tag;
};

void typed_open(void);	/* MPI has begun; all ranks call it */
void typed_close(void); /* before MPI ends */
bool typed_on(void);
void typed_enter(void);
void typed_leave(void);

/* Bytes that a status tells. */
uint64_t typed_bytes(const MPI_Status *status);
void typed_set_bytes(MPI_Status *status, uint64_t bytes);
bool typed_is_offer(const void *bytes, uint64_t length);

/* A send that the card carries out; or NULL, then it is the engine's. With `handle` the program
 * gets a request. */
struct request *typed_send(const void *buffer, int count, MPI_Datatype type, int dest, int tag,
			   MPI_Comm comm, bool handle);

/* A receive. NULL only if the engine must refuse it, or without memory. */
struct request *typed_receive(void *buffer, int count, MPI_Datatype type, int source, int tag,
			      MPI_Comm comm, bool handle);

/* A receive of a message that is here already; `stashed` is freed. The caller has not entered. */
struct request *typed_deliver(void *buffer, int count, MPI_Datatype type, MPI_Comm comm,
			      struct stashed *stashed, bool handle);

void typed_wait(const struct request *request);
/* Wait, tell the status and the error handler, and give the request back. Returns its error. */
int typed_end(struct request *request, MPI_Status *status);
void typed_put(struct request *request);

/* A persistent request of the engine joins the table. Returns whether it did. */
bool typed_keep(MPI_Request handle, bool sends, void *buffer, int count, MPI_Datatype type,
		int peer, int tag, MPI_Comm comm);

/* Let stash_forget() be called when the communicator ends. */
void typed_know(MPI_Comm comm);

/* The request behind a handle of the program, with a further user; or NULL. */
struct request *typed_find(MPI_Request handle);

/* A communicator's attribute goes. */
int typed_forget(MPI_Comm comm, int keyval, void *value, void *extra);

/* What a probe has taken: the oldest that a receive matches. The caller has entered. */
struct stashed *stash_take(int source, int tag, MPI_Comm comm);
bool stash_is_empty(void);
/* A communicator ends. */
void stash_forget(MPI_Comm comm);

void collectives_close(void);

/* The table of handles (handles.c). */
bool handles_add(MPI_Request handle, void *object);
void handles_remove(MPI_Request handle);
bool handles_any(void);
void *handles_find(MPI_Request handle, void (*hold)(void *object));

#endif
