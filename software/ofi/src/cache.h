/* Registrations that stay after their operation, and the monitor that tells when memory goes away.
 *
 * A registration names pages. When the program frees them and maps others at the same address, a
 * kept registration would reach the former pages. So only memory is kept that userfaultfd(2)
 * watches: the kernel holds munmap(), mremap() and madvise() back until the monitor has read what
 * goes away, and each look-up drops what was touched. Where the kernel gives no userfaultfd,
 * nothing is kept.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_CACHE_H
#define DFI_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct domain;
struct kept;

/* A registration of [memory, memory + length) with at least these rights, from the cache or new.
 * Returns NULL if this memory cannot be kept, or the card has no region; then the caller registers
 * it for its operation. `key` and `offset` are filled in. It is given back with dfi_cache_put(). */
struct kept *dfi_cache_get(struct domain *domain, void *memory, size_t length, unsigned int rights,
			   uint32_t *key, uint64_t *offset);
void dfi_cache_put(struct domain *domain, struct kept *kept);
/* Let it be withdrawn when its last user gives it back. */
void dfi_cache_give_up(struct kept *kept);

/* Give up one registration that nobody uses. Returns whether there was one. */
bool dfi_cache_evict(struct domain *domain);

/* The domain ends. */
void dfi_cache_end(struct domain *domain);

#endif
