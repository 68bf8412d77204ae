/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The nonce of a node of a ring, as library and driver choose it (docs/design/ring.md).
 */

#ifndef DIBBER_RING_NONCE_H
#define DIBBER_RING_NONCE_H

#include <linux/types.h>

/* A nonce from 12 drawn bits and the card's node number.
 *
 * A node's tag is the exclusive or of both bytes of its nonce. Bits 4:1 of the tag are the lowest
 * bits of the node number. So up to 16 cards with different numbers have different tags, and
 * nonces that differ in bits 15:1, which a pair of rings needs. Bits 15:1 are never all 0, because
 * such a node elects no scrubber.
 */
static inline __u32 dibber_ring_nonce(__u32 drawn, __u32 node)
{
	__u32 high;

	if (!(drawn & 0xff7))
		drawn = 0xfff;
	high = drawn >> 4 & 0xff;
	return high << 8 | (drawn << 5 & 0xe0) | (drawn >> 3 & 1) | ((node << 1 ^ high) & 0x1e);
}

#endif
