/* What the programs that test dibber.ko have in common. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_TEST_DRIVER_H
#define DIBBER_TEST_DRIVER_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "dibber_interface.h"
#include "dibber_ioctl.h"

#define ALL_RIGHTS 0xfu

/* Pages that the kernel has pinned for devices and not given back (/proc/vmstat). For root: what
 * each processor has counted is added up first. */
static inline long long pinned_pages(void)
{
	long long count, acquired = 0, released = 0;
	int refresh = open("/proc/sys/vm/stat_refresh", O_RDONLY);
	FILE *file = fopen("/proc/vmstat", "r");
	char name[64];

	if (read(refresh, name, sizeof(name)) < 0)
		return -1;
	close(refresh);

	while (file && fscanf(file, "%63s %lld", name, &count) == 2) {
		if (!strcmp(name, "nr_foll_pin_acquired"))
			acquired = count;
		if (!strcmp(name, "nr_foll_pin_released"))
			released = count;
	}
	if (file)
		fclose(file);
	return acquired - released;
}

static int wrong;

/* A call did what it should: 0, or minus the errno. */
static inline void expect(const char *what, long result, long wanted)
{
	if (result == wanted)
		return;
	printf("%s: %ld (%s) for %ld\n", what, result, result < 0 ? strerror((int)-result) : "",
	       wanted);
	wrong = 1;
}

/* Seconds of the wall clock. */
static inline double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double test_begin;

static inline void begin_test(void)
{
	wrong = 0;
	test_begin = now();
}

static inline int end_test(const char *family, const char *name)
{
	printf("%s %s %s\n", family, name, wrong ? "wrong" : "right");
	printf("took %s_%s %u ms\n", family, name, (unsigned int)((now() - test_begin) * 1e3));
	fflush(stdout);
	return wrong;
}

/* Call test_NAME(), and say what came of it. Whether it was wrong. */
#define RUN_TEST(family, name, ...) \
	(begin_test(), test_##name(__VA_ARGS__), end_test(family, #name))

static inline int call(int fd, unsigned long number, void *argument)
{
	return ioctl(fd, number, argument) < 0 ? -errno : 0;
}

/* An endpoint by the driver's own interface. */
struct endpoint {
	int fd;
	struct dibber_endpoint_open open;
	volatile uint8_t *window;
	const volatile struct dibber_queue_entry *queues;
	uint32_t producer, taken;
	uint32_t first; /* cookie of the first command */
};

/* By resource0 of the device, as root: the driver lets nobody write the registers of the link. */
static inline void write_register(const char *card, uint32_t offset, uint32_t value)
{
	volatile uint32_t *bar;
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/sys/class/misc/%s/device/resource0", card);
	fd = open(path, O_RDWR);
	bar = mmap(NULL, 0x10000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (bar == MAP_FAILED)
		abort();
	bar[offset / 4] = value;
	munmap((void *)bar, 0x10000);
	close(fd);
}

static inline int open_number(int fd, uint32_t number, struct dibber_endpoint_open *open)
{
	*open = (struct dibber_endpoint_open){ .number = number,
					       .cq_entries = 64,
					       .eq_entries = 64 };
	return call(fd, DIBBER_IOC_ENDPOINT_OPEN, open);
}

static inline volatile uint32_t *doorbell(struct endpoint *e, uint32_t offset)
{
	return (volatile uint32_t *)(e->window + DIBBER_DOORBELL_OFFSET + offset);
}

/* Open a card and an endpoint of it, and map it: 0, or minus the errno. */
static inline int open_endpoint(const char *path, struct endpoint *e)
{
	void *memory;
	int rc;

	*e = (struct endpoint){ .fd = open(path, O_RDWR | O_CLOEXEC) };
	if (e->fd < 0)
		return -errno;
	rc = open_number(e->fd, DIBBER_ANY_ENDPOINT, &e->open);
	if (rc)
		return rc;
	memory = mmap(NULL, DIBBER_ENDPOINT_STRIDE, PROT_READ | PROT_WRITE, MAP_SHARED, e->fd,
		      (off_t)e->open.window);
	if (memory == MAP_FAILED)
		return -errno;
	e->window = memory;
	memory = mmap(NULL, e->open.queue_bytes, PROT_READ, MAP_SHARED, e->fd,
		      (off_t)e->open.queues);
	if (memory == MAP_FAILED)
		return -errno;
	e->queues = memory;
	e->producer = *doorbell(e, DIBBER_DOORBELL_COMMAND_PRODUCER);
	e->first = e->producer;
	return 0;
}

static inline void close_endpoint(struct endpoint *e)
{
	if (e->window)
		munmap((void *)e->window, DIBBER_ENDPOINT_STRIDE);
	if (e->queues)
		munmap((void *)e->queues, e->open.queue_bytes);
	close(e->fd);
}

/* Give a command. */
static inline void submit(struct endpoint *e, struct dibber_command *command)
{
	volatile uint64_t *slot =
		(volatile uint64_t *)(e->window + e->producer % DIBBER_SLOTS * DIBBER_SLOT_BYTES);
	uint64_t words[DIBBER_SLOT_BYTES / 8];

	command->cookie = e->producer;
	memcpy(words, command, sizeof(words));
	for (unsigned int i = 0; i < DIBBER_SLOT_BYTES / 8; i++)
		slot[i] = words[i];
	*doorbell(e, DIBBER_DOORBELL_COMMAND_PRODUCER) = ++e->producer;
}

/* Wait for the next completion: its status, or minus 1 after half a minute. */
static inline int completed(struct endpoint *e)
{
	const volatile struct dibber_queue_entry *entry = &e->queues[e->taken % 64];

	for (int i = 0; i < 30000; i++) {
		if (entry->phase == !(e->taken & 64)) {
			e->taken++;
			*doorbell(e, DIBBER_DOORBELL_CQ_CONSUMER) = e->taken;
			return entry->cookie == e->first + e->taken - 1 ? entry->status : -2;
		}
		usleep(1000);
	}
	return -1;
}

static inline int add_region(int fd, const void *memory, uint64_t length, uint32_t rights,
			     struct dibber_region_add *add)
{
	*add = (struct dibber_region_add){ .address = (uintptr_t)memory,
					   .length = length,
					   .rights = rights };
	return call(fd, DIBBER_IOC_REGION_ADD, add);
}

static inline int remove_region(int fd, uint32_t key)
{
	struct dibber_region_remove remove = { .key = key };

	return call(fd, DIBBER_IOC_REGION_REMOVE, &remove);
}

#endif
