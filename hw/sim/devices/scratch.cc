/* SPDX-License-Identifier: BSD-2-Clause */

#include "scratch.h"

#include <cstring>

#include "dibber_interface.h"

namespace dibber {

namespace {

constexpr uint64_t write_command = 0x80000, interrupt_command = 0x80010, copy_command = 0x80020,
                   cable_command = 0x80040, cable_target = 0x80050, silent = 0x80100,
                   refused = 0x80108;

} // namespace

uint64_t ScratchCard::load(uint64_t offset, unsigned bytes) const
{
    uint64_t value = 0;
    memcpy(&value, bar_.data() + offset, bytes);
    return value;
}

void ScratchCard::received(const Tlp& tlp)
{
    if (tlp.kind() == TlpKind::completion) {
        uint64_t& to = copies_[tlp.completion_tag()];
        unsigned lead = tlp.lower_address() & 3;
        unsigned n = std::min(unsigned(tlp.payload().size()) - lead, tlp.byte_count());
        if (tlp.has_data())
            send(memory_write(id_, to, tlp.payload().subspan(lead, n)));
        to += n;
        return;
    }
    uint64_t offset = tlp.first_byte() & (bar_.size() - 1);
    if (tlp.kind() == TlpKind::memory_write) {
        memcpy(bar_.data() + offset, tlp.payload().data() + (offset & 3), tlp.span_bytes());
        act(offset);
    } else if (offset == refused) {
        send(completion_error(id_, tlp, unsupported_request));
    } else if (offset != silent) {
        send(completion(id_, tlp, offset, std::span(bar_).subspan(offset, tlp.span_bytes()),
                        tlp.span_bytes()));
    }
}

void ScratchCard::act(uint64_t offset)
{
    auto value_write = [this](uint64_t address, uint64_t value) {
        return memory_write(id_, address, {reinterpret_cast<const uint8_t*>(&value), 4});
    };
    if (offset == write_command) {
        later_.emplace(cycle_ + load(offset + 12, 4),
                       value_write(load(offset, 8), load(offset + 8, 4)));
    } else if (offset == interrupt_command) {
        uint64_t entry = DIBBER_MSIX_TABLE_BASE + 16 * load(offset, 4);
        later_.emplace(cycle_, value_write(load(entry, 8), load(entry + 8, 4)));
    } else if (offset == copy_command) {
        copies_[next_tag_] = load(offset + 8, 8);
        later_.emplace(
            cycle_, memory_read(id_, next_tag_++, load(offset, 8), unsigned(load(offset + 16, 4))));
    } else if (offset == cable_command) {
        words_.push_back(uint32_t(load(offset, 4)));
    }
}

void ScratchCard::settle(const Inputs& in, Outputs& out)
{
    StreamDevice::settle(in, out);
    word_offered_ = !words_.empty();
    if (word_offered_)
        out.serial_tx = {words_.front(), 0};
}

void ScratchCard::clock(const Inputs& in)
{
    StreamDevice::clock(in); /* first: words that are sent below are not visible at this edge yet */
    id_ = in.pcie_id;
    if (word_offered_ && in.serial_tx_ready)
        words_.pop_front();
    if (in.serial_rx_valid && in.serial_rx.k == 0 && !in.serial_rx_code_error &&
        load(cable_target, 8))
        send(memory_write(id_, load(cable_target, 8),
                          {reinterpret_cast<const uint8_t*>(&in.serial_rx.data), 4}));
    while (!later_.empty() && later_.begin()->first <= cycle_) {
        send(std::move(later_.begin()->second));
        later_.erase(later_.begin());
    }
    cycle_++;
}

} // namespace dibber
