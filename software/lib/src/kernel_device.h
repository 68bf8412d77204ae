/* A card of the transport /dev/dibberN: what its files share. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_KERNEL_DEVICE_H
#define DIBBER_KERNEL_DEVICE_H

#include <pthread.h>

#include "transport.h"

struct named {
	struct dib_mapping mapping;
	struct named *next;
};

struct kernel_device {
	struct dib_transport base;
	char *path;
	int file;	  /* without an endpoint: registers, and the card's end */
	uint8_t *bar;	  /* as long as BAR 0; only windows of open endpoints are the card there */
	bool ended;	  /* the card has */
	unsigned int any; /* an open endpoint, or 0 */

	pthread_mutex_t lock;		 /* guards what follows */
	int endpoints[DIBBER_ENDPOINTS]; /* open files, or -1 */
	struct named *names;
	uint8_t *aperture; /* as long as BAR 2, or NULL; only windows are the card */
	unsigned int windows[DIBBER_ENDPOINTS]; /* of each endpoint */
	uint64_t place[DIBBER_ENDPOINTS];	/* of BAR 2 for mmap(), of each that had windows */
	uint64_t control;			/* offset in BAR 2 of the page of sequences */
	uint32_t keys[DIBBER_REGIONS];		/* of regions, by entry of the card's table */
	unsigned int owners[DIBBER_REGIONS];	/* the endpoint of each */
};

static inline struct kernel_device *dib_kernel(struct dib_transport *transport)
{
	return (struct kernel_device *)transport;
}

#endif
