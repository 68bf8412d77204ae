/* What is done with a message of a peer. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_DISPATCH_H
#define DFI_DISPATCH_H

#include <stdbool.h>

#include "ring.h"

/* Returns false if no peer of this provider sends such a message. */
bool dfi_dispatch(struct domain *domain, struct peer *peer, const struct message *message);

#endif
