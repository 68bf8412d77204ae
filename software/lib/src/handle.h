/*
 * Handles that stay recognisable after their end.
 *
 * A handle of the API is a pointer into a pool of this library. The pool never gives out an
 * address twice, and its memory stays readable. So a call on a closed handle reads `life`, and
 * refuses. A handle costs 64 bytes or more of address space for ever. The memory behind it goes
 * back to the system when all handles of its chunk are closed.
 *
 * fork() wipes the pool's memory (madvise(2), MADV_WIPEONFORK): a child of the opener reads
 * zeros there. So the one byte of the endpoint that a put checks refuses in a child as it does
 * after a close.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_HANDLE_H
#define DIBBER_HANDLE_H

#include <stdbool.h>
#include <stddef.h>

#include "error.h"

struct dib_chunk;

enum dib_kind {
	DIB_KIND_CARD = 1,
	DIB_KIND_ENDPOINT,
	DIB_KIND_REGION,
	DIB_KIND_MAILBOX,
	DIB_KIND_EXCHANGE,
	DIB_KIND_WINDOW
};

/* 0 is the value in wiped memory. */
enum dib_life {
	DIB_LIFE_OPEN = 1,
	DIB_LIFE_ORPHAN, /* its owner was closed; the handle may still be closed once */
	DIB_LIFE_CLOSED,
};

/* Each struct of a handle begins with this, so the functions here take pointers to any of them. */
struct dib_handle {
	uint16_t kind;	/* enum dib_kind */
	uint16_t life;	/* enum dib_life */
	uint16_t owner; /* of an orphan: enum dib_kind of what was closed */
	struct dib_chunk *chunk;
};

/* Zeroed memory of a handle that is not open yet, or NULL with the reason kept: NO_MEMORY. */
void *dib_handle_new(enum dib_kind kind, size_t bytes);
/* End a handle, also one that the program never got. Nothing may write to it afterwards. */
void dib_handle_end(void *handle);
/* Make it an orphan: its owner, of this kind, was closed. */
void dib_handle_orphan(void *handle, enum dib_kind owner);

/* Why a call on a handle that is not open is refused: ARGUMENT (NULL, or of another kind), CLOSED
 * or FORKED. */
int dib_handle_refuse(const void *handle, enum dib_kind kind) __attribute__((cold));

/* 0, or what the call returns. */
static inline int dib_handle_check(const void *pointer, enum dib_kind kind)
{
	const struct dib_handle *handle = pointer;

	if (__builtin_expect(handle && handle->kind == kind && handle->life == DIB_LIFE_OPEN, 1))
		return 0;
	return dib_handle_refuse(handle, kind);
}

/* For a call that closes. Returns 0 with `*open` false if there is nothing left to close: for NULL
 * and for an orphan. */
int dib_handle_check_close(void *handle, enum dib_kind kind, bool *open);

#endif
