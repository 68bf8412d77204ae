/* The root complex: the CPU's accesses of BAR 0, and the card's completions for them. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "../timeline/card_timeline.h"
#include "root_complex.h"

namespace dibber {

void RootComplex::write_bar(uint64_t offset, std::span<const uint8_t> bytes)
{
    if (timeline)
        timeline->bar_written(now_, offset, bytes);
    while (!bytes.empty()) {
        size_t n = std::min(bytes.size(), size_t(64 - offset % 64));
        statistics_.bar_writes++;
        send_request(memory_write(host_id, address_of(offset), bytes.first(n)), posted_down_);
        offset += n;
        bytes = bytes.subspan(n);
    }
}

void RootComplex::write_combined(uint64_t offset, std::span<const uint8_t> bytes, uint64_t enables)
{
    if (enables == ~uint64_t(0))
        return write_bar(offset, bytes);
    if (timeline)
        timeline->bar_written(now_, offset, bytes);
    statistics_.bar_writes++;
    send_request(memory_write_enabled(host_id, address_of(offset), bytes, unsigned(enables)),
                 posted_down_);
}

void RootComplex::read_bar(uint64_t offset, unsigned bytes, BarAnswer answer)
{
    auto read = std::make_shared<BarRead>();
    read->data.assign(bytes, 0xff);
    read->answer = std::move(answer);
    read->missing = 0;
    for (unsigned place = 0; place < bytes;) {
        unsigned n = std::min(bytes - place, unsigned(8 - (offset + place) % 8));
        bar_waiting_.push_back({read, offset + place, place, n});
        read->missing++;
        place += n;
    }
    if (bytes == 0)
        return read->answer({});
    issue_bar_reads();
}

/* At most as many reads in the card as its credit allows: the gateware's queue has this depth. */
void RootComplex::issue_bar_reads()
{
    unsigned limit = std::min(unsigned(bar_active_.size()), profile_.pcie.nonposted_headers);
    while (bar_in_flight_ < limit && !bar_waiting_.empty()) {
        bool window = bar_waiting_.front().offset >= aperture_offset;
        if (window && window_in_flight_ > 0)
            break;
        window_in_flight_ += window;
        while (bar_active_[bar_next_tag_].read)
            bar_next_tag_ = (bar_next_tag_ + 1) % unsigned(bar_active_.size());
        BarChunk& chunk = bar_active_[bar_next_tag_] = std::move(bar_waiting_.front());
        bar_waiting_.pop_front();
        bar_in_flight_++;
        statistics_.bar_reads++;
        chunk.deadline = now_ + from_ns(profile_.pcie.completion_timeout_us * 1e3);
        bar_deadlines_.push_back({chunk.deadline, bar_next_tag_});
        send_request(
            memory_read(host_id, uint8_t(bar_next_tag_), address_of(chunk.offset), chunk.bytes),
            posted_down_);
        bar_next_tag_ = (bar_next_tag_ + 1) % unsigned(bar_active_.size());
    }
}

void RootComplex::completion_arrives()
{
    Tlp tlp = std::move(completions_.front());
    completions_.pop_front();
    Fault wrong = check(tlp, config, card_id);
    unsigned tag = tlp.completion_tag();
    if (wrong == Fault::none && (tag >= bar_active_.size() || !bar_active_[tag].read ||
                                 tlp.completion_requester() != host_id))
        wrong = Fault::completion_unexpected;
    if (wrong != Fault::none)
        return fault(wrong, tlp);
    BarChunk& chunk = bar_active_[tag];
    if (tlp.status() != successful || !tlp.has_data()) {
        statistics_.bar_read_errors++;
        return finish_chunk(tag);
    }
    unsigned lead = tlp.lower_address() & 3;
    auto payload = tlp.payload();
    if (tlp.byte_count() != chunk.bytes - chunk.done || payload.size() <= lead ||
        tlp.lower_address() != ((chunk.offset + chunk.done) & 0x7f))
        return fault(Fault::completion_unexpected, tlp);
    unsigned n = std::min(unsigned(payload.size()) - lead, chunk.bytes - chunk.done);
    std::memcpy(chunk.read->data.data() + chunk.place + chunk.done, payload.data() + lead, n);
    chunk.done += n;
    if (chunk.done == chunk.bytes)
        finish_chunk(tag);
}

void RootComplex::finish_chunk(unsigned tag)
{
    auto read = std::move(bar_active_[tag].read);
    bar_in_flight_--;
    window_in_flight_ -= bar_active_[tag].offset >= aperture_offset;
    for (auto deadline = bar_deadlines_.begin(); deadline != bar_deadlines_.end(); ++deadline)
        if (deadline->second == tag) {
            bar_deadlines_.erase(deadline);
            break;
        }
    issue_bar_reads();
    if (--read->missing == 0)
        read->answer(read->data);
}

void RootComplex::expire_bar_reads()
{
    unsigned tag = bar_deadlines_.front().second;
    statistics_.bar_read_timeouts++;
    /* A card that answers nothing must not fill the disk. */
    if (statistics_.bar_read_timeouts <= 20)
        fprintf(stderr,
                "dibber-sim: card%u: no completion for a read of BAR 0 at 0x%llx in %g us\n", card_,
                static_cast<unsigned long long>(bar_active_[tag].offset),
                profile_.pcie.completion_timeout_us);
    finish_chunk(tag);
}

} // namespace dibber
