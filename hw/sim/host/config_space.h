/* The card's PCI configuration space: type 0 header, PCI Express and MSI-X capabilities. */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "../profile.h"

namespace dibber {

class ConfigSpace {
public:
    static constexpr unsigned size = 4096;

    explicit ConfigSpace(const Profile& profile) : profile_(profile) { reset(); }

    /* State after the host's firmware: payload and read request sizes of the profile, no bus
     * master. */
    void reset();

    /* Within `size`. A write changes only what is writable. */
    void read(unsigned offset, std::span<uint8_t> bytes) const;
    void write(unsigned offset, std::span<const uint8_t> bytes);

    bool bus_master() const { return bytes_[0x04] & 4; }
    bool msix_enable() const { return (bytes_[msix + 3] & 0xc0) == 0x80; }
    bool extended_tags() const { return bytes_[express + 9] & 1; }
    unsigned max_payload() const { return 128u << ((bytes_[express + 8] >> 5) & 7); }
    unsigned max_read_request() const { return 128u << ((bytes_[express + 9] >> 4) & 7); }

private:
    static constexpr unsigned express = 0x40, msix = 0x80;

    void put(unsigned offset, unsigned bytes, uint32_t value, uint32_t writable = 0);

    const Profile& profile_;
    std::array<uint8_t, size> bytes_, writable_;
};

} // namespace dibber
