/* The one call that goes upwards: a flow tells the operation of a transfer that it has ended.
 * operations.c defines transfer_ended(). It is a function known to the linker and no pointer, so
 * that bounds.py can follow the call.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef MCP_ENDED_H
#define MCP_ENDED_H

#include "command.h"
#include "transfer.h"

/* The end of a transfer that is no put. */
void transfer_ended(uint32_t tag);

/* All packets of a transfer are acknowledged, or its flow has given it up. */
static inline void transfer_end(uint32_t tag)
{
	if (transfers[tag].kind <= TRANSFER_INLINE)
		command_end_transfer(tag);
	else
		transfer_ended(tag);
}

#endif
