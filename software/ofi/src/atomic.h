/* Atomics: messages to the process that owns the memory, which executes them in its progress. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_ATOMIC_H
#define DFI_ATOMIC_H

#include <stdbool.h>

#include "provider.h"

struct domain;
struct message;
struct peer;

/* Each returns false if no peer of this provider sends such a message. */
bool dfi_atomic_request(struct domain *domain, struct peer *peer, const struct message *message);
bool dfi_atomic_result(struct domain *domain, struct peer *peer, const struct message *message);

/* The operation `query_atomic` of a domain. */
int dfi_atomic_query(struct fid_domain *domain, enum fi_datatype type, enum fi_op op,
		     struct fi_atomic_attr *attr, uint64_t flags);

#endif
