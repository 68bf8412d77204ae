/* The card of this process, the lock of the provider, and this process's place in the clock. */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "card.h"
#include "charge.h"
#include "errors.h"
#include "provider.h"
#include "routes.h"

#define ENDPOINTS 8u
#define LOOK_NS	  1000000 /* between two looks of the watcher */
#define SLEEPING  3u	  /* looks that find the thread asleep outside, until it pauses */
#define AWAY	  1000u	  /* looks that find the thread outside, asleep or not */
#define PATIENT	  8u	  /* equal times that a program is told until time goes on */
#define STEP_NS	  200u	  /* about as long as so many questions take on hardware */

static struct {
	struct dfi_card card;
	unsigned int users;
	struct dib_endpoint *endpoint[ENDPOINTS];
	bool watched, ends, paused;
	pthread_t watcher;
	pid_t thread;	  /* that made the last call */
	pthread_t caller; /* the same */
	uint64_t calls;	  /* of the provider that have begun */
} the;

/* Threads come in by turns. A thread that polls gives the lock back and takes it again at once, and
 * a mutex would let the others wait for seconds. */
static struct {
	uint32_t next;	 /* of the thread that comes next */
	uint32_t served; /* of the thread that is in, or that may come in: a futex(2) */
} turns;

static long sleep_or_wake(int op, uint32_t value)
{
	return syscall(SYS_futex, &turns.served, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static void take_turn(void)
{
	uint32_t own = __atomic_fetch_add(&turns.next, 1, __ATOMIC_SEQ_CST), now;

	while ((now = __atomic_load_n(&turns.served, __ATOMIC_SEQ_CST)) != own)
		sleep_or_wake(FUTEX_WAIT, now);
}

/* Returns whether no thread was in, and this one is now. */
static bool try_turn(void)
{
	uint32_t now = __atomic_load_n(&turns.served, __ATOMIC_SEQ_CST);

	return __atomic_compare_exchange_n(&turns.next, &now, now + 1, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_SEQ_CST);
}

static void end_turn(void)
{
	uint32_t following = turns.served + 1;

	__atomic_store_n(&turns.served, following, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&turns.next, __ATOMIC_SEQ_CST) != following)
		sleep_or_wake(FUTEX_WAKE, INT_MAX);
}

static struct dib_endpoint *speaker(void)
{
	for (unsigned int i = 0; i < ENDPOINTS; i++)
		if (the.endpoint[i])
			return the.endpoint[i];
	return NULL;
}

void dfi_enter(void)
{
	take_turn();
	the.calls++;
	/* gettid(2) is a system call. */
	if (!the.thread || !pthread_equal(the.caller, pthread_self())) {
		the.caller = pthread_self();
		the.thread = (pid_t)syscall(SYS_gettid);
	}
	if (!the.paused)
		return;
	/* A failure shows again in the call that follows. */
	dib_clock_enter(speaker());
	the.paused = false;
}

void dfi_leave(void)
{
	end_turn();
}

/* The watcher ---------------------------------------------------------------------------------- */

/* Whether a thread of this process waits for something. proc(5): number (name) state … */
static bool is_asleep(pid_t thread)
{
	char path[64], text[256];
	const char *state;
	size_t length;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)thread);
	file = fopen(path, "re");
	if (!file)
		return true; /* the thread has ended */
	length = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[length] = 0;
	state = strrchr(text, ')');
	return state && state[1] == ' ' && state[2] != 'R';
}

/* A program that waits outside the provider, for its launcher or a file, must not hold simulated
 * time: the rank that it waits for may need that time. The provider cannot see what the program
 * waits for. So this thread looks, and pauses in the place of the program's thread. */
static void *watch(void *unused)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	unsigned int asleep = 0, away = 0;
	uint64_t calls = 0;

	(void)unused;
	while (!__atomic_load_n(&the.ends, __ATOMIC_ACQUIRE)) {
		nanosleep(&pause, NULL);
		/* Who waits for this thread's end is in. */
		if (!try_turn()) {
			asleep = away = 0;
			continue;
		}
		if (calls != the.calls)
			asleep = away = 0;
		calls = the.calls;
		away++;
		asleep = is_asleep(the.thread) ? asleep + 1 : 0;
		if (!the.paused && speaker() && (asleep > SLEEPING || away > AWAY)) {
			dib_clock_act_for(the.thread);
			the.paused = dib_clock_pause(speaker()) == 0;
			dib_clock_act_for(0);
			asleep = away = 0;
		}
		end_turn();
	}
	return NULL;
}

/* Only a simulated card has a clock that can be held. */
static int start_watcher(const struct dib_card_info *info)
{
	if (!info->simulated_clock)
		return 0;
	the.ends = false;
	if (pthread_create(&the.watcher, NULL, watch, NULL))
		return -FI_EAGAIN;
	the.watched = true;
	return 0;
}

static void end_watcher(void)
{
	if (!the.watched)
		return;
	__atomic_store_n(&the.ends, true, __ATOMIC_RELEASE);
	the.watched = false;
	pthread_join(the.watcher, NULL);
}

/* Picoseconds of simulated time, or of the system's clock on hardware; 0 without an open card. */
__attribute__((visibility("default"))) uint64_t dibber_fi_now_ps(void);

uint64_t dibber_fi_now_ps(void)
{
	static unsigned int repeats;
	static uint64_t former_ps;
	struct dib_clock clock = { 0 };

	dfi_enter();
	if (speaker())
		dfi_charge_pay(speaker());
	if (speaker() && dib_clock_now(speaker(), &clock))
		clock.now_ps = 0;
	/* A program that asks until the time has changed would wait for ever, because its own
	 * instructions take no simulated time. */
	repeats = clock.now_ps == former_ps ? repeats + 1 : 0;
	former_ps = clock.now_ps;
	if (speaker() && repeats >= PATIENT) {
		dib_wait(speaker(), STEP_NS);
		repeats = 0;
	}
	dfi_leave();
	return clock.now_ps;
}

/* Opening -------------------------------------------------------------------------------------- */

/* The place of this process among those of its host, which launchers tell it, or -1. */
static long own_place(void)
{
	static const char *const names[] = { "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
					     "PMI_LOCAL_RANK", "SLURM_LOCALID" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *text = getenv(names[i]);

		if (text && *text)
			return strtol(text, NULL, 10);
	}
	return -1;
}

static int open_named(const char *uri, unsigned int place)
{
	struct dib_card_info info;
	char *firmware = NULL;
	int rc = dib_open(uri, NULL, &the.card.card);

	if (rc)
		return rc;
	rc = dib_card_info(the.card.card, &info);
	/* A card that was reset has no program, and takes its node number from the list. */
	if (!rc && !info.mcp_identity) {
		fi_param_get_str(&dfi_provider, "firmware", &firmware);
		if ((rc = dib_node_set(the.card.card, place)) ||
		    (rc = dib_firmware_load(the.card.card, firmware ? firmware : "")) ||
		    (rc = dib_card_info(the.card.card, &info)))
			goto failed;
	}
	if (rc || (rc = dfi_routes_read(the.card.card, info.node)))
		goto failed;
	the.card.node = info.node;
	the.card.endpoints = info.endpoints;
	if (!start_watcher(&info))
		return 0;
	rc = DIB_ERR_SYSTEM;
failed:
	dib_close(the.card.card);
	the.card.card = NULL;
	return rc;
}

/* The list is `first,second,…`. With a place from the launcher that card is taken, without one the
 * first that nobody uses. */
static int open_one_of(char *list)
{
	long place = own_place();
	int rc = DIB_ERR_NOT_FOUND;
	char *rest = list, *uri;

	for (unsigned int i = 0; (uri = strsep(&rest, ",")) != NULL; i++) {
		if (place >= 0 && place != (long)i)
			continue;
		rc = open_named(uri, i);
		if (rc == 0)
			return 0;
		FI_WARN(&dfi_provider, FI_LOG_DOMAIN, "%s: %s: %s\n", uri, dib_strerror(rc),
			dib_last_reason());
		if (rc != DIB_ERR_IN_USE)
			return rc;
	}
	if (place >= 0)
		FI_WARN(&dfi_provider, FI_LOG_DOMAIN,
			"FI_DIBBER_CARD names no free card for place %ld of this host\n", place);
	return rc;
}

bool dfi_card_is_named(void)
{
	char *list = NULL;

	return !fi_param_get_str(&dfi_provider, "card", &list) && list && *list;
}

int dfi_card_get(struct dfi_card *card)
{
	char *named = NULL, *list;
	int rc = 0;

	if (!the.card.card) {
		if (!dfi_card_is_named())
			return -FI_ENODEV;
		fi_param_get_str(&dfi_provider, "card", &named);
		if ((rc = dfi_charge_begin()))
			return rc;
		list = strdup(named);
		if (!list)
			return -FI_ENOMEM;
		rc = open_one_of(list);
		free(list);
	}
	if (rc)
		return dfi_error(rc);
	the.users++;
	*card = the.card;
	return 0;
}

void dfi_card_put(void)
{
	if (--the.users)
		return;
	end_watcher();
	dib_close(the.card.card);
	the.card.card = NULL;
	dfi_routes_forget();
	the.paused = false;
}

void dfi_card_add(struct dib_endpoint *endpoint)
{
	for (unsigned int i = 0; i < ENDPOINTS; i++)
		if (!the.endpoint[i]) {
			the.endpoint[i] = endpoint;
			return;
		}
}

void dfi_card_remove(struct dib_endpoint *endpoint)
{
	for (unsigned int i = 0; i < ENDPOINTS; i++)
		if (the.endpoint[i] == endpoint)
			the.endpoint[i] = NULL;
}
