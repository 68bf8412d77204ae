/* Counters of completions. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>
#include <time.h>

#include "counter.h"
#include "domain.h"
#include "progress.h"

static struct counter *counter_of(struct fid_cntr *fid)
{
	return member_of(fid, struct counter, fid);
}

static uint64_t counter_read(struct fid_cntr *fid)
{
	struct counter *counter = counter_of(fid);
	uint64_t value;

	dfi_enter();
	dfi_progress(counter->domain, true);
	value = counter->value;
	dfi_leave();
	return value;
}

static uint64_t counter_readerr(struct fid_cntr *fid)
{
	struct counter *counter = counter_of(fid);
	uint64_t errors;

	dfi_enter();
	dfi_progress(counter->domain, true);
	errors = counter->errors;
	dfi_leave();
	return errors;
}

static int change(struct fid_cntr *fid, uint64_t *place, uint64_t base, uint64_t value)
{
	(void)fid;
	dfi_enter();
	*place = base + value;
	dfi_leave();
	return 0;
}

static int counter_add(struct fid_cntr *fid, uint64_t value)
{
	return change(fid, &counter_of(fid)->value, counter_of(fid)->value, value);
}

static int counter_set(struct fid_cntr *fid, uint64_t value)
{
	return change(fid, &counter_of(fid)->value, 0, value);
}

static int counter_adderr(struct fid_cntr *fid, uint64_t value)
{
	return change(fid, &counter_of(fid)->errors, counter_of(fid)->errors, value);
}

static int counter_seterr(struct fid_cntr *fid, uint64_t value)
{
	return change(fid, &counter_of(fid)->errors, 0, value);
}

static int64_t wall_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int counter_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	struct counter *counter = counter_of(fid);
	int64_t begin = wall_ms();
	uint64_t errors = counter->errors;
	int rc;

	for (;;) {
		dfi_enter();
		rc = counter->value >= threshold ? 0 : dfi_progress(counter->domain, true);
		if (!rc && counter->value < threshold)
			rc = counter->errors != errors ? -FI_EAVAIL : -FI_EAGAIN;
		dfi_leave();
		if (rc != -FI_EAGAIN)
			return rc;
		if (timeout >= 0 && wall_ms() - begin >= timeout)
			return -FI_ETIMEDOUT;
	}
}

static int counter_close(struct fid *fid)
{
	struct counter *counter = member_of(fid, struct counter, fid.fid);

	dfi_enter();
	counter->domain->users--;
	dfi_leave();
	free(counter);
	return 0;
}

static struct fi_ops fid_ops = {
	.size = sizeof(fid_ops),
	.close = counter_close,
	.bind = dfi_no_bind,
	.control = dfi_no_control,
	.ops_open = dfi_no_ops_open,
};

static struct fi_ops_cntr counter_ops = {
	.size = sizeof(counter_ops),
	.read = counter_read,
	.readerr = counter_readerr,
	.add = counter_add,
	.set = counter_set,
	.wait = counter_wait,
	.adderr = counter_adderr,
	.seterr = counter_seterr,
};

int dfi_counter_open(struct fid_domain *fid, struct fi_cntr_attr *attr, struct fid_cntr **cntr,
		     void *context)
{
	struct counter *counter;

	if (attr && ((attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC &&
		      attr->wait_obj != FI_WAIT_YIELD) ||
		     attr->events != FI_CNTR_EVENTS_COMP))
		return -FI_ENOSYS;
	counter = calloc(1, sizeof(*counter));
	if (!counter)
		return -FI_ENOMEM;
	counter->fid.fid.fclass = FI_CLASS_CNTR;
	counter->fid.fid.context = context;
	counter->fid.fid.ops = &fid_ops;
	counter->fid.ops = &counter_ops;
	counter->domain = domain_of(fid);
	dfi_enter();
	counter->domain->users++;
	dfi_leave();
	*cntr = &counter->fid;
	return 0;
}
