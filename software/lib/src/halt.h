/* Halts of the control program, and the endpoints that lose it. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_HALT_H
#define DIBBER_HALT_H

#include <stdbool.h>
#include <stdint.h>

#include "endpoint.h"

#define DIB_PATIENCE 4000 /* empty polls until the library looks for a halt */
#define DIB_LOOK_NS  250u /* waiting for this time counts as one empty poll */

/* How often the control program was halted, and whether one is ready now. The read takes the time
 * of a participant of the clock. */
int dib_program(struct dib_card *card, unsigned int participant, uint32_t *halts, bool *ready);

/* Ask whether the endpoint's control program still runs. Afterwards the endpoint is `halted`, or
 * has patience again. */
int dib_lose_patience(struct dib_endpoint *endpoint) __attribute__((cold));
/* What calls of a halted endpoint return. */
int dib_halted(const struct dib_endpoint *endpoint) __attribute__((cold));

/* `looks` polls found nothing: whether patience has ended. An empty poll pays two instructions for
 * this. */
static inline bool dib_loses_patience(struct dib_endpoint *endpoint, uint32_t looks)
{
	endpoint->patience -= (int32_t)looks;
	return __builtin_expect(endpoint->patience < 0, 0);
}

/* Whether an interrupt came since the last call. The interrupt may be any endpoint's. */
bool dib_was_woken(struct dib_endpoint *endpoint) __attribute__((cold));

/* Make completions with status HALTED for the commands that the halted program left. Returns how
 * many. */
int dib_give_up(struct dib_endpoint *endpoint, struct dib_completion *entries, int max);

#endif
