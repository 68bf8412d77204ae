/* SPDX-License-Identifier: BSD-2-Clause */

#include "flash.h"

#include <algorithm>

namespace dibber {

namespace {

enum Command : uint8_t {
    program = 0x02,
    read = 0x03,
    disable = 0x04,
    status = 0x05,
    enable = 0x06,
    program4 = 0x12,
    read4 = 0x13,
    erase_4k = 0x20,
    erase_4k4 = 0x21,
    identity = 0x9f,
    erase_64k = 0xd8,
    erase_64k4 = 0xdc,
};

} // namespace

Flash::Flash(uint32_t size) : inverted_(size), buffer_{} {}

bool Flash::change(bool cs_n, bool clk, bool mosi)
{
    if (cs_n) {
        if (bits_ == 0 && count_)
            deselected();
        cs_n_ = true;
        clk_ = false;
        return miso_ = true;
    }
    if (cs_n_) {
        cs_n_ = clk_ = false;
        bits_ = 0;
        count_ = 0;
        answer_ = 0xff;
    }
    if (clk && !clk_) {
        byte_ = uint8_t(byte_ << 1 | mosi);
        if (++bits_ == 8) {
            bits_ = 0;
            taken();
        }
    } else if (!clk && clk_) {
        miso_ = answer_ >> (7 - bits_) & 1;
    }
    clk_ = clk;
    return miso_;
}

unsigned Flash::address_bytes() const
{
    switch (command_) {
    case program:
    case read:
    case erase_64k:
    case erase_4k:
        return 3;
    case program4:
    case read4:
    case erase_64k4:
    case erase_4k4:
        return 4;
    default:
        return 0;
    }
}

/* A byte is complete. */
void Flash::taken()
{
    if (count_ == 0) {
        command_ = byte_;
        ignored_ = busy_ && command_ != status;
        address_ = 0;
        buffer_.fill(0xff);
    } else if (count_ <= address_bytes()) {
        address_ = address_ << 8 | byte_;
    } else if (command_ == program || command_ == program4) {
        buffer_[(address_ + count_ - 1 - address_bytes()) % page] = byte_;
    }
    count_++;
    answer_ = ignored_ ? 0xff : next();
}

/* The flash's answer while the next byte is sent. */
uint8_t Flash::next()
{
    static constexpr uint8_t jedec[] = {0xef, 0x40}; /* Winbond W25Q */

    switch (command_) {
    case status:
        return uint8_t(latch_ << 1 | (busy_ ? 1 : 0));
    case identity: {
        if (count_ <= sizeof(jedec))
            return jedec[count_ - 1];
        unsigned bits = 0;
        while (size() >> bits > 1)
            bits++;
        return count_ == 3 ? uint8_t(bits) : 0;
    }
    case read:
    case read4:
        return count_ > address_bytes() ? at(address_ + uint32_t(count_ - 1 - address_bytes()))
                                        : 0xff;
    default:
        return 0xff;
    }
}

void Flash::erase(uint32_t length)
{
    uint32_t first = address_ & (size() - 1) & -length;
    std::fill(inverted_.begin() + first, inverted_.begin() + first + length, uint8_t(0));
    busy_ = erase_cycles;
}

/* A command ends with a whole byte. */
void Flash::deselected()
{
    if (ignored_)
        return;
    if (command_ == enable || command_ == disable) {
        latch_ = command_ == enable;
        return;
    }
    bool changes = address_bytes() && command_ != read && command_ != read4;
    bool programs = command_ == program || command_ == program4;
    if (!changes)
        return;
    bool begins =
        latch_ && (programs ? count_ > 1 + address_bytes() : count_ == 1 + address_bytes());
    latch_ = false;
    if (!begins)
        return;
    if (programs) {
        uint32_t first = address_ & (size() - 1) & -page;
        for (uint32_t n = 0; n < page; n++)
            inverted_[first + n] |= uint8_t(~buffer_[n]);
        busy_ = program_cycles;
    } else {
        erase(command_ == erase_4k || command_ == erase_4k4 ? 4096 : 65536);
    }
}

} // namespace dibber
