/* What the library's files share about cards, endpoints and regions. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_CARD_H
#define DIBBER_CARD_H

#include <pthread.h>
#include <stdbool.h>

#include "error.h"
#include "handle.h"
#include "transport.h"

#define DIB_PAGE 4096u /* bytes: the card's view of a page, whatever the processor's */

/* Of endpoint 0, whose queues the administrator has made: completions, events. */
#define DIB_ADMIN_ENTRIES 64u
#define DIB_ADMIN_EVENTS  256u

/* A mapping in the card's bus address space; the card keeps them in a list sorted by address. */
struct dib_map {
	struct dib_mapping mapping;
	struct dib_map *next;
	struct dib_map *more; /* of the same page table */
};

/* Where the pages of a region are, as the card reads it. */
struct dib_page_table {
	void *memory;
	uint64_t *
		entries; /* `memory`: the bus address of each page, bit 0 set where there is none */
	struct dib_map *map;   /* of `memory` */
	struct dib_map *pages; /* what was mapped for it */
};

/* A completion or event queue in host memory. */
struct dib_queue {
	struct dibber_queue_entry *entries;
	uint64_t iova;	/* 0: the card does not write it */
	uint32_t count; /* entries, a power of two */
	uint32_t taken; /* by the program, modulo 2³² */
	uint32_t told;	/* `taken` as the card last heard */
};

struct dib_card {
	struct dib_handle handle;
	struct dib_transport *transport;
	pthread_mutex_t lock; /* guards everything below; held during administrator commands */
	bool closed;
	struct dib_watch
		*watch; /* what wakes those who sleep on a descriptor when the card ends, or NULL */

	struct dib_card_info fixed; /* what never changes, and the node number */
	uint64_t iova_base;
	struct dib_map *maps;
	unsigned int by_message; /* mappings that have no descriptor */

	bool firmware; /* a control program runs that knows the administrator's queue */
	bool behind; /* one may run that does not: it was loaded beside this handle, which saw … */
	uint32_t halts;	    /* … so many halts, as PROGRAM counts them */
	void *admin_memory; /* both queues of endpoint 0: admin.c */
	struct dib_map *admin_map;

	/* What the administrator and the program that has endpoint 0 share, each in a thread of its
	 * own. */
	pthread_mutex_t admin_lock;   /* guards what follows, for moments */
	struct dib_queue admin_queue; /* completions of both */
	uint32_t admin_producer;      /* commands of both, modulo 2³² */
	uint32_t admin_shared; /* bit n: slot n has a command of the program that has not completed
				*/
	bool admin_waits;      /* a command of the administrator has not completed: … */
	uint32_t admin_cookie; /* … this one */
	struct dibber_queue_entry admin_answer; /* its completion */
	struct dibber_queue_entry
		admin_sorted[DIB_ADMIN_ENTRIES]; /* the program's completions: its queue */
	uint32_t admin_sorted_count;		 /* modulo 2³² */

	uint32_t flash_bytes;		  /* 0: it was not asked */
	uint32_t flash_jedec;		  /* its identity, once flash_bytes is known */
	uint64_t flash_first, flash_last; /* what may be changed of it: [first, last) */

	struct dib_endpoint *endpoints[DIBBER_ENDPOINTS];
	struct dib_region *regions[DIBBER_REGIONS];
	uint32_t next_key;  /* the first number that was given as a key to no region … */
	uint32_t keys_left; /* … and how many there are from that one on; both as the card counts
			       them */
};

struct dib_endpoint {
	struct dib_handle handle;
	struct dib_card *card;
	unsigned int number;
	unsigned int participant; /* in the clock: `number`, or DIB_CARD */
	void *memory;		  /* both queues, one mapping, so that one range can be watched */
	size_t memory_length;
	struct dib_map *map;
	struct dib_queue completions, events;
	int event_fd; /* -1 until asked for */
	int edges; /* an epoll of it, or -1: readable from each interrupt until the halts are looked
		      at */
	uint32_t halts; /* of the card when it was opened */
	bool halted;	/* there have been more since then: its program is gone */
	bool ready; /* open, its program runs, no mailbox has it: all that a transfer checks of it
		     */
	int32_t patience; /* looks that may still find nothing, until it is asked whether anybody
			     could answer */
	struct dib_mailbox
		*mailbox; /* to which its commands, completions and events belong, or NULL */

	uint32_t producer; /* commands written, modulo 2³² */
	uint32_t busy;	   /* bit n: slot n's completion has not been polled */
	uint32_t cookie[DIBBER_SLOTS];
	uint64_t tag[DIBBER_SLOTS];
	uint32_t target[DIBBER_SLOTS]; /* key */
	uint8_t opcode[DIBBER_SLOTS];
};

struct dib_region {
	struct dib_handle handle;
	struct dib_card *card;
	unsigned int participant; /* who registered it */
	unsigned int owner;	  /* number of the endpoint that it was registered for */
	struct dib_map *map;	  /* of its memory, or NULL: it has … */
	struct dib_page_table *table;
	uint32_t key;
	uint32_t halts; /* of the card when it was registered */
};

/* card.c */

#define DIB_CARD   0u  /* the participant for calls on the card itself */
#define DIB_NOBODY ~0u /* the caller does not take part in the clock */

/* Whether calls on a handle can be served: 0, or what they return. */
static inline int dib_check_card(const struct dib_card *card)
{
	return dib_handle_check(card, DIB_KIND_CARD);
}

/* Lock the card for a call of a participant; fails when the card was closed. The caller has checked
 * the handle. */
int dib_card_enter(struct dib_card *card, unsigned int participant);
void dib_card_leave(struct dib_card *card);
int dib_read_register(struct dib_card *card, uint32_t offset, uint32_t *value);
int dib_write_register(struct dib_card *card, uint32_t offset, uint32_t value);

/* Where struct dibber_mcp_shared lies in the control program's SRAM. */
static inline uint32_t dib_shared(const struct dib_card *card)
{
	return card->fixed.sram_bytes - DIBBER_SHARED_FROM_END;
}

/* Offset in BAR 0 of a register of an endpoint's doorbell page. */
static inline uint32_t dib_doorbell(unsigned int endpoint, uint32_t offset)
{
	return DIBBER_ENDPOINT_BASE + endpoint * DIBBER_ENDPOINT_STRIDE + DIBBER_DOORBELL_OFFSET +
	       offset;
}

/* Offset in BAR 0 of a command slot. */
static inline uint32_t dib_slot(unsigned int endpoint, uint32_t slot)
{
	return DIBBER_ENDPOINT_BASE + endpoint * DIBBER_ENDPOINT_STRIDE + DIBBER_SLOT_OFFSET +
	       slot * DIBBER_SLOT_BYTES;
}

/* admin_queue.c: all with the card locked */

#define DIB_ADMIN_LOOK_NS \
	1000000u /* how often it is looked whether the control program runs at all */

/* Zeroed administrator's queue, told to the card; before the control program runs. */
int dib_admin_open(struct dib_card *card);
void dib_admin_close(struct dib_card *card);
/* Let up to DIB_ADMIN_LOOK_NS pass, if nothing comes into the queue; 0: they have. */
int dib_admin_wait(struct dib_card *card, unsigned int participant);
/* See whether the program was halted since, and give the queue to one that was loaded beside this
 * handle: what `halts` and `firmware` say is true then. */
int dib_admin_follow(struct dib_card *card, unsigned int participant);

/* admin.c: the same */

/* Run an administrator command, waited for by a participant; `what` is for the reason. */
int dib_admin(struct dib_card *card, unsigned int participant, struct dibber_admin_command *command,
	      const char *what);
/* The same about what belongs to a program that had seen so many halts; DIB_ERR_HALTED when that is
 * gone. */
int dib_admin_of(struct dib_card *card, unsigned int participant, uint32_t halts,
		 struct dibber_admin_command *command, const char *what);
/* As dib_admin(), of any command with its cookie at the same place; OK or not, `entry` is its
 * completion. */
int dib_admin_run(struct dib_card *card, unsigned int participant, void *command, const char *what,
		  struct dibber_queue_entry *entry);

/* Endpoint 0 in the hands of a program. With the card locked: */
void dib_admin_share(struct dib_endpoint *endpoint);
/* Without: take its turn for a command, which sets `producer`; whether there is a slot. The turn
 * ends with or without one. */
bool dib_admin_begin(struct dib_endpoint *endpoint);
void dib_admin_end(struct dib_endpoint *endpoint, bool issued);
/* Give each its completions. */
int dib_admin_sort(struct dib_card *card);

/* halt.c */

/* How often the control program was halted, and whether one is ready now, as a participant of the
 * clock can read it. */
int dib_program(struct dib_card *card, unsigned int participant, uint32_t *halts, bool *ready);
#define DIB_PATIENCE 4000
#define DIB_LOOK_NS  250u /* of waiting, that count as much as a look */

/* Ask whether the endpoint's program is still there: an endpoint is `halted` from then on, or has
 * patience again. */
int dib_lose_patience(struct dib_endpoint *endpoint) __attribute__((cold));
/* What the calls of one that is halted return. */
int dib_halted(const struct dib_endpoint *endpoint) __attribute__((cold));

/* So many looks found nothing: whether that is enough. Who looks in vain pays two instructions for
 * this. */
static inline bool dib_loses_patience(struct dib_endpoint *endpoint, uint32_t looks)
{
	endpoint->patience -= (int32_t)looks;
	return __builtin_expect(endpoint->patience < 0, 0);
}

/* Whether there was an interrupt since the last time this was asked; whose it was is not known. */
bool dib_was_woken(struct dib_endpoint *endpoint) __attribute__((cold));

/* Completions, with status HALTED, of the commands that it left; how many. */
int dib_give_up(struct dib_endpoint *endpoint, struct dib_completion *entries, int max);

/* memory.c */

/* As dib_alloc(), for what the program does not see: children of fork() do not have it. */
int dib_alloc_own(size_t length, void **memory);

/* Give memory a bus address and map it there, `aligned` at a multiple of a power of two. With the
 * card locked. */
int dib_map(struct dib_card *card, void *memory, size_t length, bool writable,
	    struct dib_map **map);
int dib_map_aligned(struct dib_card *card, void *memory, size_t length, uint64_t alignment,
		    bool writable, struct dib_map **map);
int dib_map_queues(struct dib_card *card, void *memory, size_t length, struct dib_map **map);
int dib_unmap(struct dib_card *card, struct dib_map *map);

/* protection.c */

/* Whether each byte may be read, and written if `writable`: 0 or ARGUMENT. Costs three system calls
 * and touches no byte. */
int dib_check_memory(const void *memory, uint64_t length, bool writable);

/* region.c */

/* Have the keys of a card that has just got power begin at a random number, and learn which one is
 * next. */
int dib_keys_begin(struct dib_card *card);
/* Withdraw a region from the card, and enter its memory, in one piece, under another key. With the
 * card locked. */
int dib_region_change_key(struct dib_endpoint *endpoint, struct dib_region *region, uint64_t length,
			  unsigned int rights);
/* Withdraw a region from the card and forget it, leaving the handle as an orphan. With the card
 * locked. */
int dib_region_withdraw(struct dib_card *card, struct dib_region *region);

/* Whether a key names a region of another endpoint of this card. */
bool dib_is_foreign(const struct dib_endpoint *endpoint, uint32_t key) __attribute__((cold));

/* pages.c */

int dib_pages_check(const struct dib_pages *pages);
/* Map the pages, and a table of them. With the card locked, like what undoes it. */
int dib_page_table_make(struct dib_card *card, const struct dib_pages *pages, bool writable,
			struct dib_page_table **table);
int dib_page_table_free(struct dib_card *card, struct dib_page_table *table);

/* endpoint.c */

/* Give up its own place in the clock, if it has one: what was registered there is the card's from
 * now on. With the card locked. */
void dib_endpoint_leave_clock(struct dib_card *card, struct dib_endpoint *endpoint);
/* Close an endpoint on the card, leaving the handle as an orphan. With the card locked. */
int dib_endpoint_withdraw(struct dib_card *card, struct dib_endpoint *endpoint);

static inline int dib_endpoint_check(const struct dib_endpoint *endpoint)
{
	return dib_handle_check(endpoint, DIB_KIND_ENDPOINT);
}

/* Why one that is not `ready` refuses what transfers. */
int dib_endpoint_refuse(const struct dib_endpoint *endpoint, const char *whose)
	__attribute__((cold));

/* After a change of what `ready` depends on. */
static inline void dib_endpoint_update(struct dib_endpoint *endpoint)
{
	endpoint->ready =
		endpoint->handle.life == DIB_LIFE_OPEN && !endpoint->halted && !endpoint->mailbox;
}

/* put.c: commands of what is the library's own; arguments are those of the public calls, and not
 * checked */

int dib_issue_contiguous(struct dib_endpoint *endpoint, enum dibber_opcode opcode,
			 const struct dib_delivery *delivery, uint32_t source_key,
			 uint64_t source_offset, uint32_t target_key, uint64_t target_offset,
			 uint32_t length, enum dibber_call call);
int dib_issue_inline(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
		     const void *data, uint32_t target_key, uint64_t target_offset, uint32_t length,
		     enum dibber_call call);

/* poll.c */

/* dib_poll() and dib_poll_events() without their checks; finding nothing costs nothing. */
int dib_take_completions(struct dib_endpoint *endpoint, struct dib_completion *entries, int max);
int dib_take_events(struct dib_endpoint *endpoint, struct dib_event *entries, int max);
/* `count` looks by calls of a kind found nothing: tell the clock and let time go on, or give the
 * simulator a chance. */
int dib_found_nothing(struct dib_endpoint *endpoint, enum dibber_call call, uint32_t count);

/* mailbox.c */

/* Its endpoint or card is being `closed`: give back what it has, leaving the handle as an orphan.
 */
void dib_mailbox_detach(struct dib_mailbox *mailbox, enum dib_kind closed);

/* watch.c: with the card locked */

/* From now on whatever ends the card, or its endpoint, makes the endpoint's descriptor readable and
 * keeps it so. */
int dib_watch_add(struct dib_card *card, struct dib_endpoint *endpoint);
/* The descriptor is the endpoint's no more. */
void dib_watch_remove(struct dib_card *card, struct dib_endpoint *endpoint);
/* No endpoint is left. */
void dib_watch_stop(struct dib_card *card);
/* The endpoint has ended, the card not. Without the lock. */
void dib_watch_ended(struct dib_endpoint *endpoint);

/* The oldest entry of a queue that was not taken, or NULL: the phase tells new from old. What it
 * announces is in memory. */
static inline const struct dibber_queue_entry *dib_queue_peek(const struct dib_queue *queue)
{
	const struct dibber_queue_entry *entry = &queue->entries[queue->taken & (queue->count - 1)];
	uint32_t phase = queue->taken & queue->count ? 0 : 1;

	/* Acquire: the rest of the entry, and what it announces, is read after the phase. */
	if (__atomic_load_n(&entry->phase, __ATOMIC_ACQUIRE) != phase)
		return NULL;
	return entry;
}

/* The same of an endpoint's completions. */
static inline const struct dibber_queue_entry *dib_peek_completion(struct dib_endpoint *endpoint)
{
	const struct dibber_queue_entry *entry = dib_queue_peek(&endpoint->completions);

	if (entry || __builtin_expect(endpoint->number, 1) || dib_admin_sort(endpoint->card))
		return entry;
	return dib_queue_peek(&endpoint->completions);
}

/* Whether there are completions to be taken. */
static inline bool dib_has_completion(struct dib_endpoint *endpoint)
{
	return dib_peek_completion(endpoint) || (endpoint->halted && endpoint->busy);
}

/* clock.c */

bool dib_has_clock(struct dib_card *card);
int dib_clock_join(struct dib_card *card, unsigned int participant);
/* Leave for good. */
int dib_clock_part(struct dib_card *card, unsigned int participant);
/* Tell the clock of `count` calls of a kind, without waiting. */
int dib_charge(struct dib_endpoint *endpoint, enum dibber_call call, uint32_t count);
/* Wait until simulated time has come to what was charged. */
int dib_clock_catch_up(struct dib_endpoint *endpoint);
/* Wait for a write into [iova, iova + length), or for `picoseconds`. Returns whether it was
 * written. */
int dib_clock_watch(struct dib_card *card, unsigned int participant, uint64_t iova, uint64_t length,
		    uint64_t picoseconds);

/* Whether the completion of such a command carries a value in place of a length. */
static inline bool dib_is_atomic(uint8_t opcode)
{
	return opcode >= DIBBER_OPCODE_FETCH_ADD && opcode <= DIBBER_OPCODE_MASKED_SWAP;
}

#endif
