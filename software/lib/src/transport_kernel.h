/* What the files of the transport /dev/dibberN share. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_TRANSPORT_KERNEL_H
#define DIBBER_TRANSPORT_KERNEL_H

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

/* The error that the driver's errno means, with its reason kept. */
int dib_driver_error(const char *what);

/* transport_kernel_window.c: functions of the transport. */
int dib_kernel_aperture(struct dib_transport *transport, uint64_t *bytes, uint8_t **memory);
int dib_kernel_window_map(struct dib_transport *transport, unsigned int owner,
			  struct dib_window_request *request);
void dib_kernel_window_unmap(struct dib_transport *transport, unsigned int owner,
			     unsigned int first, unsigned int pages);

#endif
