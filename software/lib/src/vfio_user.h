/* The part of the vfio-user protocol that this library uses, from its specification (QEMU,
 * docs/interop/vfio-user.rst, version 0.9). All values are little-endian. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_VFIO_USER_H
#define DIBBER_VFIO_USER_H

#include <stdint.h>

enum vfio_user_command {
	VFIO_USER_VERSION = 1,
	VFIO_USER_DMA_MAP = 2,
	VFIO_USER_DMA_UNMAP = 3,
	VFIO_USER_DEVICE_GET_REGION_INFO = 5,
	VFIO_USER_DEVICE_SET_IRQS = 8,
	VFIO_USER_REGION_READ = 9,
	VFIO_USER_REGION_WRITE = 10,
	VFIO_USER_DMA_READ = 11,
	VFIO_USER_DMA_WRITE = 12,
};

#define VFIO_USER_TYPE_MASK 0xfu
#define VFIO_USER_REPLY	    0x1u
#define VFIO_USER_NO_REPLY  0x10u
#define VFIO_USER_ERROR	    0x20u

struct vfio_user_header {
	uint16_t id;
	uint16_t command;
	uint32_t size; /* including this header */
	uint32_t flags;
	uint32_t error; /* errno, with VFIO_USER_ERROR */
};

/* Followed by JSON text with its final zero. */
struct vfio_user_version {
	uint16_t major;
	uint16_t minor;
};

#define VFIO_USER_MAP_READ  0x1u
#define VFIO_USER_MAP_WRITE 0x2u

struct vfio_user_dma_map {
	uint32_t argsz;
	uint32_t flags;
	uint64_t offset; /* offset in the descriptor that is sent along */
	uint64_t address;
	uint64_t size;
};

struct vfio_user_dma_unmap {
	uint32_t argsz;
	uint32_t flags;
	uint64_t address;
	uint64_t size;
};

#define VFIO_USER_REGION_BAR0	0u
#define VFIO_USER_REGION_BAR2	2u
#define VFIO_USER_REGION_CONFIG 7u

struct vfio_user_region_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t capability;
	uint64_t size;
	uint64_t offset;
};

/* Followed by the data, if any. */
struct vfio_user_region_access {
	uint64_t offset;
	uint32_t region;
	uint32_t count;
};

#define VFIO_USER_IRQ_MSIX	   2u
#define VFIO_USER_IRQ_DATA_EVENTFD (1u << 2)
#define VFIO_USER_IRQ_TRIGGER	   (1u << 5)

struct vfio_user_irq_set {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t start;
	uint32_t count;
};

/* Followed by the data, if any. */
struct vfio_user_dma_access {
	uint64_t address;
	uint64_t count;
};

#endif
