/* The beginning of an exchange: its parties find each other. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_EXCHANGE_MEET_H
#define DIBBER_EXCHANGE_MEET_H

#include "exchange_state.h"
#include "exchange_where.h"

/* A token as it stands in a greeting: 64 bytes, padded with zeros. ARGUMENT. */
int dib_meet_token(const char *text, char token[64]);

/* Party 0: accept the others. TIMEOUT. */
int dib_meet_gather(struct dib_parties *all, const struct dib_listeners *listeners,
		    const char token[64], uint64_t timeout_ns);

/* Another party: connect to party 0, again and again until it listens. `path`: of a rendezvous
 * file, whose token is used if there is no other; NULL: none. The errors of dib_exchange_connect().
 */
int dib_meet_reach(struct dib_parties *all, const char *where, const char *path, const char *token,
		   uint64_t timeout_ns);

#endif
