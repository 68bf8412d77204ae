/* Messages of the program, as they come from peers. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_MESSAGE_H
#define DFI_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

struct domain;
struct message;
struct peer;

#define MESSAGE_LIMIT 0x7fffffffu /* bytes of the longest message or transfer */

/* A flag beside libfabric's: a success is not reported. */
#define DFI_SILENT (UINT64_C(1) << 63)

/* Each returns false if no peer of this provider sends such a message. */
bool dfi_message_eager(struct domain *domain, struct peer *peer, const struct message *message);
bool dfi_message_offer(struct domain *domain, struct peer *peer, const struct message *message);
bool dfi_message_fetched(struct domain *domain, struct peer *peer, const struct message *message);

#endif
