/* The fid_ep of a domain, and its operations. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_ENDPOINT_H
#define DFI_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "counter.h"
#include "domain.h"
#include "memory.h"
#include "provider.h"
#include "queue.h"

#define OPERATIONS 1024u /* that an endpoint can have under way in each direction */

/* Completions of these kinds are counted by a counter each. */
enum counted {
	COUNT_SEND,
	COUNT_RECEIVE,
	COUNT_READ,
	COUNT_WRITE,
	COUNTERS,
};

struct endpoint {
	struct fid_ep fid;
	struct domain *domain;
	struct av *av;
	struct queue *transmit, *receive;
	bool transmit_selective, receive_selective;
	struct counter *counters[COUNTERS];
	uint64_t caps;
	uint64_t transmit_flags, receive_flags; /* of operations that have none of their own */
	size_t min_multi_recv;
	bool enabled;

	struct list posted[2];	   /* receives, [1]: tagged */
	struct list unexpected[2]; /* messages that met no receive */
	struct list claimed;	   /* messages that a peek has claimed */
	/* Operations that a message of the peer ends: offered messages, atomics, lookups of keys.
	 */
	struct list answered_later;
	uint64_t next_id;
	unsigned int under_way[2]; /* [1]: receives */
};

/* An operation of the program, from its call to its completion. */
struct op {
	struct list place;
	struct endpoint *ep;
	struct peer *peer; /* NULL: any */
	uint64_t id;	   /* by which an answer names it */
	uint64_t flags;	   /* of its completion */
	bool receives;
	bool report;	   /* a success is written to the queue */
	bool ended;	   /* its completion was reported */
	unsigned int refs; /* messages and commands of it that have not ended */
	void *context;
	struct pieces pieces;
	struct hold hold;
	int error; /* the first of its commands' */

	/* Messages. */
	uint64_t tag, ignore, data;
	bool has_data;
	size_t used;	      /* multi-receive: bytes that messages have taken */
	unsigned int filling; /* multi-receive: messages that are being fetched */
	bool multi, full;
	struct op *whole; /* this one receives a message for a multi-receive */
	uint64_t offered_length, offered_offset, offered_id;
	uint32_t offered_key;

	/* Transfers and atomics. */
	uint64_t remote_offset, remote_key;
	uint64_t inject; /* FI_INJECT, or 0 */
	bool writes, retried;
	struct pieces result;
	/* What to do when the card has a free region again, or the peer's key is known. */
	void (*again)(struct op *op);
};

struct op *dfi_op_new(struct endpoint *ep, bool receives, uint64_t flags, void *context);
/* Report the end of an operation. It is freed when nothing of it is under way. */
void dfi_op_end(struct op *op, size_t length, int error);
/* The same for the receiver of a message, with all that a completion can tell. */
void dfi_op_end_receive(struct op *op, const struct fi_cq_err_entry *entry, fi_addr_t source);
/* Forget an operation that has not begun. */
void dfi_op_cancel(struct op *op);
/* The operation of this peer's that an answer names, or NULL. */
struct op *dfi_op_answered(struct domain *domain, const struct peer *peer, uint64_t id);
/* A message or command of an operation has ended. */
void dfi_op_put(struct op *op);

/* Wait until a region is free, then call op->again. */
void dfi_op_wait_for_region(struct op *op);
void dfi_ops_retry(struct domain *domain);

/* Whether the endpoint can take an operation. Returns 0 or a negative FI_ number. */
int dfi_endpoint_ready(struct endpoint *ep, bool receives);
/* The peer that an address of the program names, or NULL. */
struct peer *dfi_endpoint_peer(struct endpoint *ep, fi_addr_t address);

/* The operation `endpoint` of a domain. */
int dfi_endpoint_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		      void *context);

extern struct fi_ops_msg dfi_message_ops;
extern struct fi_ops_tagged dfi_tagged_ops;
extern struct fi_ops_rma dfi_transfer_ops;
extern struct fi_ops_atomic dfi_atomic_ops;

#endif
