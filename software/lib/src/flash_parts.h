/* The bits of a flash's status register that protect parts of it. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_FLASH_PARTS_H
#define DIBBER_FLASH_PARTS_H

#include <stdint.h>

struct dib_flash_part {
	const char *name;
	uint32_t jedec,
		mask;	 /* a part is this one if its identity is `jedec` in the bits of `mask` */
	uint8_t protect; /* bits of the status; if all are 0, nothing is protected */
};

/* The entry of a part with this JEDEC identity. For an unknown part all bits count that protect in
 * any part, so that the library refuses an erase before the flash ignores it. */
const struct dib_flash_part *dib_flash_part(uint32_t jedec);

#endif
