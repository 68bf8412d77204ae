/* Commands of the library itself. The arguments are those of the public calls; they are not
 * checked. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_PUT_H
#define DIBBER_PUT_H

#include <dibber/dibber.h>

int dib_issue_contiguous(struct dib_endpoint *endpoint, enum dibber_opcode opcode,
			 const struct dib_delivery *delivery, uint32_t source_key,
			 uint64_t source_offset, uint32_t target_key, uint64_t target_offset,
			 uint32_t length, enum dibber_call call);
int dib_issue_inline(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
		     const void *data, uint32_t target_key, uint64_t target_offset, uint32_t length,
		     enum dibber_call call);

#endif
