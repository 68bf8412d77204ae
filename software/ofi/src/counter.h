/* Counters of completions. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_COUNTER_H
#define DFI_COUNTER_H

#include "provider.h"

struct domain;

struct counter {
	struct fid_cntr fid;
	struct domain *domain;
	uint64_t value, errors;
};

int dfi_counter_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr,
		     void *context);

#endif
