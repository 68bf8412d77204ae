/* Finding a card in the system, and opening it through VFIO. */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "descriptors.h"
#include "error.h"
#include "transport.h"
#include "vfio_device.h"

#define ADDRESS_LENGTH 12u /* length of "0000:01:00.0" */
#define DEVICES	       "/sys/bus/pci/devices/"

static int system_error(const char *what)
{
	return dib_fail(DIB_ERR_SYSTEM, "%s: %s", what, strerror(errno));
}

static bool is_address(const char *text)
{
	static const char form[] = "xxxx:xx:xx.x";

	for (size_t i = 0; i < ADDRESS_LENGTH; i++) {
		if (form[i] == 'x' ? !isxdigit((unsigned char)text[i]) : text[i] != form[i])
			return false;
	}
	return text[ADDRESS_LENGTH] == 0;
}

/* The path of the card's group, "/dev/vfio/7". */
static int find_group(const char *address, char *path, size_t room)
{
	char link[sizeof(DEVICES) + ADDRESS_LENGTH + sizeof("/iommu_group")], target[256];
	const char *number;
	ssize_t length;

	if (!is_address(address))
		return dib_fail(DIB_ERR_ARGUMENT,
				"'%s' is no PCI address: it must read 0000:01:00.0", address);
	snprintf(link, sizeof(link), DEVICES "%s", address);
	if (access(link, F_OK) < 0)
		return dib_fail(DIB_ERR_NOT_FOUND, "no PCI device %s", address);
	strcat(link, "/iommu_group");
	length = readlink(link, target, sizeof(target) - 1);
	if (length < 0)
		return dib_fail(DIB_ERR_NOT_FOUND,
				"%s has no IOMMU: switch it on in the firmware and the kernel",
				address);
	target[length] = 0;
	number = strrchr(target, '/');
	snprintf(path, room, "/dev/vfio/%.20s", number ? number + 1 : target);
	return 0;
}

static int open_group(struct vfio_device *v, const char *address)
{
	struct vfio_group_status status = { .argsz = sizeof(status) };
	char path[32];
	int rc;

	rc = find_group(address, path, sizeof(path));
	if (rc)
		return rc;
	v->group = dib_fd(open(path, O_RDWR | O_CLOEXEC));
	if (v->group < 0 && errno == ENOENT)
		return dib_fail(DIB_ERR_NOT_FOUND, "%s is not bound to vfio-pci: there is no %s",
				address, path);
	if (v->group < 0 && errno == EBUSY)
		return dib_fail(
			DIB_ERR_IN_USE,
			"%s: another process has the card, and VFIO gives it to one: only that can watch or load it",
			path);
	if (v->group < 0)
		return system_error(path);
	if (ioctl(v->group, VFIO_GROUP_GET_STATUS, &status) < 0)
		return system_error("VFIO_GROUP_GET_STATUS");
	if (!(status.flags & VFIO_GROUP_FLAGS_VIABLE))
		return dib_fail(DIB_ERR_IN_USE,
				"%s: a device of the card's IOMMU group is bound to another driver",
				path);
	return 0;
}

static int open_container(struct vfio_device *v)
{
	v->container = dib_fd(open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC));
	if (v->container < 0)
		return system_error("/dev/vfio/vfio");
	if (ioctl(v->container, VFIO_GET_API_VERSION) != VFIO_API_VERSION ||
	    ioctl(v->container, VFIO_CHECK_EXTENSION, VFIO_TYPE1v2_IOMMU) != 1)
		return dib_fail(DIB_ERR_SYSTEM, "/dev/vfio/vfio: no IOMMU of type 1");
	if (ioctl(v->group, VFIO_GROUP_SET_CONTAINER, &v->container) < 0)
		return system_error("VFIO_GROUP_SET_CONTAINER");
	if (ioctl(v->container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU) < 0)
		return system_error("VFIO_SET_IOMMU");
	return 0;
}

/* Bus addresses -------------------------------------------------------------------------------- */

/* The capability with the ranges of addresses that are free and that the IOMMU translates, or NULL.
 * Kernels before 5.4 have none. */
static const struct vfio_iommu_type1_info_cap_iova_range *
find_ranges(const struct vfio_iommu_type1_info *info)
{
	const uint8_t *bytes = (const uint8_t *)info;
	const struct vfio_info_cap_header *header;

	if (!(info->flags & VFIO_IOMMU_INFO_CAPS))
		return NULL;
	for (uint32_t at = info->cap_offset; at; at = header->next) {
		header = (const void *)(bytes + at);
		if (header->id == VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE)
			return (const void *)header;
	}
	return NULL;
}

static int find_usable(struct vfio_device *v)
{
	const struct vfio_iommu_type1_info_cap_iova_range *ranges;
	struct vfio_iommu_type1_info *info, head = { .argsz = sizeof(head) };

	if (ioctl(v->container, VFIO_IOMMU_GET_INFO, &head) < 0)
		return system_error("VFIO_IOMMU_GET_INFO");
	/* The kernel returns the needed size in argsz. */
	info = calloc(1, head.argsz < sizeof(head) ? sizeof(head) : head.argsz);
	if (!info)
		return dib_fail(DIB_ERR_NO_MEMORY, "no memory for the IOMMU's ranges");
	info->argsz = head.argsz;
	if (ioctl(v->container, VFIO_IOMMU_GET_INFO, info) < 0) {
		free(info);
		return system_error("VFIO_IOMMU_GET_INFO");
	}
	ranges = find_ranges(info);
	v->base.usable[0] = (struct dib_range){ 0, UINT64_MAX };
	v->base.usable_count = 1;
	if (ranges) {
		v->base.usable_count =
			ranges->nr_iovas < DIB_RANGES ? ranges->nr_iovas : DIB_RANGES;
		for (unsigned int i = 0; i < v->base.usable_count; i++) {
			uint64_t last = ranges->iova_ranges[i].end;

			v->base.usable[i] =
				(struct dib_range){ ranges->iova_ranges[i].start,
						    last == UINT64_MAX ? last : last + 1 };
		}
	}
	free(info);
	return 0;
}

/* Device --------------------------------------------------------------------------------------- */

static int open_device(struct vfio_device *v, const char *address)
{
	struct vfio_region_info bar = { .argsz = sizeof(bar), .index = VFIO_PCI_BAR0_REGION_INDEX };
	struct vfio_region_info config = { .argsz = sizeof(config),
					   .index = VFIO_PCI_CONFIG_REGION_INDEX };
	void *memory;

	/* The kernel makes this descriptor close-on-exec. */
	v->device = dib_fd(ioctl(v->group, VFIO_GROUP_GET_DEVICE_FD, address));
	if (v->device < 0)
		return system_error("VFIO_GROUP_GET_DEVICE_FD");
	if (ioctl(v->device, VFIO_DEVICE_GET_REGION_INFO, &bar) < 0 ||
	    ioctl(v->device, VFIO_DEVICE_GET_REGION_INFO, &config) < 0)
		return system_error("VFIO_DEVICE_GET_REGION_INFO");
	if (bar.size < DIBBER_BAR0_SIZE)
		return dib_fail(DIB_ERR_IDENTITY,
				"BAR 0 of %s has %llu bytes, a Dibber card has %u", address,
				(unsigned long long)bar.size, DIBBER_BAR0_SIZE);
	v->config = config.offset;
	/* The mapping includes the MSI-X table. Linux allows that since 4.16, because the IOMMU
	 * guards the interrupts. */
	memory = mmap(NULL, DIBBER_BAR0_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, v->device,
		      (off_t)bar.offset);
	if (memory == MAP_FAILED)
		return system_error("mmap of BAR 0");
	v->bar = memory;
	/* A mapping in a child of fork() would hold the device after this process has closed it. */
	madvise(memory, DIBBER_BAR0_SIZE, MADV_DONTFORK);
	return 0;
}

int dib_vfio_device_open(struct vfio_device *v, const char *address)
{
	int rc;

	v->container = v->group = v->device = -1;
	if ((rc = open_group(v, address)) || (rc = open_container(v)) || (rc = find_usable(v)))
		return rc;
	return open_device(v, address);
}

int dib_vfio_device_map_aperture(struct vfio_device *v)
{
	struct vfio_region_info bar = { .argsz = sizeof(bar), .index = VFIO_PCI_BAR2_REGION_INDEX };
	void *memory;

	if (ioctl(v->device, VFIO_DEVICE_GET_REGION_INFO, &bar) < 0)
		return system_error("VFIO_DEVICE_GET_REGION_INFO");
	if (bar.size == 0)
		return 0;
	memory = mmap(NULL, bar.size, PROT_READ | PROT_WRITE, MAP_SHARED, v->device,
		      (off_t)bar.offset);
	if (memory == MAP_FAILED)
		return system_error("mmap of BAR 2");
	madvise(memory, bar.size, MADV_DONTFORK);
	v->aperture = memory;
	v->aperture_bytes = bar.size;
	return 0;
}

void dib_vfio_device_close(struct vfio_device *v)
{
	if (v->aperture)
		munmap(v->aperture, v->aperture_bytes);
	if (v->bar)
		munmap(v->bar, DIBBER_BAR0_SIZE);
	if (v->device >= 0)
		dib_fd_close(v->device);
	if (v->group >= 0)
		dib_fd_close(v->group);
	if (v->container >= 0)
		dib_fd_close(v->container);
}
