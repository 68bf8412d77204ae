/* Taking completions and events. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_POLL_H
#define DIBBER_POLL_H

#include <stdbool.h>

#include "admin.h"
#include "endpoint.h"

/* dib_poll() and dib_poll_events() without their checks. An empty poll is not charged. */
int dib_take_completions(struct dib_endpoint *endpoint, struct dib_completion *entries, int max);
int dib_take_events(struct dib_endpoint *endpoint, struct dib_event *entries, int max);
/* `count` polls by calls of a kind found nothing: charge the clock and let time go on. Without a
 * clock, give the simulator a chance to write. */
int dib_found_nothing(struct dib_endpoint *endpoint, enum dibber_call call, uint32_t count);

/* The oldest completion of an endpoint that was not taken, or NULL. */
static inline const struct dibber_queue_entry *dib_peek_completion(struct dib_endpoint *endpoint)
{
	const struct dibber_queue_entry *entry = dib_queue_peek(&endpoint->completions);

	if (entry || __builtin_expect(endpoint->number, 1) || dib_admin_sort(endpoint->card))
		return entry;
	return dib_queue_peek(&endpoint->completions);
}

/* Whether completions can be taken. */
static inline bool dib_has_completion(struct dib_endpoint *endpoint)
{
	return dib_peek_completion(endpoint) || (endpoint->halted && endpoint->busy);
}

#endif
