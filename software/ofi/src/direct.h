/* Calls of the provider for libraries beside an engine that know a stride: commands from walk to
 * walk between memory of two processes. libdibber-pmpi.so finds them in the loaded provider.
 *
 * They use a domain of the process that has exchanged messages. All calls may be made by any
 * thread.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_DIRECT_H
#define DFI_DIRECT_H

#include <stddef.h>
#include <stdint.h>

#include <dibber/dibber.h>

/* Memory of a process as others reach it. It may be copied to them as bytes. */
struct dibber_fi_place {
	uint16_t node;
	uint8_t endpoint;
	uint8_t valid; /* 0: nobody reaches it */
	uint32_t key;
	uint64_t length;
};

struct dibber_fi_region;

/* What is under way for an owner. */
struct dibber_fi_counts {
	unsigned int pending;
	int error; /* positive FI_ number of the first that failed, or 0 */
};

/* A side of a transfer. The walk's offset counts from `memory` here, and from the begin of the
 * place there. With an index list the walk is repeated at each of its distances, which are bytes
 * that are added to the offset. */
struct dibber_fi_side {
	struct dib_walk walk;
	/* Here: the list, or NULL. It must stay until the transfer has ended. */
	int64_t *list;
	size_t entries;
	/* There: where a transfer before this one has put the list; key 0: no list. */
	uint32_t list_key;
	uint64_t list_offset;
};

/**
 * dibber_fi_open() - let other processes write and read memory.
 * @place: filled in for them
 *
 * Returns 0 or a negative FI_ number: -FI_ENODEV without an open domain.
 */
int dibber_fi_open(void *memory, size_t length, struct dibber_fi_region **region,
		   struct dibber_fi_place *place);
int dibber_fi_close(struct dibber_fi_region *region);

/**
 * dibber_fi_move() - transfer from walk to walk with one command.
 * @gets:   from there to here, else from here to there
 * @memory: that the walk here is in, @length bytes; it is registered until the transfer ends
 * @counts: `pending` is counted up now and down at the end
 * @ended:  if not NULL, called with @owner and a positive FI_ number or 0 at the end, from within a
 *          call of the provider
 *
 * Returns 0; or a negative FI_ number, and then nothing was begun: -FI_EAGAIN if no region of the
 * card is free.
 */
int dibber_fi_move(int gets, const struct dibber_fi_place *place,
		   const struct dibber_fi_side *there, void *memory, size_t length,
		   const struct dibber_fi_side *here, size_t bytes, struct dibber_fi_counts *counts,
		   void (*ended)(void *owner, int error), void *owner);

/* For the provider itself: a domain's endpoint begins or ends; progress of another domain lets the
 * transfers of these calls go on. */
struct domain;
void dfi_direct_begin(struct domain *domain);
void dfi_direct_end(struct domain *domain);
void dfi_direct_progress(const struct domain *domain);
struct domain *dfi_direct_domain(void); /* or NULL; the caller has entered */

/* Wait until nothing of `counts` is under way. Returns its error, which is then 0 again. */
int dibber_fi_wait(struct dibber_fi_counts *counts);

#endif
