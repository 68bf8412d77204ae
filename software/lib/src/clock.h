/* The simulator's clock (docs/design/simulator.md). */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_CLOCK_H
#define DIBBER_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <dibber/dibber.h>

bool dib_has_clock(struct dib_card *card);
int dib_clock_join(struct dib_card *card, unsigned int participant);
/* Leave the clock for good. */
int dib_clock_part(struct dib_card *card, unsigned int participant);
/* Charge `count` calls of a kind to the endpoint's participant, without waiting. */
int dib_charge(struct dib_endpoint *endpoint, enum dibber_call call, uint32_t count);
/* Wait until simulated time has reached what was charged. */
int dib_clock_catch_up(struct dib_endpoint *endpoint);
/* Wait for a write into [iova, iova + length), up to `picoseconds`. Returns 1 when something was
 * written there, 0 when the time has passed, or an error. */
int dib_clock_watch(struct dib_card *card, unsigned int participant, uint64_t iova, uint64_t length,
		    uint64_t picoseconds);

#endif
