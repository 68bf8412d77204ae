/* Registrations that stay after their operation, and the monitor of memory that goes away. */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cache.h"
#include "domain.h"

#define KEPT	16u   /* registrations of a domain */
#define LEAST	8192u /* bytes: shorter ones go through buffers */
#define WAITING 64u   /* ranges that went away since the last look-up */

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

struct kept {
	struct list place;
	uint8_t *memory;
	size_t length;
	unsigned int rights, users;
	bool gone; /* its memory went away, or it was given up: nobody else may use it */
	struct dib_region *region;
};

/* The monitor ---------------------------------------------------------------------------------- */

struct range {
	uint64_t begin, end;
};

/* The thread must not allocate memory, because that may unmap some. So its ranges have a fixed
 * place; if they do not fit, everything counts as gone. */
static struct {
	pthread_once_t once;
	int fd; /* -1: there is none */
	pthread_mutex_t lock;
	struct range range[WAITING];
	unsigned int count;
	bool overflowed;
} monitor = { .once = PTHREAD_ONCE_INIT, .fd = -1, .lock = PTHREAD_MUTEX_INITIALIZER };

static struct dibber_fi_cache_counts {
	uint64_t hits, misses, gone;
} counts;

static void note(uint64_t begin, uint64_t end)
{
	if (monitor.count == WAITING)
		monitor.overflowed = true;
	else
		monitor.range[monitor.count++] = (struct range){ begin, end };
}

static void take(const struct uffd_msg *message)
{
	switch (message->event) {
	case UFFD_EVENT_UNMAP:
	case UFFD_EVENT_REMOVE:
		note(message->arg.remove.start, message->arg.remove.end);
		break;
	case UFFD_EVENT_REMAP:
		note(message->arg.remap.from, message->arg.remap.from + message->arg.remap.len);
		break;
	}
}

/* The caller of munmap() goes on when its event was read. The lock is held from before that until
 * the range is noted. So a look-up that comes later finds the range. */
static void *watch(void *unused)
{
	struct pollfd ready = { .fd = monitor.fd, .events = POLLIN };
	struct uffd_msg message;

	(void)unused;
	for (;;) {
		if (poll(&ready, 1, -1) < 0)
			continue;
		pthread_mutex_lock(&monitor.lock);
		while (read(monitor.fd, &message, sizeof(message)) == (ssize_t)sizeof(message))
			take(&message);
		pthread_mutex_unlock(&monitor.lock);
	}
	return NULL;
}

static bool start_thread(void)
{
	sigset_t all, former;
	pthread_t thread;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &former);
	rc = pthread_create(&thread, NULL, watch, NULL);
	pthread_sigmask(SIG_SETMASK, &former, NULL);
	if (!rc)
		pthread_detach(thread);
	return !rc;
}

/* Memory is watched in the mode for write protection, of which no page gets any. So no access
 * faults, and the events come all the same. */
static void start(void)
{
	struct uffdio_api api = { .api = UFFD_API,
				  .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP |
					      UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMOVE |
					      UFFD_FEATURE_EVENT_REMAP };
	int wanted = 1;

	fi_param_get_bool(&dfi_provider, "cache", &wanted);
	if (!wanted)
		return;
	monitor.fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	if (monitor.fd >= 0 && !ioctl(monitor.fd, UFFDIO_API, &api) && start_thread())
		return;
	FI_INFO(&dfi_provider, FI_LOG_MR, "no userfaultfd: registrations are not kept\n");
	if (monitor.fd >= 0)
		close(monitor.fd);
	monitor.fd = -1;
}

static bool watch_range(const uint8_t *memory, size_t length)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)memory & ~(page - 1);
	struct uffdio_register range = {
		.range = { .start = begin,
			   .len = (((uintptr_t)memory + length + page - 1) & ~(page - 1)) - begin },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	/* Memory of files and devices is refused. */
	return ioctl(monitor.fd, UFFDIO_REGISTER, &range) == 0;
}

/* The cache ------------------------------------------------------------------------------------ */

static void drop(struct kept *kept)
{
	list_remove(&kept->place);
	dib_unregister(kept->region);
	free(kept);
}

static bool overlaps(const struct kept *kept, const struct range *range)
{
	uint64_t begin = (uintptr_t)kept->memory;

	return begin < range->end && range->begin < begin + kept->length;
}

static bool went_away(const struct kept *kept)
{
	if (monitor.overflowed)
		return true;
	for (unsigned int i = 0; i < monitor.count; i++)
		if (overlaps(kept, &monitor.range[i]))
			return true;
	return false;
}

/* Take out what the monitor has seen to go away, in all domains. */
static void settle(void)
{
	pthread_mutex_lock(&monitor.lock);
	if (monitor.count || monitor.overflowed)
		for (struct domain *domain = dfi_domain_next(NULL); domain;
		     domain = dfi_domain_next(domain))
			list_each(item, following, &domain->kept) {
				struct kept *kept = member_of(item, struct kept, place);

				if (kept->gone || !went_away(kept))
					continue;
				counts.gone++;
				kept->gone = true;
			}
	monitor.count = 0;
	monitor.overflowed = false;
	pthread_mutex_unlock(&monitor.lock);
}

/* Registrations are withdrawn without the monitor's lock, because that may free memory. */
static void clear(struct domain *domain)
{
	list_each(item, following, &domain->kept) {
		struct kept *kept = member_of(item, struct kept, place);

		if (kept->gone && !kept->users)
			drop(kept);
	}
}

static struct kept *find(struct domain *domain, const uint8_t *memory, size_t length,
			 unsigned int rights)
{
	list_each(item, following, &domain->kept) {
		struct kept *kept = member_of(item, struct kept, place);

		if (!kept->gone && (kept->rights & rights) == rights && memory >= kept->memory &&
		    (size_t)(memory - kept->memory) + length <= kept->length)
			return kept;
	}
	return NULL;
}

bool dfi_cache_evict(struct domain *domain)
{
	/* The one that was used least lately stands first. */
	list_each(item, following, &domain->kept) {
		struct kept *kept = member_of(item, struct kept, place);

		if (kept->users)
			continue;
		drop(kept);
		return true;
	}
	return false;
}

static struct kept *make(struct domain *domain, uint8_t *memory, size_t length, unsigned int rights)
{
	unsigned int count = 0;
	struct kept *kept;
	int rc;

	list_each(item, following, &domain->kept)
		count++;
	if ((count >= KEPT && !dfi_cache_evict(domain)) || !watch_range(memory, length))
		return NULL;
	kept = malloc(sizeof(*kept));
	if (!kept)
		return NULL;
	*kept = (struct kept){ .memory = memory, .length = length, .rights = rights };
	do {
		rc = dib_register(domain->endpoint, memory, length, rights, &kept->region);
	} while (rc == DIB_ERR_LIMIT && dfi_cache_evict(domain));
	if (rc) {
		free(kept);
		return NULL;
	}
	counts.misses++;
	list_append(&domain->kept, &kept->place);
	return kept;
}

struct kept *dfi_cache_get(struct domain *domain, void *memory, size_t length, unsigned int rights,
			   uint32_t *key, uint64_t *offset)
{
	struct kept *kept;

	pthread_once(&monitor.once, start);
	if (monitor.fd < 0 || length < LEAST)
		return NULL;
	settle();
	clear(domain);
	kept = find(domain, memory, length, rights);
	counts.hits += kept != NULL;
	if (!kept)
		kept = make(domain, memory, length, rights);
	if (!kept)
		return NULL;
	list_remove(&kept->place);
	list_append(&domain->kept, &kept->place);
	kept->users++;
	*key = dib_key(kept->region);
	*offset = (uint64_t)((uint8_t *)memory - kept->memory);
	return kept;
}

void dfi_cache_put(struct domain *domain, struct kept *kept)
{
	(void)domain;
	kept->users--;
	if (kept->gone && !kept->users)
		drop(kept);
}

void dfi_cache_give_up(struct kept *kept)
{
	kept->gone = true;
}

void dfi_cache_end(struct domain *domain)
{
	list_each(item, following, &domain->kept)
		drop(member_of(item, struct kept, place));
}

/* For tests: how often a registration was found, made, and dropped because its memory went away. */
__attribute__((visibility("default"))) void
dibber_fi_cache_counts(struct dibber_fi_cache_counts *copy);

void dibber_fi_cache_counts(struct dibber_fi_cache_counts *copy)
{
	dfi_enter();
	settle();
	*copy = counts;
	dfi_leave();
}
