/* What an exchange knows: its parties, and the values that they have published. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_EXCHANGE_STATE_H
#define DIBBER_EXCHANGE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include <dibber/exchange.h>

#include "exchange_link.h"
#include "handle.h"

struct dib_value {
	uint32_t party;
	uint32_t name_bytes, data_bytes;
	uint8_t bytes[]; /* the name, then the data */
};

/* Links, flags and counts are indexed by party. Party 0 has a link to each other party, the others
 * have one to party 0. */
struct dib_party {
	struct dib_link link;
	bool gone;
	char why[160];	  /* of a party that is gone */
	uint32_t values;  /* that it published */
	uint64_t arrived; /* barriers that it has come to; known to party 0 and itself */
};

struct dib_parties {
	uint32_t own, count;
	uint64_t released; /* barriers that are over */
	struct dib_party party[DIB_EXCHANGE_PARTIES];
	struct dib_value **values;
	size_t value_count, value_room;
};

struct dib_exchange {
	struct dib_handle handle;
	uint64_t timeout_ns;
	struct dib_endpoint *endpoint; /* or NULL */
	struct dib_parties *parties;
};

#endif
