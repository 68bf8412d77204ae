/* This file is part of Dibber.
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Commands on their way into a slot. The checks return 0, or what the call returns then. */

#ifndef DIBBER_COMMAND_H
#define DIBBER_COMMAND_H

#include "card.h"

#define DIB_NOTICE_FLAGS (DIBBER_FLAG_NOTICE | DIBBER_FLAG_INTERRUPT)
#define DIB_COMMON_FLAGS (DIBBER_FLAG_SOLICIT | DIBBER_FLAG_FENCE)

/* A command of any kind; all begin alike. */
union dib_image {
	struct dibber_command command;
	struct dibber_inline_command in;
	struct dibber_atomic_command atomic;
};

int dib_check_endpoint(const struct dib_endpoint *endpoint);

/* Sends and receives are not for every endpoint. */
int dib_check_two_sided(const struct dib_endpoint *endpoint);

/* `known` are the flags of the operation. */
int dib_check_delivery(const struct dib_delivery *delivery, unsigned int known);

/* `side` is its name, for the reason; `bytes` is what the walk has. */
int dib_check_walk(const char *side, const struct dib_walk *walk, uint64_t *bytes);

void dib_fill_walk(struct dibber_walk *out, const struct dib_walk *walk);

/* The head that all commands have in common. */
void dib_fill_head(union dib_image *image, enum dibber_opcode opcode, const struct dib_delivery *delivery,
		   uint32_t length);

/* Give the card a command. */
int dib_issue(struct dib_endpoint *endpoint, union dib_image *image, uint64_t tag, enum dibber_call call);

#endif
