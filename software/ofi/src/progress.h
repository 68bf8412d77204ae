/* Progress: ends of commands, messages of peers, and peers that are silent. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_PROGRESS_H
#define DFI_PROGRESS_H

#include <stdbool.h>

struct domain;

/* Do what can be done. With `may_wait`, and nothing to do, wait a moment of simulated time for the
 * card; the moments grow to 64 µs while nothing comes. Returns 0 or a negative FI_ number. */
int dfi_progress(struct domain *domain, bool may_wait);

/* The program did something: the next wait is short again. */
void dfi_progress_alert(struct domain *domain);

/* The domain's fid_ep ends. */
void dfi_progress_end(struct domain *domain);

#endif
