/* The flash that a board's FPGA is configured from: a serial NOR flash at its pins, mode 0, with
 * the common behaviour in the datasheets of N25Q, W25Q and S25FL.
 *
 * READ (03, 13), RDID (9F), RDSR (05), WREN (06), WRDI (04), PP (02, 12), SE of 64 KiB (D8, DC), of
 * 4 KiB (20, 21). Programming clears bits, and wraps in its page. Programming and erasing need the
 * write enable latch, and clear it. They keep the flash busy; a busy flash answers only RDSR. A
 * real flash is busy for a millisecond or a second; this one for a thousandth of that, so the
 * simulation is short.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dibber {

class Flash {
public:
    static constexpr uint32_t page = 256;
    static constexpr unsigned program_cycles = 500, erase_cycles = 5000;

    /* `size` in bytes, a power of two. */
    explicit Flash(uint32_t size = 1u << 24);

    /* The levels of a cycle; returns MISO's level from then on. */
    bool step(bool cs_n, bool clk, bool mosi)
    {
        if (busy_)
            busy_--;
        if (cs_n && cs_n_)
            return true;
        return change(cs_n, clk, mosi);
    }

    uint8_t at(uint32_t address) const { return uint8_t(~inverted_[address & (size() - 1)]); }
    uint32_t size() const { return uint32_t(inverted_.size()); }

private:
    bool change(bool cs_n, bool clk, bool mosi);
    void taken();
    uint8_t next();
    void deselected();
    unsigned address_bytes() const;
    void erase(uint32_t length);

    std::vector<uint8_t> inverted_; /* inverted: an erased byte is 0, because the system gives
                                       zeroed memory for nothing */
    bool cs_n_ = true, clk_ = false, miso_ = true;
    unsigned bits_ = 0;  /* of the incoming byte */
    uint64_t count_ = 0; /* whole bytes since it was selected */
    uint8_t byte_ = 0, answer_ = 0xff, command_ = 0;
    uint32_t address_ = 0;
    bool latch_ = false, ignored_ = false;
    unsigned busy_ = 0;                /* cycles */
    std::array<uint8_t, page> buffer_; /* for PP */
};

} // namespace dibber
