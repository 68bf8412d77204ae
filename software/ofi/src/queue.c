/* Completion queues. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "charge.h"
#include "domain.h"
#include "pool.h"
#include "progress.h"
#include "queue.h"

struct queue_entry {
	struct list place;
	struct fi_cq_err_entry entry;
	fi_addr_t source;
};

static struct pool entries;

void dfi_queue_report(struct queue *queue, const struct fi_cq_err_entry *entry, fi_addr_t source)
{
	struct queue_entry *item = pool_get(&entries, sizeof(*item));

	if (!item) {
		/* A program that waits for this completion would wait for ever. */
		FI_WARN(&dfi_provider, FI_LOG_CQ, "no memory for a completion\n");
		abort();
	}
	item->entry = *entry;
	item->source = source;
	list_append(&queue->entries, &item->place);
}

static size_t write_entry(const struct queue *queue, void *to, const struct fi_cq_err_entry *from)
{
	const struct fi_cq_tagged_entry full = {
		.op_context = from->op_context,
		.flags = from->flags,
		.len = from->len,
		.buf = from->buf,
		.data = from->data,
		.tag = from->tag,
	};
	size_t bytes;

	/* Each format is the beginning of the next one. */
	switch (queue->format) {
	case FI_CQ_FORMAT_CONTEXT:
		bytes = sizeof(struct fi_cq_entry);
		break;
	case FI_CQ_FORMAT_MSG:
		bytes = sizeof(struct fi_cq_msg_entry);
		break;
	case FI_CQ_FORMAT_DATA:
		bytes = sizeof(struct fi_cq_data_entry);
		break;
	default:
		bytes = sizeof(full);
	}
	memcpy(to, &full, bytes);
	return bytes;
}

/* Returns how many entries it took, -FI_EAVAIL if the oldest is an error, or -FI_EAGAIN. */
static ssize_t take(struct queue *queue, void *buffer, size_t count, fi_addr_t *source)
{
	uint8_t *at = buffer;
	size_t taken = 0;

	while (taken < count && !list_empty(&queue->entries)) {
		struct queue_entry *item =
			member_of(queue->entries.next, struct queue_entry, place);

		if (item->entry.err)
			return taken ? (ssize_t)taken : -FI_EAVAIL;
		at += write_entry(queue, at, &item->entry);
		if (source)
			source[taken] = item->source;
		taken++;
		list_remove(&item->place);
		pool_put(&entries, item);
	}
	return taken ? (ssize_t)taken : -FI_EAGAIN;
}

static int glance(void)
{
	dfi_charge(CHARGE_GLANCE, 1);
	return -FI_EAGAIN;
}

static ssize_t queue_readfrom(struct fid_cq *fid, void *buffer, size_t count, fi_addr_t *source)
{
	struct queue *queue = member_of(fid, struct queue, fid);
	ssize_t rc;

	dfi_enter();
	if (list_empty(&queue->entries)) {
		/* Programs read until nothing is left, and then go on with what they have read. So
		 * the first read in vain looks at nothing. */
		rc = queue->gave ? glance() : dfi_progress(queue->domain, true);
		queue->gave = false;
		if (rc && list_empty(&queue->entries)) {
			dfi_leave();
			return rc;
		}
	} else if (!count) {
		/* A program that reads nothing asks for progress. */
		dfi_progress(queue->domain, false);
	}
	rc = count ? take(queue, buffer, count, source) : -FI_EAGAIN;
	if (rc > 0)
		dfi_charge(CHARGE_ENTRY, (unsigned int)rc);
	queue->gave |= rc > 0;
	dfi_leave();
	return rc;
}

static ssize_t queue_read(struct fid_cq *fid, void *buffer, size_t count)
{
	return queue_readfrom(fid, buffer, count, NULL);
}

static ssize_t queue_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buffer, uint64_t flags)
{
	struct queue *queue = member_of(fid, struct queue, fid);
	ssize_t rc = -FI_EAGAIN;

	(void)flags;
	dfi_enter();
	list_each(place, following, &queue->entries) {
		struct queue_entry *item = member_of(place, struct queue_entry, place);

		if (!item->entry.err)
			continue;
		buffer->op_context = item->entry.op_context;
		buffer->flags = item->entry.flags;
		buffer->len = item->entry.len;
		buffer->buf = item->entry.buf;
		buffer->data = item->entry.data;
		buffer->tag = item->entry.tag;
		buffer->olen = item->entry.olen;
		buffer->err = item->entry.err;
		buffer->prov_errno = item->entry.prov_errno;
		/* There is no data of the provider's. */
		buffer->err_data_size = 0;
		list_remove(&item->place);
		pool_put(&entries, item);
		rc = 1;
		break;
	}
	dfi_leave();
	return rc;
}

static uint64_t wall_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

static ssize_t queue_sreadfrom(struct fid_cq *fid, void *buffer, size_t count, fi_addr_t *source,
			       const void *condition, int timeout)
{
	struct queue *queue = member_of(fid, struct queue, fid);
	uint64_t begin = wall_ms();
	ssize_t rc;

	(void)condition;
	while ((rc = queue_readfrom(fid, buffer, count, source)) == -FI_EAGAIN) {
		if (queue->signalled) {
			queue->signalled = false;
			return -FI_EAGAIN;
		}
		if (timeout >= 0 && wall_ms() - begin >= (uint64_t)timeout)
			return -FI_EAGAIN;
	}
	return rc;
}

static ssize_t queue_sread(struct fid_cq *fid, void *buffer, size_t count, const void *condition,
			   int timeout)
{
	return queue_sreadfrom(fid, buffer, count, NULL, condition, timeout);
}

static int queue_signal(struct fid_cq *fid)
{
	struct queue *queue = member_of(fid, struct queue, fid);

	dfi_enter();
	queue->signalled = true;
	dfi_leave();
	return 0;
}

static const char *queue_strerror(struct fid_cq *fid, int provider_errno, const void *data,
				  char *buffer, size_t length)
{
	const char *text = fi_strerror(provider_errno);

	(void)fid;
	(void)data;
	if (buffer && length)
		snprintf(buffer, length, "%s", text);
	return text;
}

static int queue_close(struct fid *fid)
{
	struct queue *queue = member_of(fid, struct queue, fid.fid);

	dfi_enter();
	while (!list_empty(&queue->entries)) {
		struct queue_entry *item =
			member_of(queue->entries.next, struct queue_entry, place);

		list_remove(&item->place);
		pool_put(&entries, item);
	}
	queue->domain->users--;
	dfi_leave();
	free(queue);
	return 0;
}

static struct fi_ops fid_ops = {
	.size = sizeof(fid_ops),
	.close = queue_close,
	.bind = dfi_no_bind,
	.control = dfi_no_control,
	.ops_open = dfi_no_ops_open,
};

static struct fi_ops_cq queue_ops = {
	.size = sizeof(queue_ops),
	.read = queue_read,
	.readfrom = queue_readfrom,
	.readerr = queue_readerr,
	.sread = queue_sread,
	.sreadfrom = queue_sreadfrom,
	.signal = queue_signal,
	.strerror = queue_strerror,
};

int dfi_queue_open(struct fid_domain *fid, struct fi_cq_attr *attr, struct fid_cq **cq,
		   void *context)
{
	struct domain *domain = domain_of(fid);
	struct queue *queue;

	if (attr && attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC &&
	    attr->wait_obj != FI_WAIT_YIELD)
		return -FI_ENOSYS;
	if (attr && attr->format > FI_CQ_FORMAT_TAGGED)
		return -FI_EINVAL;
	queue = calloc(1, sizeof(*queue));
	if (!queue)
		return -FI_ENOMEM;
	queue->fid.fid.fclass = FI_CLASS_CQ;
	queue->fid.fid.context = context;
	queue->fid.fid.ops = &fid_ops;
	queue->fid.ops = &queue_ops;
	queue->domain = domain;
	queue->format = attr && attr->format ? attr->format : FI_CQ_FORMAT_TAGGED;
	list_init(&queue->entries);
	dfi_enter();
	domain->users++;
	dfi_leave();
	*cq = &queue->fid;
	return 0;
}
