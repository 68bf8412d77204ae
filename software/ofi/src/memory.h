/* The program's memory as the card reaches it: by a region of the program, or by one that is
 * registered for an operation.
 *
 * A registration outlives its operation only if the program made it, or in the cache, which drops
 * it when its memory goes away (cache.h).
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_MEMORY_H
#define DFI_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "list.h"

struct domain;
struct dib_region;
struct kept;

#define IOV_LIMIT 4u

struct pieces {
	struct iovec iov[IOV_LIMIT];
	void *desc[IOV_LIMIT];
	size_t count;
	size_t length; /* of all */
};

struct hold {
	uint32_t key;
	uint64_t offset;
	struct dib_region *region; /* made for this operation, or NULL */
	struct kept *kept;	   /* a registration of the cache, or NULL */
	void *bounce;		   /* of several pieces, or NULL */
};

/* Copy the caller's description of its memory. Returns 0 or -FI_EINVAL if it has too many pieces,
 * or bytes at the address 0. */
int dfi_pieces(struct pieces *pieces, const struct iovec *iov, void **desc, size_t count);

void dfi_gather(void *to, const struct pieces *pieces);
/* Copy `length` bytes into the pieces, from `skip` bytes after their begin. Returns how many found
 * room. */
size_t dfi_scatter(const struct pieces *pieces, size_t skip, const void *from, size_t length);

/* Make memory in one piece reachable, as dfi_hold(). */
int dfi_hold_memory(struct domain *domain, void *memory, size_t length, unsigned int rights,
		    struct hold *hold);

/* Make the first `length` bytes of `pieces` reachable. `rights` is one enum dibber_right.
 * Returns 0, -FI_EAGAIN if the card has no free region now but other
 * operations will give one back, or another negative FI_ number. */
int dfi_hold(struct domain *domain, const struct pieces *pieces, size_t length, unsigned int rights,
	     struct hold *hold);

/* The operation has failed, but its peer may still read the memory when the cable is back. Then the
 * peer must get an error, because the program may have written other bytes there. So the
 * registration does not stay in the cache. */
void dfi_give_up(struct hold *hold);

/* Give it back. With `arrived`, that many bytes are copied from a bounce buffer to the pieces. */
void dfi_release(struct domain *domain, struct hold *hold, const struct pieces *pieces,
		 size_t arrived);

#endif
