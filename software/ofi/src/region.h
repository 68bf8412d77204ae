/* Memory that the program has registered. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_REGION_H
#define DFI_REGION_H

#include <stdbool.h>
#include <stdint.h>

#include "list.h"
#include "memory.h"
#include "provider.h"

struct region {
	struct fid_mr fid;
	struct list place; /* in the domain */
	struct domain *domain;
	struct dib_region *region; /* NULL if it has no bytes */
	uint8_t *memory;
	size_t length;
	uint64_t access; /* FI_SEND, FI_REMOTE_READ … */
};

extern struct fi_ops_mr dfi_region_ops;

/* Whether a region of the program serves for a command; then `hold` names the place in it. */
bool dfi_region_covers(void *desc, const struct domain *domain, const void *memory, size_t length,
		       unsigned int rights, struct hold *hold);

/* The memory of this process that a key of the program names, or NULL if `access` is not given or
 * the place is outside. */
void *dfi_region_memory(const struct domain *domain, uint64_t key, uint64_t offset, uint64_t length,
			uint64_t access);

/* The region that has a key of the program, or NULL. */
struct region *dfi_region_of_key(const struct domain *domain, uint64_t key);

#endif
