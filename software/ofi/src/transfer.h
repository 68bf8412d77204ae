/* Transfers to and from a peer's memory, as far as they need messages. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_TRANSFER_H
#define DFI_TRANSFER_H

#include <stdbool.h>

struct domain;
struct message;
struct peer;

/* Each returns false if no peer of this provider sends such a message. */
bool dfi_transfer_note(struct domain *domain, struct peer *peer, const struct message *message);
bool dfi_transfer_ask_key(struct domain *domain, struct peer *peer, const struct message *message);
bool dfi_transfer_tell_key(struct domain *domain, struct peer *peer, const struct message *message);

/* Forget the keys of peers. */
void dfi_transfer_forget(struct domain *domain);

#endif
