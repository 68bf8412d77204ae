/* Which bits of a flash's status register protect parts of it from being changed. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_FLASH_PARTS_H
#define DIBBER_FLASH_PARTS_H

#include <stdint.h>

struct dib_flash_part {
	const char *name;
	uint32_t jedec,
		mask;	 /* a part is this one if its identity is `jedec` in the bits of `mask` */
	uint8_t protect; /* bits of the status: nothing is protected if all of them are 0 */
};

/*
 * What is known of the part with this JEDEC identity. Of an unknown part every bit counts that
 * protects in any part, so that an erase is refused rather than ignored by the flash.
 */
const struct dib_flash_part *dib_flash_part(uint32_t jedec);

#endif
