/* The transport to a card in a PCIe slot: registers by mapped memory, the card's DMA through the
 * IOMMU, interrupts by eventfd. */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <errno.h>
#include <linux/vfio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "descriptors.h"
#include "error.h"
#include "mapped_bar.h"
#include "transport.h"
#include "vfio_device.h"

#define NAP_NS 50000 /* pause between two looks at a queue: a wait adds it to a transfer */

static struct vfio_device *self(struct dib_transport *transport)
{
	return (struct vfio_device *)transport;
}

static int vfio_open(const char *address, struct dib_transport **transport)
{
	struct vfio_device *v = calloc(1, sizeof(*v));
	int rc;

	if (!v)
		return dib_fail(DIB_ERR_NO_MEMORY, "no memory for a card");
	v->base.ops = &dib_transport_vfio;
	for (unsigned int i = 0; i < DIB_ENDS; i++)
		v->ends[i] = -1;
	rc = dib_vfio_device_open(v, address);
	if (rc) {
		dib_vfio_device_close(v);
		free(v);
		return rc;
	}
	pthread_mutex_init(&v->lock, NULL);
	*transport = &v->base;
	return 0;
}

static void vfio_close(struct dib_transport *transport)
{
	struct vfio_device *v = self(transport);

	dib_vfio_device_close(v);
	for (unsigned int i = 0; i < DIB_ENDS; i++) {
		if (v->ends[i] >= 0)
			dib_fd_close(v->ends[i]);
	}
	pthread_mutex_destroy(&v->lock);
	free(v);
}

/* Registers ------------------------------------------------------------------------------------ */

static int vfio_config_read(struct dib_transport *transport, uint64_t offset, void *data,
			    size_t length)
{
	struct vfio_device *v = self(transport);

	if (pread(v->device, data, length, (off_t)(v->config + offset)) != (ssize_t)length)
		return dib_fail(DIB_ERR_SYSTEM, "a configuration read: %s", strerror(errno));
	return 0;
}

static int vfio_config_write(struct dib_transport *transport, uint64_t offset, const void *data,
			     size_t length)
{
	struct vfio_device *v = self(transport);

	if (pwrite(v->device, data, length, (off_t)(v->config + offset)) != (ssize_t)length)
		return dib_fail(DIB_ERR_SYSTEM, "a configuration write: %s", strerror(errno));
	return 0;
}

/* Whether the value is what an absent card reads, and the card is absent. */
static bool is_gone(const struct vfio_device *v, uint32_t word)
{
	return word == DIB_GONE && dib_bar_load(v->bar, DIBBER_HOST_MAGIC) == DIB_GONE;
}

static int vfio_bar_read(struct dib_transport *transport, uint64_t offset, void *data,
			 size_t length)
{
	const struct vfio_device *v = self(transport);

	if (is_gone(v, dib_bar_copy_from(v->bar, offset, data, length)))
		return dib_fail(DIB_ERR_LOST, "the card no longer answers: all reads return ones");
	return 0;
}

static int vfio_bar_write(struct dib_transport *transport, uint64_t offset, const void *data,
			  size_t length)
{
	dib_bar_copy_to(self(transport)->bar, offset, data, length);
	return 0;
}

/* Mapped at the first call, so that a card without a window costs nothing. */
static int vfio_aperture(struct dib_transport *transport, uint64_t *bytes, uint8_t **memory)
{
	struct vfio_device *v = self(transport);
	int rc = 0;

	pthread_mutex_lock(&v->lock);
	if (!v->aperture)
		rc = dib_vfio_device_map_aperture(v);
	*bytes = v->aperture_bytes;
	*memory = v->aperture;
	pthread_mutex_unlock(&v->lock);
	return rc;
}

static int vfio_submit(struct dib_transport *transport, const struct dib_submission *s)
{
	dib_bar_submit(self(transport)->bar, s);
	return 0;
}

/* Memory --------------------------------------------------------------------------------------- */

static int vfio_map(struct dib_transport *transport, const struct dib_mapping *mapping)
{
	struct vfio_iommu_type1_dma_map map = {
		.argsz = sizeof(map),
		.vaddr = (uintptr_t)mapping->memory,
		.iova = mapping->iova,
		.size = mapping->size,
		.flags = VFIO_DMA_MAP_FLAG_READ |
			 (mapping->last > mapping->first ? VFIO_DMA_MAP_FLAG_WRITE : 0),
	};

	if (ioctl(self(transport)->container, VFIO_IOMMU_MAP_DMA, &map) == 0)
		return 0;
	if (errno == ENOMEM)
		return dib_fail(DIB_ERR_NO_MEMORY,
				"the system pins no %llu bytes more: see 'ulimit -l'",
				(unsigned long long)mapping->size);
	return dib_fail(DIB_ERR_SYSTEM, "VFIO_IOMMU_MAP_DMA: %s", strerror(errno));
}

static int vfio_unmap(struct dib_transport *transport, const struct dib_mapping *mapping)
{
	struct vfio_iommu_type1_dma_unmap unmap = {
		.argsz = sizeof(unmap),
		.iova = mapping->iova,
		.size = mapping->size,
	};

	if (ioctl(self(transport)->container, VFIO_IOMMU_UNMAP_DMA, &unmap) < 0)
		return dib_fail(DIB_ERR_SYSTEM, "VFIO_IOMMU_UNMAP_DMA: %s", strerror(errno));
	return 0;
}

/* Interrupts and waiting ----------------------------------------------------------------------- */

static int vfio_set_vector(struct dib_transport *transport, unsigned int vector, int fd)
{
	struct vfio_device *v = self(transport);
	struct {
		struct vfio_irq_set head;
		int32_t fds[DIBBER_VECTORS];
	} set = { .head = {
			  .flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
			  .index = VFIO_PCI_MSIX_IRQ_INDEX,
		  } };
	int rc = 0;

	if (vector >= DIBBER_VECTORS)
		return dib_fail(DIB_ERR_ARGUMENT, "vector %u: the card has %u", vector,
				DIBBER_VECTORS);
	pthread_mutex_lock(&v->lock);
	/* Kernels before 6.5 cannot add a vector that was not there when the first one was set. */
	set.head.start = v->vectors_on ? vector : 0;
	set.head.count = v->vectors_on ? 1 : DIBBER_VECTORS;
	for (unsigned int i = 0; i < set.head.count; i++)
		set.fds[i] = set.head.start + i == vector ? fd : -1;
	set.head.argsz = (uint32_t)(sizeof(set.head) + set.head.count * sizeof(set.fds[0]));
	if (ioctl(v->device, VFIO_DEVICE_SET_IRQS, &set) < 0)
		rc = dib_fail(DIB_ERR_SYSTEM, "VFIO_DEVICE_SET_IRQS: %s", strerror(errno));
	else
		v->vectors_on = true;
	pthread_mutex_unlock(&v->lock);
	return rc;
}

/* The kernel tells that it wants the device back, or of an error that it cannot correct. A kernel
 * without such an interrupt leaves this to the look at the card. */
static unsigned int vfio_ends(struct dib_transport *transport, int fds[DIB_ENDS],
			      uint32_t events[DIB_ENDS])
{
	static const uint32_t indices[DIB_ENDS] = { VFIO_PCI_REQ_IRQ_INDEX,
						    VFIO_PCI_ERR_IRQ_INDEX };
	struct vfio_device *v = self(transport);
	unsigned int count = 0;

	for (unsigned int i = 0; i < DIB_ENDS; i++) {
		struct {
			struct vfio_irq_set head;
			int32_t fd;
		} set = { .head = {
				  .argsz = sizeof(set),
				  .flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
				  .index = indices[i],
				  .count = 1,
			  } };

		if (v->ends[i] < 0)
			v->ends[i] = dib_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
		set.fd = v->ends[i];
		if (set.fd < 0 || ioctl(v->device, VFIO_DEVICE_SET_IRQS, &set) < 0)
			continue;
		fds[count] = set.fd;
		events[count++] = EPOLLIN;
	}
	return count;
}

static bool vfio_has_ended(struct dib_transport *transport)
{
	struct vfio_device *v = self(transport);
	bool ended = dib_bar_load(v->bar, DIBBER_HOST_MAGIC) == DIB_GONE;
	uint64_t count;

	for (unsigned int i = 0; i < DIB_ENDS; i++)
		ended |=
			v->ends[i] >= 0 && read(v->ends[i], &count, sizeof(count)) == sizeof(count);
	if (ended)
		__atomic_store_n(&v->ended, true, __ATOMIC_RELAXED);
	return ended;
}

/* The card reaches memory by itself, so there is nothing to do but wait. */
static int vfio_serve(struct dib_transport *transport, int timeout_ms)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };

	if (__atomic_load_n(&self(transport)->ended, __ATOMIC_RELAXED))
		return dib_fail(DIB_ERR_LOST,
				"the card failed or is gone, or the system wants it back");
	if (timeout_ms > 0)
		nanosleep(&nap, NULL);
	return 0;
}

const struct dib_transport_ops dib_transport_vfio = {
	.scheme = "vfio",
	.open = vfio_open,
	.close = vfio_close,
	.config_read = vfio_config_read,
	.config_write = vfio_config_write,
	.bar_read = vfio_bar_read,
	.bar_write = vfio_bar_write,
	.aperture = vfio_aperture,
	.submit = vfio_submit,
	.map = vfio_map,
	.unmap = vfio_unmap,
	.set_vector = vfio_set_vector,
	.ends = vfio_ends,
	.has_ended = vfio_has_ended,
	.serve = vfio_serve,
};
