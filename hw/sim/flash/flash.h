/* The flash that a board's FPGA is configured from: a serial NOR flash at its pins, mode 0, as the
 * datasheets of N25Q, W25Q and S25FL have what they share.
 *
 * READ (03, 13), RDID (9F), RDSR (05), WREN (06), WRDI (04), PP (02, 12), SE of 64 KiB (D8, DC), of
 * 4 KiB (20, 21). Programming clears bits, and wraps in its page; both it and erasing want the
 * write enable latch, which they clear, and keep the flash busy, when it answers RDSR alone. A real
 * one is busy for a millisecond and a second; this one for thousandths of that, so that the card's
 * cycles are simulated and not the flash's.
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

    /* Levels of a cycle; MISO's from then on. */
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

    std::vector<uint8_t> inverted_; /* erased is 0: the system gives such memory for nothing */
    bool cs_n_ = true, clk_ = false, miso_ = true;
    unsigned bits_ = 0;  /* of the byte that comes */
    uint64_t count_ = 0; /* whole bytes since it was selected */
    uint8_t byte_ = 0, answer_ = 0xff, command_ = 0;
    uint32_t address_ = 0;
    bool latch_ = false, ignored_ = false;
    unsigned busy_ = 0;                /* cycles */
    std::array<uint8_t, page> buffer_; /* for PP */
};

} // namespace dibber
