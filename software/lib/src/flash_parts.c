/* The block-protect bits (BP0 …) of the status register, from the datasheets' tables "Status
 * Register". All parts have BP0 to BP2 in bits 2 to 4. Parts with a fourth bit differ in its place.
 * Bits that only choose which end is protected (TB, SEC) do not count, because they protect nothing
 * while all BP bits are 0. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stddef.h>

#include "flash_parts.h"

#define BP2_0	 0x1c
#define BP3_IN_5 0x3c
#define BP3_IN_6 0x5c

static const struct dib_flash_part parts[] = {
	/* Infineon 002-00124 (S25FL-S): BP0 to BP2; bits 5 and 6 are errors of the last erase and
	   program. */
	{ "S25FL-S", 0x010200, 0xffff00, BP2_0 }, /* S25FL128S and S25FL256S */
	{ "S25FL512S", 0x010220, 0xffffff, BP2_0 },
	/* Infineon 002-12878 (S25FL256L): BP3 in bit 5. The 64 and 128 have TB there and SEC in
	   bit 6. */
	{ "S25FL256L", 0x016019, 0xffffff, BP3_IN_5 },
	{ "S25FL-L", 0x016000, 0xffff00, BP2_0 },
	/* Micron N25Q and MT25Q: TB in bit 5, BP3 in bit 6. */
	{ "N25Q, MT25Q", 0x20ba00, 0xffff00, BP3_IN_6 }, /* 3 V */
	{ "N25Q, MT25Q", 0x20bb00, 0xffff00, BP3_IN_6 }, /* 1.8 V */
	/* Winbond W25Q: from 32 MiB on BP3 in bit 5 and TB in bit 6; smaller ones have TB and SEC
	   there. */
	{ "W25Q256", 0xef4019, 0xffffff, BP3_IN_5 },
	{ "W25Q256", 0xef7019, 0xffffff, BP3_IN_5 },
	{ "W25Q512", 0xef4020, 0xffffff, BP3_IN_5 },
	{ "W25Q512", 0xef7020, 0xffffff, BP3_IN_5 },
	{ "W25Q", 0xef4000, 0xffff00, BP2_0 },
	{ "W25Q", 0xef7000, 0xffff00, BP2_0 },
	/* Macronix MX25L and ISSI IS25LP, IS25WP: BP3 in bit 5, bit 6 is Quad Enable, which
	   protects nothing. */
	{ "MX25L", 0xc22000, 0xffff00, BP3_IN_5 },
	{ "MX25U", 0xc22500, 0xffff00, BP3_IN_5 },
	{ "IS25LP", 0x9d6000, 0xffff00, BP3_IN_5 },
	{ "IS25WP", 0x9d7000, 0xffff00, BP3_IN_5 },
};

static const struct dib_flash_part unknown = { "of an unknown part", 0, 0,
					       BP2_0 | BP3_IN_5 | BP3_IN_6 };

const struct dib_flash_part *dib_flash_part(uint32_t jedec)
{
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if ((jedec & parts[i].mask) == parts[i].jedec)
			return &parts[i];
	return &unknown;
}
