/*
 * A card in a PCIe slot as Linux' VFIO gives it to a process (the kernel's
 * Documentation/driver-api/vfio.rst).
 *
 * The interface is that of groups and the type 1 IOMMU. Every kernel since 3.6 has it, newer
 * ones also through iommufd. Each card has its own container, so cards share nothing.
 */

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
	uint8_t *aperture;	      /* BAR 2, mapped, or NULL */
	uint64_t aperture_bytes;
	uint64_t config;      /* offset of the configuration space in `device` */
	pthread_mutex_t lock; /* guards vectors_on and the aperture */
	bool vectors_on;      /* MSI-X is enabled */
	int ends[DIB_ENDS];   /* eventfds that tell of its end, or -1 */
	bool ended;
};

/* Fill in descriptors, BAR, configuration space and usable bus addresses of the card at a PCI
 * address ("0000:01:00.0"). dib_vfio_device_close() closes what was opened, also after a failure.
 */
int dib_vfio_device_open(struct vfio_device *v, const char *address);
void dib_vfio_device_close(struct vfio_device *v);

/* Map BAR 2, if the device has one: `aperture` and `aperture_bytes`. */
int dib_vfio_device_map_aperture(struct vfio_device *v);

#endif
