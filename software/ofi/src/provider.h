/* The provider as libfabric sees it, and what all files need of libfabric. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_PROVIDER_H
#define DFI_PROVIDER_H

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

extern struct fi_provider dfi_provider;

/* Calls of libfabric that this provider does not have. They take any arguments. */
int dfi_no_bind(struct fid *fid, struct fid *other, uint64_t flags);
int dfi_no_control(struct fid *fid, int command, void *argument);
int dfi_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);

#endif
