/* SPDX-License-Identifier: BSD-2-Clause */

#include "config_space.h"

#include <bit>

#include "../device.h"
#include "dibber_interface.h"

namespace dibber {

void ConfigSpace::put(unsigned offset, unsigned bytes, uint32_t value, uint32_t writable)
{
    for (unsigned i = 0; i < bytes; i++) {
        bytes_[offset + i] = uint8_t(value >> 8 * i);
        writable_[offset + i] = uint8_t(writable >> 8 * i);
    }
}

void ConfigSpace::reset()
{
    bytes_.fill(0);
    writable_.fill(0);

    put(0x00, 2, DIBBER_PCI_VENDOR);
    put(0x02, 2, DIBBER_PCI_DEVICE);
    put(0x04, 2, 0x0000, 0x0546); /* memory space, bus master, parity, SERR, INTx disable */
    put(0x06, 2, 0x0010);         /* there is a capability list */
    put(0x08, 4, DIBBER_PCI_CLASS << 8);
    put(0x0c, 1, 0, 0xff); /* cache line size: no effect */
    put(0x10, 4, 0, ~uint32_t(DIBBER_BAR0_SIZE - 1));
    if (aperture_bytes) {
        put(0x18, 4, 0xc, ~uint32_t(aperture_bytes - 1)); /* 64 bits, prefetchable */
        put(0x1c, 4, 0, ~uint32_t(0));
    }
    put(0x2c, 2, DIBBER_PCI_VENDOR);
    put(0x2e, 2, DIBBER_PCI_DEVICE);
    put(0x34, 1, express);
    put(0x3c, 1, 0, 0xff); /* interrupt line: no effect */

    /* PCI Express capability, version 2 (PCIe Base 3.0, section 7.8). */
    unsigned payload = unsigned(std::countr_zero(profile_.pcie.max_payload)) - 7;
    unsigned request = unsigned(std::countr_zero(profile_.pcie.max_read_request)) - 7;
    unsigned speed = profile_.pcie.rate_gbps > 5 ? 3 : profile_.pcie.rate_gbps > 2.5 ? 2 : 1;
    put(express + 0x00, 2, 0x10 | msix << 8);
    put(express + 0x02, 2, 0x0002);
    put(express + 0x04, 4, payload | 1 << 5 | 1 << 15); /* extended tags, role-based errors */
    put(express + 0x08, 2,
        payload << 5 | (profile_.pcie.extended_tags ? 1 << 8 : 0) | request << 12, 0xffff);
    put(express + 0x0c, 4, speed | profile_.pcie.lanes << 4);
    put(express + 0x10, 2, profile_.pcie.read_completion_boundary == 128 ? 1 << 3 : 0, 0x00c3);
    put(express + 0x12, 2, speed | profile_.pcie.lanes << 4);
    put(express + 0x30, 2, speed, 0x000f);

    put(msix + 0, 2, 0x11);
    put(msix + 2, 2, DIBBER_VECTORS - 1, 0xc000);
    put(msix + 4, 4, DIBBER_MSIX_TABLE_BASE);
    put(msix + 8, 4, DIBBER_MSIX_PBA_BASE);
}

void ConfigSpace::read(unsigned offset, std::span<uint8_t> bytes) const
{
    for (size_t i = 0; i < bytes.size(); i++)
        bytes[i] = bytes_[offset + i];
}

void ConfigSpace::write(unsigned offset, std::span<const uint8_t> bytes)
{
    for (size_t i = 0; i < bytes.size(); i++) {
        uint8_t mask = writable_[offset + i];
        bytes_[offset + i] = uint8_t((bytes_[offset + i] & ~mask) | (bytes[i] & mask));
    }
    /* A larger payload than the card supports, or a reserved code, is not taken. */
    unsigned payload = unsigned(std::countr_zero(profile_.pcie.max_payload)) - 7;
    if (unsigned((bytes_[express + 8] >> 5) & 7) > payload)
        bytes_[express + 8] = uint8_t((bytes_[express + 8] & 0x1f) | payload << 5);
    if (((bytes_[express + 9] >> 4) & 7) > 5)
        bytes_[express + 9] = uint8_t((bytes_[express + 9] & 0x8f) | 2 << 4);
}

} // namespace dibber
