/* A card in C++ that stores the data written to its BAR, and acts only on request. It is for tests
 * of the host model, the servers and the clock without a Verilated core.
 *
 * BAR 0 is memory. A write of 8 bytes or more to one of these addresses makes the card act:
 *
 *     0x80000: u64 bus address, u32 value, u32 delay: after `delay` cycles write the value there
 *     0x80010: u32 vector: send that vector's MSI-X message, from the table at 0x1000
 *     0x80020: u64 from, u64 to, u32 bytes (up to 64): read and write back
 *     0x80040: u32 value: send it over the cable, as data; the other card writes it to the address
 *              in its BAR at 0x80050
 *
 * Reads at 0x80100 are never answered, reads at 0x80108 are refused (unsupported request).
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <deque>
#include <map>
#include <vector>

#include "../device.h"
#include "../host/tlp.h"
#include "stream.h"

namespace dibber {

class ScratchCard : public StreamDevice {
public:
    ScratchCard(unsigned data_width, uint64_t bar_size) : StreamDevice(data_width), bar_(bar_size)
    {
    }

    void clock(const Inputs& in) override;
    void settle(const Inputs& in, Outputs& out) override;

private:
    void received(const Tlp& tlp) override;
    void act(uint64_t offset);
    uint64_t load(uint64_t offset, unsigned bytes) const;

    std::vector<uint8_t> bar_;
    std::multimap<uint64_t, Tlp> later_; /* by cycle */
    std::map<uint8_t, uint64_t> copies_; /* by tag: where a read's data go */
    uint8_t next_tag_ = 0;
    uint64_t cycle_ = 0;
    std::deque<uint32_t> words_;
    bool word_offered_ = false;
    uint16_t id_ = 0;
};

} // namespace dibber
