/**
 * libdibber: loads and stores of the processor that reach another node's memory.
 *
 * A card with the remote window has a second BAR. What the processor stores there, the card sends
 * to the memory of another node; a load from there returns that memory. dib_window_map() maps a
 * part of a region of another node into the window. docs/design/window.md describes the card's
 * part.
 *
 * Where the processor reaches the card by itself ("vfio:" and "/dev/dibberN"), dib_window_pointer()
 * is the window's memory, and plain assignments work. On a simulated card the same is done by
 * dib_window_store() and dib_window_load().
 *
 * Owners
 *	The card has one table of pages for the window, and this library alone writes it. So the
 *	process that has opened the card writes every entry. A window belongs to the endpoint that
 *	it was mapped with. The entries of its pages name this endpoint as their owner: the faults
 *	of the window count for it. The first window of a card takes the card's last endpoint,
 *	through which the card sends; so on a card with a window no program can open that endpoint.
 *	The first window makes all entries unmapped which a former program has left.
 *
 * Faults
 *	A store returns before it has arrived, so no store tells whether it was executed. The card
 *	counts what was lost or refused. dib_window_barrier() and dib_window_check() return an
 *	error when this count of the endpoint has changed since the last of these two calls, or
 *	since the first window of the endpoint. dib_last_reason() names the kinds:
 *
 *	UNMAPPED (ARGUMENT): an access through a pointer, behind the end of the window.
 *
 *	FORBIDDEN (COMMAND): an access through a pointer, without the right.
 *
 *	MISSHAPED (ARGUMENT): a load through a pointer that has more than 64 bytes, crosses a
 *	boundary of 64 bytes, or adds and is not 4 or 8 aligned bytes.
 *
 *	REFUSALS (COMMAND with the status, for example REMOTE_BAD_KEY after the other side has
 *	unregistered its memory; TIMEOUT when the other node is gone).
 *
 *	OVERFLOWS (LIMIT): a program has stored more through a pointer than the card takes.
 *
 *	LATE (TIMEOUT): a load was not answered in 10 ms; it returned all ones.
 *
 *	Faults that have no owner, UNMAPPED, MISSHAPED, OVERFLOWS and LATE, count for every
 *	endpoint. So another endpoint's mistake can be told too, but no fault is ever hidden.
 *
 * Processes
 *	Through "/dev/dibberN" several processes have windows of one card, four endpoints at most.
 * There the driver writes the table and has the card's last endpoint. Each process reaches its own
 * pages only. What is said above of the library holds for the driver.
 *
 * Stores of different widths in one line, in any order, are no fault.
 *
 * Offsets and lengths are bytes.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_WINDOW_H
#define DIBBER_WINDOW_H

#include <dibber/dibber.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* Remote windows ------------------------------------------------------------------------------- */

struct dib_window;

/* What the processor may do in a window. */
enum dib_window_access {
	DIB_WINDOW_LOAD = 1,
	DIB_WINDOW_STORE = 2,
	/* A load of 4 or 8 bytes adds `addend` to the memory, and returns the value before it. */
	DIB_WINDOW_ADD = 4,
};

struct dib_window_options {
	uint64_t offset; /* of the window's first byte in the region */
	uint64_t length; /* bytes of the window */
	uint32_t key;	 /* of the region at the other node */
	uint16_t node;
	int16_t addend;	 /* with DIB_WINDOW_ADD, else 0 */
	uint32_t access; /* enum dib_window_access, or'ed */
};

/**
 * dib_window_map() - map a part of another node's region into the window.
 * @endpoint: owner of the window, without own_clock
 * @options:  what is mapped
 * @window:   set on success; the caller gives it back with dib_window_unmap()
 *
 * The card has 255 pages of 64 KiB for all windows, and a window takes whole pages. The bytes
 * behind @options->length in the last page are reachable by a pointer, as far as the region has
 * them. Whether the key exists is noticed at the first access. The thread that opened the card
 * makes all calls on windows where the simulator keeps the clock.
 *
 * Errors: ARGUMENT, NOT_FOUND (this card, or the way to it, has no remote window), LIMIT (no pages
 * are left), NO_FIRMWARE, HALTED, COMMAND, TIMEOUT, CLOCK, NO_MEMORY, CLOSED, LOST, PROTOCOL,
 * SYSTEM, FORKED.
 */
int dib_window_map(struct dib_endpoint *endpoint, const struct dib_window_options *options,
		   struct dib_window **window);

/**
 * dib_window_unmap() - give a window back; NULL is allowed.
 *
 * Waits for its stores as dib_window_barrier() does. The card's last endpoint stays with the
 * windows until the card is closed. Closing the endpoint or the card does the same for its windows.
 * A pointer to the window must not be used afterwards: the pages may belong to another window.
 *
 * Errors: ARGUMENT (a handle of another kind), CLOSED, FORKED.
 */
int dib_window_unmap(struct dib_window *window);

/**
 * dib_window_pointer() - the window as memory of this process.
 *
 * Returns NULL where the processor does not reach the card by itself, on a simulated card for
 * example, and for a handle that is not open. vfio-pci maps the memory uncached: each assignment is
 * one TLP, in the program's order. dibber.ko maps it write-combined, or uncached with
 * DIB_WINDOW_ADD: assignments leave in any order, by whole lines where they are whole. A program
 * that assigns itself calls dib_window_barrier() after 512 assignments at most, through
 * "/dev/dibberN" after 128. An assignment of more than 8 bytes, or across a multiple of 8, counts
 * once for each 8 aligned bytes that it touches. More may be lost, which is an OVERFLOW. Any
 * thread.
 *
 * Errors: none.
 */
void *dib_window_pointer(const struct dib_window *window);

/**
 * dib_window_store() - store one value, as an assignment of C does.
 * @offset: in the window, a multiple of @length
 * @data:   the value
 * @length: 1, 2, 4 or 8 bytes
 *
 * Returns at once, except when the card's queue is full: then it waits for room. The value leaves
 * when its line is full, when the processor or the card needs the place, or at dib_window_flush(),
 * dib_window_load() or dib_window_barrier().
 *
 * Errors: ARGUMENT (outside the window, misaligned, or without DIB_WINDOW_STORE), TIMEOUT (no room
 * comes), CLOSED, LOST, PROTOCOL, SYSTEM, FORKED.
 */
int dib_window_store(struct dib_window *window, uint64_t offset, const void *data, size_t length);

/**
 * dib_window_copy() - store many bytes, by whole lines of 64 where they are whole.
 * @offset: in the window
 * @data:   any memory
 * @length: bytes, 1 or more
 *
 * As dib_window_store() for each aligned word, then dib_window_flush().
 *
 * Errors: ARGUMENT (outside the window, or without DIB_WINDOW_STORE), TIMEOUT (no room comes),
 * CLOSED, LOST, PROTOCOL, SYSTEM, FORKED.
 */
int dib_window_copy(struct dib_window *window, uint64_t offset, const void *data, size_t length);

/**
 * dib_window_flush() - let all stores before it leave now.
 *
 * Empties the processor's write-combining buffers and the card's stream buffers. It does not wait
 * until the stores have arrived.
 *
 * Errors: ARGUMENT, TIMEOUT (no room comes), CLOSED, LOST, PROTOCOL, SYSTEM, FORKED.
 */
int dib_window_flush(struct dib_window *window);

/**
 * dib_window_load() - load bytes.
 * @offset: in the window
 * @data:   filled in
 * @length: bytes, 1 or more; with DIB_WINDOW_ADD 4 or 8, and @offset a multiple of it
 *
 * Each aligned word of 8 bytes is a load of its own, and one is under way at a time. A load sees
 * all stores that this process has made before. A load that fails returns all ones. So if a word is
 * all ones, the call does what dib_window_check() does, and returns its error.
 *
 * Errors: ARGUMENT (outside the window, misaligned, or without DIB_WINDOW_LOAD), COMMAND, LIMIT,
 * TIMEOUT, HALTED, CLOSED, LOST, PROTOCOL, SYSTEM, FORKED.
 */
int dib_window_load(struct dib_window *window, uint64_t offset, void *data, size_t length);

/**
 * dib_window_check() - whether all loads and stores of the window's endpoint were executed, as far
 * as the card knows now.
 *
 * Returns 0 if nothing was lost or refused since the last check, barrier or first window of this
 * endpoint. Otherwise returns an error, once.
 *
 * Errors: COMMAND (a command was refused, the reason has its status), LIMIT (stores were lost,
 * because the queue was full), ARGUMENT (unmapped page or bad shape, through a pointer), TIMEOUT
 * (the other node or the card does not answer), HALTED, CLOSED, LOST, PROTOCOL, SYSTEM, FORKED.
 */
int dib_window_check(struct dib_window *window);

/**
 * dib_window_barrier() - wait until all stores before it are in the other nodes' memory, or were
 * refused.
 *
 * Waits for the stores of all windows of the card. Then does what dib_window_check() does.
 *
 * Errors: those of dib_window_check().
 */
int dib_window_barrier(struct dib_window *window);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
