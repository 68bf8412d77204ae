/* The messages of an exchange: values, barriers, and parties that leave. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_EXCHANGE_PARTIES_H
#define DIBBER_EXCHANGE_PARTIES_H

#include "exchange_state.h"

/* Zeroed, with no links; NULL without memory. */
struct dib_parties *dib_parties_new(uint32_t own, uint32_t count);
void dib_parties_end(struct dib_parties *all);

/* Move bytes on all links, and handle what came whole. */
void dib_parties_handle(struct dib_parties *all);
/* Sleep until something can be handled, or until a time. */
void dib_parties_sleep(struct dib_parties *all, uint64_t until);
bool dib_parties_unsent(const struct dib_parties *all);

const struct dib_value *dib_parties_find(const struct dib_parties *all, uint32_t party,
					 const char *name, size_t name_bytes);
/* Publish a value of this party, and send it. NO_MEMORY. */
int dib_parties_publish(struct dib_parties *all, const char *name, size_t name_bytes,
			const void *data, size_t data_bytes);
/* Come to the next barrier; returns its number, from 1 on. */
uint64_t dib_parties_arrive(struct dib_parties *all);

/* A party that is gone so that nothing comes from `party` any more; the number of parties if no
 * such party is gone. `party` may be that number: any party. */
uint32_t dib_parties_lost(const struct dib_parties *all, uint32_t party);

#endif
