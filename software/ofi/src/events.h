/* Event queues. Nothing that this provider does ends later than its call, so none ever has an
 * event. Programs open one nevertheless. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_EVENTS_H
#define DFI_EVENTS_H

#include "provider.h"

/* The operation `eq_open` of a fabric. */
int dfi_events_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
		    void *context);

#endif
