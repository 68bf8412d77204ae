/* The card of this process, the lock of the provider, and this process's place in the clock. */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "card.h"
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
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct dfi_card card;
	unsigned int users;
	struct dib_endpoint *endpoint[ENDPOINTS];
	bool watched, ends, paused;
	pthread_t watcher;
	pid_t thread;	/* that made the last call */
	uint64_t calls; /* of the provider that have begun */
} the = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

/* Threads come in by turns. A thread that polls gives the lock back and takes it again at once, and
 * a mutex alone would let the others wait for seconds. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned int next, served;
} turns = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void take_turn(void)
{
	unsigned int own;

	pthread_mutex_lock(&turns.lock);
	own = turns.next++;
	while (turns.served != own)
		pthread_cond_wait(&turns.changed, &turns.lock);
	pthread_mutex_unlock(&turns.lock);
}

static void end_turn(void)
{
	pthread_mutex_lock(&turns.lock);
	turns.served++;
	if (turns.served != turns.next)
		pthread_cond_broadcast(&turns.changed);
	pthread_mutex_unlock(&turns.lock);
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
	pthread_mutex_lock(&the.lock);
	the.calls++;
	the.thread = (pid_t)syscall(SYS_gettid);
	if (!the.paused)
		return;
	/* A failure shows again in the call that follows. */
	dib_clock_enter(speaker());
	the.paused = false;
	pthread_cond_signal(&the.changed);
}

void dfi_leave(void)
{
	pthread_mutex_unlock(&the.lock);
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
	pthread_mutex_lock(&the.lock);
	while (!the.ends) {
		if (the.paused) {
			pthread_cond_wait(&the.changed, &the.lock);
			continue;
		}
		if (calls != the.calls)
			asleep = away = 0;
		calls = the.calls;
		away++;
		asleep = is_asleep(the.thread) ? asleep + 1 : 0;
		if (speaker() && (asleep > SLEEPING || away > AWAY)) {
			dib_clock_act_for(the.thread);
			the.paused = dib_clock_pause(speaker()) == 0;
			dib_clock_act_for(0);
			asleep = away = 0;
			continue;
		}
		pthread_mutex_unlock(&the.lock);
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&the.lock);
	}
	pthread_mutex_unlock(&the.lock);
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
	the.ends = true;
	the.watched = false;
	pthread_cond_signal(&the.changed);
	pthread_mutex_unlock(&the.lock);
	pthread_join(the.watcher, NULL);
	pthread_mutex_lock(&the.lock);
}

/* Picoseconds of simulated time, or of the system's clock on hardware; 0 without an open card. */
__attribute__((visibility("default"))) uint64_t dibber_fi_now_ps(void);

uint64_t dibber_fi_now_ps(void)
{
	static unsigned int repeats;
	static uint64_t former_ps;
	struct dib_clock clock = { 0 };

	dfi_enter();
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
