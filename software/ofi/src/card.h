/* The card of this process, the lock of the provider, and this process's place in the clock.
 *
 * A process has one card and opens it with its first domain. One lock serializes all calls of the
 * provider, so that any thread may make any call.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_CARD_H
#define DFI_CARD_H

#include <stdbool.h>
#include <stdint.h>

#include <dibber/dibber.h>

struct dfi_card {
	struct dib_card *card;
	unsigned int node;
	unsigned int endpoints; /* that the card has */
};

/* Begin and end a call of the provider. A process that had paused on the simulator's clock holds it
 * again in between. */
void dfi_enter(void);
void dfi_leave(void);

/* Open the card, or take the one that is open. Each success is given back with dfi_card_put().
 * Returns 0 or a negative FI_ number. The caller has entered. */
int dfi_card_get(struct dfi_card *card);
void dfi_card_put(void);

/* A domain's endpoint comes or goes; one of them speaks for the process at the clock. The caller
 * has entered. */
void dfi_card_add(struct dib_endpoint *endpoint);
void dfi_card_remove(struct dib_endpoint *endpoint);

/* Whether a parameter names a card. */
bool dfi_card_is_named(void);

#endif
