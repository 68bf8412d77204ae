/* Calls of the provider for typed messages (docs/design/typed-sends.md): memory that stays
 * reachable over several commands, and gets between walks whose keys are known.
 *
 * They use the domain of direct.h. All calls may be made by any thread.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_OFFER_H
#define DFI_OFFER_H

#include "direct.h"

struct dibber_fi_hold;

/**
 * dibber_fi_hold() - make memory reachable until dibber_fi_release().
 * @offered: others may read it; else this process's gets may write it
 * @place:   filled in
 * @offset:  of the first byte of @memory from the begin of the place
 *
 * The registration comes from the provider's cache where it can. Returns 0 or a negative FI_
 * number: -FI_EAGAIN if no region of the card is free.
 */
int dibber_fi_hold(void *memory, size_t length, int offered, struct dibber_fi_hold **hold,
		   struct dibber_fi_place *place, uint64_t *offset);
/* With @failed nobody reaches the memory any more; else its registration may stay in the cache. */
void dibber_fi_release(struct dibber_fi_hold *hold, int failed);

/**
 * dibber_fi_get() - get from a walk there to a walk here, with one command.
 * @place:  of the other process; its key is not used
 * @there:  with the key of its region, and that of its list
 * @here:   the same
 * @counts: `pending` is counted up now and down at the end
 *
 * Returns 0; or a negative FI_ number, and then nothing was begun.
 */
int dibber_fi_get(const struct dibber_fi_place *place, const struct dib_side *there,
		  const struct dib_side *here, uint32_t bytes, struct dibber_fi_counts *counts);

/* The positive FI_ number of what ended the way to another process, or 0. */
int dibber_fi_lost(const struct dibber_fi_place *place);

/* While this is on, progress takes what is there and does not wait. The library's test of the
 * engine's requests lets the engine go on within its own progress, which has waited already. */
void dibber_fi_poll_only(int on);

#endif
