/* Routes to other nodes: those of a file, or those that the card finds itself.
 *
 * Cards on one cable need none. A simulated card forgets its routes when its process opens it, and
 * so does a card behind VFIO, so each process enters them anew.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_ROUTES_H
#define DFI_ROUTES_H

#include <dibber/dibber.h>

/* Enter the routes of the card with number `node` from the file that the parameter `routes` names,
 * if it names one. Returns 0 or an enum dib_error. */
int dfi_routes_read(struct dib_card *card, unsigned int node);

/* Without such a file: let the card look for all nodes if it has no route to this one. A card that
 * finds none keeps what it had, and its first message tells the failure. The caller has entered. */
void dfi_routes_find(struct dib_card *card, unsigned int own, unsigned int node);

/* The card is closed: the next one looks anew. */
void dfi_routes_forget(void);

#endif
