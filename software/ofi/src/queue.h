/* Completion queues. They grow with what is reported, so none overflows. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_QUEUE_H
#define DFI_QUEUE_H

#include "list.h"
#include "provider.h"

struct domain;

struct queue {
	struct fid_cq fid;
	struct domain *domain;
	struct list entries; /* struct queue_entry, oldest first */
	enum fi_cq_format format;
	bool signalled;
	bool gave; /* the last read found an entry */
};

int dfi_queue_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
		   void *context);

/* Report the end of an operation; `entry->err` is a positive FI_ number if it failed. */
void dfi_queue_report(struct queue *queue, const struct fi_cq_err_entry *entry, fi_addr_t source);

#endif
