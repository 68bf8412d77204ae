/* Numbers and layouts of the vfio-user protocol that the server uses.
 *
 * From the vfio-user protocol specification, version 0.9.2 (QEMU, docs/interop/vfio-user.rst), and
 * the Linux VFIO interface that it refers to for flags and indices. Everything is in the host's
 * byte order.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <cstdint>

namespace dibber::vfio {

enum Command : uint16_t {
    version = 1,
    dma_map = 2,
    dma_unmap = 3,
    get_info = 4,
    get_region_info = 5,
    get_irq_info = 7,
    set_irqs = 8,
    region_read = 9,
    region_write = 10,
    dma_read = 11,
    dma_write = 12,
    device_reset = 13,
};

constexpr uint32_t type_mask = 0xf, type_command = 0, type_reply = 1, no_reply = 0x10,
                   error_flag = 0x20;

struct Header {
    uint16_t id, command;
    uint32_t size; /* of the message, this header included */
    uint32_t flags, error;
};

struct Version {
    uint16_t major, minor; /* then JSON, ended by a zero byte */
};

struct DmaMap {
    uint32_t argsz, flags;
    uint64_t offset, address, size;
};
constexpr uint32_t dma_readable = 1, dma_writable = 2;

struct DmaUnmap {
    uint32_t argsz, flags;
    uint64_t address, size;
};

constexpr uint32_t dma_unmap_all = 2; /* VFIO_DMA_UNMAP_FLAG_ALL */

struct DeviceInfo {
    uint32_t argsz, flags, regions, irqs;
};
constexpr uint32_t device_reset_flag = 1, device_pci_flag = 2;

struct RegionInfo {
    uint32_t argsz, flags, index, cap_offset;
    uint64_t size, offset;
};
constexpr uint32_t region_readable = 1, region_writable = 2;
constexpr uint32_t bar0_region = 0, bar2_region = 2, config_region = 7, regions = 9;

struct IrqInfo {
    uint32_t argsz, flags, index, count;
};
constexpr uint32_t irq_eventfd = 1, irq_noresize = 8;
constexpr uint32_t msix_irq = 2, irqs = 5;

struct IrqSet {
    uint32_t argsz, flags, index, start, count;
};
constexpr uint32_t irq_data_none = 1, irq_data_bool = 2, irq_data_eventfd = 4, irq_data = 7;
constexpr uint32_t irq_mask = 8, irq_unmask = 16, irq_trigger = 32, irq_action = 56;

struct RegionAccess {
    uint64_t offset;
    uint32_t region, count; /* then the data */
};

struct DmaAccess {
    uint64_t address, count; /* then the data */
};

constexpr uint32_t max_transfer = 1 << 20;
constexpr uint32_t max_message = sizeof(Header) + sizeof(DmaAccess) + max_transfer;

static_assert(sizeof(Header) == 16 && sizeof(DmaMap) == 32 && sizeof(DmaUnmap) == 24);
static_assert(sizeof(RegionInfo) == 32 && sizeof(IrqSet) == 20 && sizeof(RegionAccess) == 16);

} // namespace dibber::vfio
