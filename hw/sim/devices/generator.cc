/* SPDX-License-Identifier: BSD-2-Clause */

#include "generator.h"

namespace dibber {

void Generator::start(const Work& work)
{
    work_ = work;
    for (unsigned tag = 0; tag < work.in_flight; tag++)
        free_tags_.push_back(uint8_t(tag));
}

void Generator::settle(const Inputs& in, Outputs& out)
{
    StreamDevice::settle(in, out);
    valid_ = out.pcie_tx.valid;
    last_beat_ = out.pcie_tx.last;
}

void Generator::clock(const Inputs& in)
{
    if (valid_ && in.pcie_tx_ready) {
        if (first_ == 0)
            first_ = cycle_;
        last_ = cycle_;
        if (last_beat_ && !taken_.empty()) {
            reads_[taken_.front()].asked = cycle_;
            taken_.pop_front();
        }
    }
    if (in.pcie_rx.valid && in.pcie_rx.first)
        tlp_began_ = cycle_;
    StreamDevice::clock(in);
    cycle_++;
    if (in.reset)
        return;
    while (sent_ < work_.count && waiting() < 4 && (!work_.read || !free_tags_.empty())) {
        uint64_t address = work_.address + sent_ * work_.stride;
        if (work_.read) {
            uint8_t tag = free_tags_.front();
            free_tags_.pop_front();
            tag_read_[tag] = sent_;
            taken_.push_back(sent_);
            reads_.push_back({});
            send(memory_read(in.pcie_id, tag, address, work_.bytes));
            open_++;
        } else {
            std::vector<uint8_t> data(work_.bytes);
            for (unsigned i = 0; i < work_.bytes; i++)
                data[i] = uint8_t(sent_ * 7 + i);
            send(memory_write(in.pcie_id, address, data));
        }
        sent_++;
    }
}

void Generator::received(const Tlp& tlp)
{
    if (tlp.kind() != TlpKind::completion)
        return;
    unsigned number = tag_read_[tlp.completion_tag()];
    Read& read = reads_[number];
    if (read.completions++ == 0)
        read.answered = tlp_began_;
    unsigned lead = tlp.lower_address() & 3;
    unsigned n = std::min(unsigned(tlp.payload().size()) - lead, tlp.byte_count());
    read.good &= tlp.status() == successful && tlp.byte_count() == work_.bytes - read.received;
    /* Memory holds the low byte of each address. */
    for (unsigned i = 0; i < n; i++)
        read.good &= tlp.payload()[lead + i] ==
                     uint8_t(work_.address + number * work_.stride + read.received + i);
    read.received += n;
    for (unsigned earlier = 0; earlier < number; earlier++)
        overtaken_ |= reads_[earlier].finished == 0;
    if (read.received < work_.bytes && tlp.status() == successful)
        return;
    read.finished = cycle_;
    free_tags_.push_back(tlp.completion_tag());
    open_--;
}

} // namespace dibber
