/* Event queues. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>
#include <time.h>

#include "events.h"
#include "list.h"

static ssize_t events_read(struct fid_eq *eq, uint32_t *event, void *buffer, size_t length,
			   uint64_t flags)
{
	(void)eq, (void)event, (void)buffer, (void)length, (void)flags;
	return -FI_EAGAIN;
}

static ssize_t events_readerr(struct fid_eq *eq, struct fi_eq_err_entry *buffer, uint64_t flags)
{
	(void)eq, (void)buffer, (void)flags;
	return -FI_EAGAIN;
}

static ssize_t events_write(struct fid_eq *eq, uint32_t event, const void *buffer, size_t length,
			    uint64_t flags)
{
	(void)eq, (void)event, (void)buffer, (void)length, (void)flags;
	return -FI_ENOSYS;
}

static ssize_t events_sread(struct fid_eq *eq, uint32_t *event, void *buffer, size_t length,
			    int timeout, uint64_t flags)
{
	const struct timespec wait = { .tv_sec = timeout / 1000,
				       .tv_nsec = timeout % 1000 * 1000000L };

	/* Without a limit the call would never return. */
	if (timeout < 0)
		return -FI_ENOSYS;
	nanosleep(&wait, NULL);
	return events_read(eq, event, buffer, length, flags);
}

static const char *events_strerror(struct fid_eq *eq, int provider_errno, const void *data,
				   char *buffer, size_t length)
{
	(void)eq, (void)data, (void)buffer, (void)length;
	return fi_strerror(provider_errno);
}

static int events_close(struct fid *fid)
{
	free(member_of(fid, struct fid_eq, fid));
	return 0;
}

static struct fi_ops fid_ops = {
	.size = sizeof(fid_ops),
	.close = events_close,
	.bind = dfi_no_bind,
	.control = dfi_no_control,
	.ops_open = dfi_no_ops_open,
};

static struct fi_ops_eq events_ops = {
	.size = sizeof(events_ops),
	.read = events_read,
	.readerr = events_readerr,
	.write = events_write,
	.sread = events_sread,
	.strerror = events_strerror,
};

int dfi_events_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **out,
		    void *context)
{
	struct fid_eq *eq;

	(void)fabric;
	if (attr && attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC &&
	    attr->wait_obj != FI_WAIT_YIELD)
		return -FI_ENOSYS;
	eq = calloc(1, sizeof(*eq));
	if (!eq)
		return -FI_ENOMEM;
	eq->fid.fclass = FI_CLASS_EQ;
	eq->fid.context = context;
	eq->fid.ops = &fid_ops;
	eq->ops = &events_ops;
	*out = eq;
	return 0;
}
