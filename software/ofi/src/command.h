/* Commands of libdibber that wait for a slot of the card, and their ends. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_COMMAND_H
#define DFI_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include <dibber/dibber.h>

#include "list.h"

struct domain;
struct peer;

#define BUFFERS	     32u
#define BUFFER_BYTES 4160u /* of a buffer of staging, and of a slot of a ring */

enum command_kind {
	COMMAND_INLINE,
	COMMAND_PUT,
	COMMAND_GET,
};

struct command {
	struct list place; /* among those that wait */
	enum command_kind kind;
	struct peer *peer;
	uint8_t flags; /* enum dibber_flag */
	uint32_t notice;
	uint32_t length;
	uint32_t local_key, remote_key;
	uint64_t local_offset, remote_offset;
	int buffer; /* of staging, or -1 */
	/* COMMAND_INLINE: the bytes. COMMAND_PUT with copies: the heap's copy of the bytes until a
	 * buffer is free. */
	uint8_t data[DIBBER_INLINE_BYTES];
	uint8_t *copy;
	/* COMMAND_GET with `land`: get into a buffer, and copy to `land` at the end. */
	void *land;
	/* Of a strided command: the walk there; its other side is a walk here, or contiguous. Each
	 * may have an index list. */
	struct strided {
		struct dib_side here, there;
	} *strided;
	/* Called once, with an enum dibber_status, or with a negative FI_ number if the command was
	 * not executed. */
	void (*done)(struct domain *domain, struct command *command, int status);
	void *owner;
};

/* A new command, or NULL. It ends with dfi_command_issue(). */
struct command *dfi_command_new(enum command_kind kind, struct peer *peer,
				void (*done)(struct domain *, struct command *, int), void *owner);

/* Give a COMMAND_PUT its bytes: they go inline if they fit, else from a copy of at most
 * BUFFER_BYTES. Returns 0 or a negative FI_ number; then the command is gone. */
int dfi_command_copy(struct command *command, const void *data, uint32_t length);

/* Let a COMMAND_PUT put `length` bytes, which are copied, to the walk `there`; or a COMMAND_GET get
 * the walk into a buffer of staging, where `done` finds the bytes at local_offset. Returns 0 or a
 * negative FI_ number; then the command is gone. */
int dfi_command_scatter(struct command *command, const void *data, uint32_t length,
			const struct dib_walk *there);

/* Let a command go from the one side to the other. Returns as dfi_command_scatter(). */
int dfi_command_stride(struct command *command, const struct dib_side *here,
		       const struct dib_side *there, uint32_t length);

/* Send a command, at once or when there is room. `done` is called later, never from here. */
void dfi_command_issue(struct domain *domain, struct command *command);

/* Take the ends of commands. Returns how many there were or a negative enum dib_error. */
int dfi_commands_poll(struct domain *domain);

/* Send what waits. */
void dfi_commands_push(struct domain *domain);

/* The card's endpoint has ended: end all commands that wait. */
void dfi_commands_drop(struct domain *domain);

#endif
