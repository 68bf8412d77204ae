/* Building a command and writing it into a slot. The checks return 0, or what the call returns
 * then. The parts that every command needs are inline, because they are most of a put's cost
 * (tests/software/test_put_cost.py). */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_COMMAND_H
#define DIBBER_COMMAND_H

#include "endpoint.h"

#define DIB_NOTICE_FLAGS (DIBBER_FLAG_NOTICE | DIBBER_FLAG_INTERRUPT)
#define DIB_COMMON_FLAGS (DIBBER_FLAG_SOLICIT | DIBBER_FLAG_FENCE)

/* A command of any kind; all have the same head. */
union dib_image {
	struct dibber_command command;
	struct dibber_inline_command in;
	struct dibber_atomic_command atomic;
};

static inline int dib_check_endpoint(const struct dib_endpoint *endpoint)
{
	if (__builtin_expect(endpoint && endpoint->ready, 1))
		return 0;
	return dib_endpoint_refuse(endpoint, "commands");
}

/* Check that both endpoints can send and receive. */
int dib_check_two_sided(const struct dib_endpoint *endpoint, const struct dib_delivery *delivery);

/* `known` are the flags of the operation. */
static inline int dib_check_delivery(const struct dib_delivery *d, unsigned int known)
{
	if (!d)
		return dib_fail(DIB_ERR_ARGUMENT, "no delivery given");
	if (d->flags & ~known)
		return dib_fail(DIB_ERR_ARGUMENT,
				"flags 0x%x: this operation knows 0x%x, see enum dibber_flag",
				d->flags, known);
	if (d->flags & DIBBER_FLAG_INTERRUPT && !(d->flags & DIBBER_FLAG_NOTICE))
		return dib_fail(DIB_ERR_ARGUMENT, "INTERRUPT comes with NOTICE only");
	if (d->endpoint >= DIBBER_ENDPOINTS && d->flags & DIBBER_FLAG_NOTICE)
		return dib_fail(DIB_ERR_ARGUMENT,
				"a notice for endpoint %u: no card has more than %u", d->endpoint,
				DIBBER_ENDPOINTS);
	return 0;
}

/* Refuse a transfer of no bytes. */
int dib_no_bytes(void) __attribute__((cold));

/* `side` is the walk's name for the reason. `bytes` is set to the bytes of the walk. */
int dib_check_walk(const char *side, const struct dib_walk *walk, uint64_t *bytes);

void dib_fill_walk(struct dibber_walk *out, const struct dib_walk *walk);

/* The head that all commands have in common. */
static inline void dib_fill_head(union dib_image *image, enum dibber_opcode opcode,
				 const struct dib_delivery *d, uint32_t length)
{
	image->command.opcode = (uint8_t)opcode;
	image->command.flags = d->flags;
	image->command.endpoint = d->endpoint;
	image->command.node = d->node;
	image->command.length = length;
	image->command.notice = d->notice;
}

/* Give the card a command. */
int dib_issue(struct dib_endpoint *endpoint, union dib_image *image, uint64_t tag,
	      enum dibber_call call);

#endif
