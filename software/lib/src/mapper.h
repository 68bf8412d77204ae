/* Discovery and routing, independent of any card. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIB_MAPPER_H
#define DIB_MAPPER_H

#include <stdbool.h>
#include <stdint.h>

#include "dibber/dibber.h"

enum dib_heard {
	DIB_HEARD_NOBODY, /* no answer in time */
	DIB_HEARD_HOST,	  /* `node` answered; `word`: as DIBBER_SCOUTED_TWO says */
	DIB_HEARD_SELF,	  /* the scout came back to this card, by the link in `word` */
	DIB_HEARD_SWITCH, /* a switch answered with `word` of its register bank */
};

struct dib_heard_from {
	unsigned int node;
	uint32_t word;
};

/* Sends a scout by `route`, to be answered by `back`. `question` is for a switch at the end of the
 * route. Returns an enum dib_heard, or a negative error, which ends the mapping. */
typedef int (*dib_ask)(void *context, uint32_t route, uint32_t back, uint32_t question,
		       struct dib_heard_from *from);

/* A question for a word of a switch. */
#define DIB_ASK(name) (DIBBER_SWITCH_##name / 4)

/* Map what can be reached by one link or two. A scout without an answer is repeated up to
 * `attempts` times. Returns 0, or the error of `ask`. */
int dib_discover(dib_ask ask, void *context, unsigned int own, unsigned int links,
		 unsigned int attempts, struct dib_network *network);

/* The same for a card on a ring of so many nodes, 3 to DIB_NETWORK_PORTS. It is mapped as a switch
 * with so many ports: a turn is a number of nodes onward. */
int dib_discover_ring(dib_ask ask, void *context, unsigned int own, unsigned int attempts,
		      unsigned int nodes, struct dib_network *network);

#endif
