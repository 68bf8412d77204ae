/* What the provider offers, and whether that is what a program asks for. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_INFO_H
#define DFI_INFO_H

#include "provider.h"

/* The operation `getinfo` of the provider. */
int dfi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info);

#endif
