/* The coalescer: consecutive short writes, or reads, of one length at a constant distance in one
 * region of one peer become one strided command.
 *
 * No engine hands a stride down: it calls fi_write() for each block of a vector. The first two
 * transfers of such a run go at once, so a single transfer is never delayed. From the third on they
 * are held together until one does not fit, a buffer is full, or progress is made twice without a
 * further one. Each operation still ends by itself, when its bytes are there.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_COALESCE_H
#define DFI_COALESCE_H

#include <stdbool.h>
#include <stdint.h>

struct domain;
struct op;

/* Take a transfer to or from the region `card_key` of the operation's peer. Returns false if the
 * caller has to issue it. An operation that was taken ends in a later call. `again` is called for
 * each operation if the card does not know the key any more. */
bool dfi_coalesce(struct op *op, uint32_t card_key, void (*again)(struct op *op));

/* Issue what is held. */
void dfi_coalesce_flush(struct domain *domain);

/* Progress is made: issue what is held unless it has grown since the last time. Returns whether
 * something is still held. */
bool dfi_coalesce_progress(struct domain *domain);

/* A domain begins, or ends. */
int dfi_coalesce_begin(struct domain *domain);
void dfi_coalesce_end(struct domain *domain);

#endif
