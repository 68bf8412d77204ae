/* CPU time of the provider's calls, and of the engine between them, at the simulator's clock.
 *
 * Calls of libdibber charge themselves. For the rest each call of the provider adds up instructions
 * by a table: its own, and those that the engine above it executes for such a call. The sum is paid
 * before the next command, wait or question for the time. tests/system/mpi_costs.py measures what
 * the table holds.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_CHARGE_H
#define DFI_CHARGE_H

#include <stdbool.h>
#include <stddef.h>

struct dib_endpoint;

#define CHARGE(kind, provider, openmpi) CHARGE_##kind,
enum charge {
#include "charges.h"
	CHARGES,
};
#undef CHARGE

/* Read the parameters `charge` and `engine`. Returns 0, or -FI_EINVAL for an engine that the table
 * does not have. */
int dfi_charge_begin(void);

/* Whether calls are charged. */
bool dfi_charges(void);

/* `count` calls of a kind were made. */
void dfi_charge(enum charge kind, unsigned int count);

/* The provider has copied bytes. Up to a line of memory is part of the table. */
void dfi_charge_copy(size_t bytes);

/* Tell the clock. A failure shows again in the call that follows. */
void dfi_charge_pay(struct dib_endpoint *endpoint);

#endif
