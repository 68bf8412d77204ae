/* Endpoint 0, the administrator. It runs one command at a time and waits for its completion. A
 * program may have opened endpoint 0 as well. Then its commands and the administrator's go through
 * one queue, and so do their completions. The thread that looks first sorts the completions: those
 * of the program go into a queue of the library, from which dib_poll() takes them as from any other
 * queue. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <string.h>
#include <time.h>

#include "admin.h"
#include "admin_queue.h"
#include "card.h"
#include "clock.h"
#include "endpoint.h"
#include "error.h"
#include "halt.h"
#include "queue.h"
#include "transport.h"

/* Simulated time where there is a clock. A region is removed when the last transfer that uses it
 * has ended. With a lost peer that takes 80 ms. */
#define TIMEOUT_NS 200000000u

static uint64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A command for a card without a running control program fails. The card's state only adds words to
 * the reason. */
static int fail_without_program(struct dib_card *card, unsigned int participant, const char *what)
{
	static const char *const states[] = { DIBBER_MCP_STATE_NAMES };
	uint32_t state = UINT32_MAX;
	int rc;

	if (!card->behind || !card->admin_memory)
		return dib_fail(DIB_ERR_NO_FIRMWARE, "%s: load a control program first", what);
	/* This register is read in the time of the card's own participant. Other participants would
	 * wait for it while its time waits for them. */
	if (!dib_has_clock(card) || participant == DIB_CARD) {
		rc = dib_read_register(card, DIBBER_HOST_MCP_STATE, &state);
		if (rc)
			return rc;
	}
	return dib_fail(DIB_ERR_NO_FIRMWARE,
			"%s: the control program does not run any more (%s): load one again", what,
			state < sizeof(states) / sizeof(states[0]) ? states[state] : "halted");
}

/* While a command is under way: a control program that was halted does not answer. */
static int check_it_runs(struct dib_card *card, unsigned int participant, const char *what)
{
	uint32_t halts;
	bool ready;
	int rc = dib_program(card, participant, &halts, &ready);

	if (rc || halts == card->halts)
		return rc;
	card->behind = true;
	return ready ? dib_fail(DIB_ERR_HALTED, "%s: another control program was loaded meanwhile",
				what)
		     : fail_without_program(card, participant, what);
}

/* Sharing -------------------------------------------------------------------------------------- */

void dib_admin_share(struct dib_endpoint *endpoint)
{
	struct dib_card *card = endpoint->card;

	pthread_mutex_lock(&card->admin_lock);
	memset(card->admin_sorted, 0, sizeof(card->admin_sorted));
	card->admin_sorted_count = 0;
	card->admin_shared = 0;
	endpoint->completions =
		(struct dib_queue){ .entries = card->admin_sorted, .count = DIB_ADMIN_ENTRIES };
	pthread_mutex_unlock(&card->admin_lock);
}

static bool slot_is_free(const struct dib_card *card)
{
	uint32_t mask = card->fixed.slots - 1, slot = card->admin_producer & mask;

	return !(card->admin_shared & 1u << slot) &&
	       !(card->admin_waits && (card->admin_cookie & mask) == slot);
}

bool dib_admin_begin(struct dib_endpoint *endpoint)
{
	pthread_mutex_lock(&endpoint->card->admin_lock);
	endpoint->producer = endpoint->card->admin_producer;
	return slot_is_free(endpoint->card);
}

void dib_admin_end(struct dib_endpoint *endpoint, bool issued)
{
	struct dib_card *card = endpoint->card;

	if (issued)
		card->admin_shared |= 1u << (card->admin_producer & (card->fixed.slots - 1));
	card->admin_producer = endpoint->producer;
	pthread_mutex_unlock(&card->admin_lock);
}

/* There is room, because the program has at most this many commands under way. */
static void hand_over(struct dib_card *card, const struct dibber_queue_entry *entry)
{
	uint32_t number = card->admin_sorted_count++;
	struct dibber_queue_entry *place = &card->admin_sorted[number % DIB_ADMIN_ENTRIES];

	memcpy(place, entry, offsetof(struct dibber_queue_entry, phase));
	__atomic_store_n(&place->phase, number & DIB_ADMIN_ENTRIES ? 0 : 1, __ATOMIC_RELEASE);
}

int dib_admin_sort(struct dib_card *card)
{
	const struct dibber_queue_entry *entry;
	struct dib_queue *q = &card->admin_queue;
	uint32_t bit;
	int rc = 0;

	pthread_mutex_lock(&card->admin_lock);
	while ((entry = dib_queue_peek(q)) != NULL) {
		q->taken++;
		bit = 1u << (entry->cookie & (card->fixed.slots - 1));
		if (card->admin_waits &&
		    (entry->cookie == card->admin_cookie || !card->endpoints[0])) {
			card->admin_answer = *entry;
			card->admin_waits = false;
		} else if (card->admin_shared & bit) {
			card->admin_shared &= ~bit;
			hand_over(card, entry);
		}
	}
	if (q->taken - q->told >= DIB_ADMIN_ENTRIES / 2) {
		q->told = q->taken;
		rc = dib_write_register(card, dib_doorbell(0, DIBBER_DOORBELL_CQ_CONSUMER),
					q->taken);
	}
	pthread_mutex_unlock(&card->admin_lock);
	return rc;
}

/* Commands ------------------------------------------------------------------------------------- */

/* Write the command and ring the doorbell, if a slot is free. */
static bool try_to_issue(struct dib_card *card, struct dibber_admin_command *command, int *rc)
{
	bool free_slot;

	pthread_mutex_lock(&card->admin_lock);
	free_slot = slot_is_free(card);
	*rc = 0;
	if (free_slot) {
		command->cookie = card->admin_producer;
		*rc = card->transport->ops->bar_write(card->transport,
						      dib_slot(0, card->admin_producer &
									  (card->fixed.slots - 1)),
						      command, sizeof(*command));
		if (!*rc)
			*rc = dib_write_register(card,
						 dib_doorbell(0, DIBBER_DOORBELL_COMMAND_PRODUCER),
						 card->admin_producer + 1);
		if (!*rc) {
			card->admin_producer++;
			card->admin_cookie = command->cookie;
			card->admin_waits = true;
		}
	}
	pthread_mutex_unlock(&card->admin_lock);
	return free_slot;
}

static bool is_answered(struct dib_card *card)
{
	bool answered;

	pthread_mutex_lock(&card->admin_lock);
	answered = !card->admin_waits;
	pthread_mutex_unlock(&card->admin_lock);
	return answered;
}

/* Issue the command when a slot is free, then wait for its completion. */
static int execute(struct dib_card *card, unsigned int participant,
		   struct dibber_admin_command *command, const char *what)
{
	uint64_t begin = monotonic_ns();
	bool issued = false, over = false;
	unsigned int waits = 0;
	int rc;

	for (;;) {
		rc = dib_admin_sort(card);
		if (!rc && !issued)
			issued = try_to_issue(card, command, &rc);
		if (rc || (issued && is_answered(card)))
			return rc;
		if (over)
			return dib_fail(DIB_ERR_TIMEOUT,
					"%s: no answer from the control program in %u ms", what,
					TIMEOUT_NS / 1000000u);
		rc = dib_admin_wait(card, participant);
		if (dib_has_clock(card))
			over = rc == 0 && ++waits == TIMEOUT_NS / DIB_ADMIN_LOOK_NS;
		else
			over = monotonic_ns() - begin > 100ull * TIMEOUT_NS;
		if (rc >= 0)
			rc = check_it_runs(card, participant, what);
		if (rc < 0)
			return rc;
	}
}

_Static_assert(offsetof(struct dibber_admin_command, cookie) ==
			       offsetof(struct dibber_route_command, cookie) &&
		       sizeof(struct dibber_admin_command) == sizeof(struct dibber_route_command),
	       "any command of the administrator");

/* `halts`: the card's count when the program ran that the command is for; NULL for any. */
static int run(struct dib_card *card, unsigned int participant, const uint32_t *halts,
	       struct dibber_admin_command *command, const char *what,
	       struct dibber_queue_entry *answer)
{
	int rc;

	if (card->transport->observes)
		return dib_fail(DIB_ERR_IN_USE,
				"%s: this handle observes the card, which another program drives",
				what);
	rc = dib_admin_follow(card, participant);
	if (rc)
		return rc;
	if (halts && *halts != card->halts)
		return dib_fail(DIB_ERR_HALTED, "%s: the control program was halted", what);
	if (!card->firmware)
		return fail_without_program(card, participant, what);
	if (dib_is_administered(card->transport)) {
		*answer = (struct dibber_queue_entry){ .status = DIBBER_STATUS_OK };
		return card->transport->ops->administer(card->transport, command);
	}
	rc = execute(card, participant, command, what);
	if (rc) {
		/* It is unknown whether the command will still run, so this control program is not
		 * relied on any more. */
		card->firmware = false;
		pthread_mutex_lock(&card->admin_lock);
		card->admin_waits = false;
		pthread_mutex_unlock(&card->admin_lock);
		return rc;
	}
	*answer = card->admin_answer;
	if (answer->cookie != command->cookie)
		rc = dib_fail(DIB_ERR_PROTOCOL,
			      "%s: the control program completed command %u instead of %u", what,
			      answer->cookie, command->cookie);
	return rc;
}

int dib_admin_run(struct dib_card *card, unsigned int participant, void *command, const char *what,
		  struct dibber_queue_entry *answer)
{
	return run(card, participant, NULL, command, what, answer);
}

static int run_well(struct dib_card *card, unsigned int participant, const uint32_t *halts,
		    struct dibber_admin_command *command, const char *what)
{
	struct dibber_queue_entry entry;
	int rc = run(card, participant, halts, command, what, &entry);

	if (!rc && entry.status != DIBBER_STATUS_OK)
		rc = dib_fail(DIB_ERR_COMMAND, "%s: %s (%s)", what, dib_status_name(entry.status),
			      dib_status_string(entry.status));
	return rc;
}

int dib_admin(struct dib_card *card, unsigned int participant, struct dibber_admin_command *command,
	      const char *what)
{
	return run_well(card, participant, NULL, command, what);
}

int dib_admin_of(struct dib_card *card, unsigned int participant, uint32_t halts,
		 struct dibber_admin_command *command, const char *what)
{
	return run_well(card, participant, &halts, command, what);
}
