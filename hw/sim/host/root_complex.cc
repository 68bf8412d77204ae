/* SPDX-License-Identifier: BSD-2-Clause */

#include "root_complex.h"

#include <algorithm>
#include <cstdio>

#include "../timeline/card_timeline.h"

namespace dibber {

RootComplex::RootComplex(const Profile& profile, unsigned card, uint64_t seed, const Time& now,
                         Phy& phy, Memory& memory, HostListener& listener)
    : config(profile), profile_(profile), card_(card), now_(now), phy_(phy), memory_(memory),
      listener_(listener), random_(seed, 0x100 + card), fault_random_(seed, 0x500 + card),
      posted_up_(from_ns(profile.pcie.posted_up_ns)),
      posted_down_(from_ns(profile.pcie.posted_down_ns)),
      read_up_(from_ns(profile.pcie.read_latency_ns / 2)),
      read_down_(from_ns(profile.pcie.read_latency_ns) - read_up_),
      credit_return_(from_ns(profile.pcie.credit_return_ns))
{
}

Time RootComplex::lookahead_up(const Profile& profile)
{
    return std::min(from_ns(profile.pcie.posted_up_ns), from_ns(profile.pcie.read_latency_ns / 2));
}

Time RootComplex::lookahead_down(const Profile& profile)
{
    return std::min({from_ns(profile.pcie.posted_down_ns),
                     from_ns(profile.pcie.read_latency_ns / 2),
                     from_ns(profile.pcie.credit_return_ns)});
}

void RootComplex::reset()
{
    posted_.clear();
    reads_.clear();
    completions_.clear();
    pool_.clear();
    tag_in_flight_.fill(false);
    config.reset();
    auto waiting = std::move(bar_waiting_);
    bar_waiting_.clear();
    for (unsigned tag = 0; tag < bar_active_.size(); tag++)
        if (bar_active_[tag].read)
            finish_chunk(tag);
    for (auto& chunk : waiting)
        if (--chunk.read->missing == 0)
            chunk.read->answer(chunk.read->data);
}

void RootComplex::fault(Fault fault, const Tlp& tlp)
{
    if (statistics_.faults[unsigned(fault)]++ < 3)
        fprintf(stderr, "dibber-sim: card%u: bad TLP at %.3f ns: %s (%08x %08x %08x)\n", card_,
                now_ / 1e3, fault_name(fault), tlp.dw[0], tlp.dw[1], tlp.dw[2]);
}

/* From the card -------------------------------------------------------------------------------- */

void RootComplex::take(std::vector<Tlp>& departed)
{
    for (Tlp& tlp : departed) {
        switch (tlp.kind()) {
        case TlpKind::memory_read:
            /* A read pushes the writes before it. */
            tlp.at = std::max(tlp.at + read_up_, last_visible_);
            reads_.push_back(std::move(tlp));
            break;
        case TlpKind::completion:
            tlp.at = std::max(tlp.at + posted_up_, last_visible_);
            completions_.push_back(std::move(tlp));
            break;
        default: {
            Time arrival = tlp.at + posted_up_;
            tlp.at = std::max(arrival, memory_free_);
            statistics_.memory_wait_ps += tlp.at - arrival;
            if (timeline && tlp.at > arrival)
                timeline->memory_busy(arrival, tlp.at);
            last_visible_ = memory_free_ = tlp.at;
            if (tlp.kind() == TlpKind::memory_write) {
                uint64_t line = profile_.memory.line_bytes;
                uint64_t first = tlp.first_byte(), end = first + tlp.span_bytes();
                uint64_t lines = (end - 1) / line - first / line + 1;
                uint64_t whole_first = (first + line - 1) / line, whole_end = end / line;
                uint64_t whole = whole_end > whole_first ? whole_end - whole_first : 0;
                memory_free_ += from_ns(profile_.memory.partial_line_ns) * (lines - whole);
            }
            posted_.push_back(std::move(tlp));
        }
        }
    }
    departed.clear();
}

Time RootComplex::next_event() const
{
    Time next = never;
    for (const std::deque<Tlp>* queue : {&posted_, &completions_, &reads_})
        if (!queue->empty())
            next = std::min(next, queue->front().at);
    if (!bar_deadlines_.empty())
        next = std::min(next, bar_deadlines_.front().first);
    return std::min(next, next_completion());
}

void RootComplex::run_event()
{
    if (!posted_.empty() && posted_.front().at <= now_)
        memory_write_arrives();
    else if (!completions_.empty() && completions_.front().at <= now_)
        completion_arrives();
    else if (!reads_.empty() && reads_.front().at <= now_)
        memory_read_arrives();
    else if (next_completion() <= now_)
        send_completion();
    else
        expire_bar_reads();
}

void RootComplex::memory_write_arrives()
{
    Tlp tlp = std::move(posted_.front());
    posted_.pop_front();
    phy_.return_posted(now_ + credit_return_, tlp.has_data() ? (tlp.length_dws() + 3) / 4 : 0);
    Fault wrong = check(tlp, config, card_id);
    if (wrong == Fault::none && tlp.barred)
        wrong = Fault::not_bus_master;
    if (wrong != Fault::none)
        return fault(wrong, tlp);
    if (tlp.address() - interrupt_base < interrupt_size) {
        statistics_.interrupts++;
        if (timeline)
            timeline->interrupted(now_, tlp.dw[tlp.header_dws()] & 0xffff);
        return listener_.interrupt(card_, tlp.dw[tlp.header_dws()] & 0xffff);
    }
    write_enabled(tlp);
}

/* Byte enables may leave holes in the first and the last DW: write the runs between them. */
void RootComplex::write_enabled(const Tlp& tlp)
{
    auto payload = tlp.payload();
    unsigned dws = tlp.length_dws(), run = 0;
    auto enabled = [&](unsigned byte) {
        unsigned dw = byte / 4;
        unsigned be = dw == 0 ? tlp.first_be() : dw == dws - 1 ? tlp.last_be() : 0xf;
        return be >> (byte % 4) & 1;
    };
    statistics_.writes++;
    if (timeline)
        timeline->in_memory(now_, tlp);
    statistics_.first_write = std::min(statistics_.first_write, now_);
    statistics_.last_write = now_;
    for (unsigned byte = 0; byte <= 4 * dws; byte++) {
        /* Whole DWs in the middle need no check of every byte. */
        if (byte == 4 && dws > 2) {
            run += 4 * (dws - 2);
            byte = 4 * (dws - 1);
        }
        if (byte < 4 * dws && enabled(byte)) {
            run++;
        } else if (run) {
            uint64_t address = tlp.address() + byte - run;
            auto bytes = payload.subspan(byte - run, run);
            run = 0;
            if (!memory_.write(address, bytes)) {
                fault(Fault::unmapped, tlp);
                continue;
            }
            statistics_.write_bytes += bytes.size();
            listener_.written(card_, address, bytes.size());
        }
    }
}

void RootComplex::memory_read_arrives()
{
    auto read = std::make_shared<Read>();
    read->request = std::move(reads_.front());
    reads_.pop_front();
    phy_.return_nonposted(now_ + credit_return_);
    statistics_.reads++;
    const Tlp& tlp = read->request;
    read->address = tlp.first_byte();
    read->bytes = tlp.span_bytes();
    read->ready = now_;
    if (profile_.pcie.completion_reorder_ns > 0)
        read->ready += random_.below(from_ns(profile_.pcie.completion_reorder_ns));
    Fault wrong = check(tlp, config, card_id);
    if (wrong == Fault::none && tag_in_flight_[tlp.tag()])
        wrong = Fault::tag_in_flight;
    if (wrong == Fault::none && tlp.barred)
        wrong = Fault::not_bus_master;
    if (wrong == Fault::none) {
        auto answer = [this, read](bool good, std::span<const uint8_t> data) {
            read->answered = true;
            read->good = good;
            read->ready = std::max(read->ready, now_);
            read->data.assign(data.begin(), data.end());
        };
        tag_in_flight_[tlp.tag()] = true;
        statistics_.read_bytes += read->bytes;
        if (!memory_.read(read->address, read->bytes, answer))
            wrong = Fault::unmapped;
    }
    if (wrong != Fault::none) {
        fault(wrong, tlp);
        read->answered = true;
        if (pool_.size() >= max_pool)
            return;
    }
    pool_.push_back(std::move(read));
}

/* Completions ---------------------------------------------------------------------------------- */

/* When data of a read is there; never if none is awaited or known. */
Time RootComplex::completion_ready() const
{
    if (pool_.empty())
        return never;
    Time ready = never;
    if (profile_.pcie.completion_reorder_ns > 0) {
        for (auto& read : pool_)
            if (read->answered)
                ready = std::min(ready, read->ready);
    } else if (pool_.front()->answered) {
        ready = pool_.front()->ready;
    }
    return ready;
}

Time RootComplex::next_completion() const
{
    Time ready = completion_ready();
    return ready == never ? never : std::max(ready, Time(down_free_));
}

unsigned RootComplex::completion_bytes(const Read& read)
{
    uint64_t boundary = profile_.pcie.read_completion_boundary;
    uint64_t from = read.address + read.done, end = read.address + read.bytes;
    uint64_t limit = (from & ~uint64_t(3)) + config.max_payload();
    uint64_t cut = (from / boundary + 1) * boundary;
    if (profile_.pcie.completion_split == CompletionSplit::maximum && cut < end)
        cut = end <= limit ? end : limit / boundary * boundary;
    if (profile_.pcie.completion_split == CompletionSplit::random)
        while (cut < end && cut + boundary <= limit && random_.below(2))
            cut += boundary;
    return unsigned(std::min(cut, end) - from);
}

void RootComplex::send_completion()
{
    size_t choice = 0;
    if (profile_.pcie.completion_reorder_ns > 0) {
        std::vector<size_t> ready;
        for (size_t i = 0; i < pool_.size(); i++)
            if (pool_[i]->answered && pool_[i]->ready <= now_)
                ready.push_back(i);
        choice = ready[random_.below(ready.size())];
    }
    Read& read = *pool_[choice];
    statistics_.completions_down++;
    if (read.good) {
        unsigned bytes = completion_bytes(read);
        Tlp tlp =
            completion(host_id, read.request, read.address + read.done,
                       std::span(read.data).subspan(read.done, bytes), read.bytes - read.done);
        read.done += bytes;
        if (profile_.pcie.completion_fault_rate > 0 &&
            double(fault_random_.below(1u << 20)) <
                profile_.pcie.completion_fault_rate * (1u << 20))
            spoil(tlp);
        send(std::move(tlp), now_, read_down_);
    } else {
        send(completion_error(host_id, read.request, unsupported_request), now_, read_down_);
        read.done = read.bytes;
    }
    if (read.done == read.bytes) {
        tag_in_flight_[read.request.tag()] = false;
        pool_.erase(pool_.begin() + long(choice));
    }
}

/* Put one fault into a completion with data, which a PCIe host must not send (PCIe Base 3.0,
 * 2.2.9). */
void RootComplex::spoil(Tlp& tlp)
{
    enum {
        less_outstanding,
        more_outstanding,
        ends_here,
        address,
        shorter,
        longer,
        status,
        poison,
        requester,
        tag,
        twice,
        count
    };
    unsigned bytes = 4 * tlp.length_dws() - (tlp.lower_address() & 3);
    auto set_count = [&](unsigned value) { tlp.dw[1] = (tlp.dw[1] & ~0xfffu) | (value & 0xfff); };
    auto set_length = [&](unsigned dws) { tlp.dw[0] = (tlp.dw[0] & ~0x3ffu) | (dws & 0x3ff); };
    switch (fault_random_.below(count)) {
    case less_outstanding:
        set_count(std::max(tlp.byte_count() - std::min(tlp.byte_count(), 4u), 1u));
        break;
    case more_outstanding:
        set_count(std::min(tlp.byte_count() + 4, 4096u));
        break;
    case ends_here:
        set_count(std::min(bytes, tlp.byte_count()) == tlp.byte_count() ? tlp.byte_count() + 64
                                                                        : bytes);
        break;
    case address:
        tlp.dw[2] ^= 4u << fault_random_.below(5);
        break;
    case shorter:
        if (tlp.length_dws() > 1) {
            set_length(tlp.length_dws() - 1);
            tlp.dw.pop_back();
            break;
        }
        [[fallthrough]];
    case longer:
        set_length(tlp.length_dws() + 1); /* and no DW more than before */
        break;
    case status:
        tlp.dw[1] |= unsupported_request << 13;
        break;
    case poison:
        tlp.dw[0] |= 1u << 14;
        break;
    case requester:
        tlp.dw[2] ^= 1u << (16 + fault_random_.below(16));
        break;
    case tag:
        tlp.dw[2] |= 0xff00; /* the card has fewer */
        break;
    case twice:
        send(tlp, now_, read_down_);
        break;
    }
}

/* To the card ---------------------------------------------------------------------------------- */

/* The CPU's accesses and the completions take turns on a busy link. Without that, a CPU that writes
 * faster than the link takes would hold up the completions for ever. */
void RootComplex::send_request(Tlp tlp, Time latency)
{
    if (completion_ready() <= now_)
        send_completion();
    send(std::move(tlp), now_, latency);
}

void RootComplex::send(Tlp tlp, Time start, Time latency)
{
    double time = profile_.pcie_ps(tlp.bytes());
    double from = std::max(down_free_, double(start));
    down_free_ = from + time;
    statistics_.busy_down_ps += time;
    if (timeline)
        timeline->to_card(tlp, Time(from), Time(down_free_));
    tlp.at = Time(from) + latency;
    phy_.deliver(std::move(tlp));
}

} // namespace dibber
