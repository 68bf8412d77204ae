/* Address vectors. An fi_addr_t is an index, in maps as in tables. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_AV_H
#define DFI_AV_H

#include "provider.h"

struct domain;
struct peer;

struct av {
	struct fid_av fid;
	struct domain *domain;
	struct peer **peers; /* NULL: removed */
	size_t count, room;
};

struct peer *dfi_av_peer(const struct av *av, fi_addr_t address);

int dfi_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
		void *context);

#endif
