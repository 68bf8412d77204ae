/* A card in a PCIe slot as Linux' VFIO gives it to a process (Documentation/driver-api/vfio.rst of
 * the kernel).
 *
 * The interface is that of groups and the type 1 IOMMU, which every kernel since 3.6 has, newer
 * ones also by way of iommufd. Each card has a container of its own, so that nothing is shared
 * between cards. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_VFIO_DEVICE_H
#define DIBBER_VFIO_DEVICE_H

#include <pthread.h>

#include "error.h"
#include "transport.h"

struct vfio_device {
	struct dib_transport base;
	int container, group, device; /* descriptors, or -1 */
	uint8_t *bar;		      /* BAR 0, mapped */
	uint64_t config;	      /* where `device` has the configuration space */
	pthread_mutex_t lock;	      /* guards vectors_on */
	bool vectors_on;	      /* MSI-X is enabled */
	int ends[DIB_ENDS];	      /* eventfds that tell of its end, or -1 */
	bool ended;
};

/* Fill in descriptors, BAR, configuration space and usable bus addresses of the card at a PCI
 * address
 * ("0000:01:00.0"). What was opened is closed by dib_vfio_device_close(), after a failure too. */
int dib_vfio_device_open(struct vfio_device *v, const char *address);
void dib_vfio_device_close(struct vfio_device *v);

#endif
