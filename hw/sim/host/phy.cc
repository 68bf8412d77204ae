/* SPDX-License-Identifier: BSD-2-Clause */

#include "phy.h"

#include <algorithm>

#include "../timeline/card_timeline.h"
#include "root_complex.h"

namespace dibber {

namespace {

/* Cycles in which a card that sees Bus Master Enable cleared may still begin a request: it is in
 * the registers between the gate and the boundary. */
constexpr unsigned after_clear = 4;

} // namespace

Phy::Phy(const Profile& profile, unsigned data_width, bool big_endian, bool trace)
    : profile_(profile), beat_dws_(data_width / 32), big_endian_(big_endian), tracing_(trace)
{
    reset();
}

void Phy::reset()
{
    in_tlp_ = broken_ = offered_ = false;
    barred_cycles_ = after_clear + 1;
    tx_queue_.clear();
    tx_held_.clear();
    buffer_tlps_ = buffer_bytes_ = 0;
    posted_ = {profile_.pcie.posted_headers, profile_.pcie.posted_data, {}};
    nonposted_ = {profile_.pcie.nonposted_headers, 0, {}};
    departed_.clear();
    rx_queue_.clear();
    rx_position_ = 0;
}

void Phy::record(const Tlp& tlp, bool up, Time at)
{
    if (tracing_)
        trace_records_.push_back({at, up, tlp.dw, tlp.header_dws()});
}

/* Receive -------------------------------------------------------------------------------------- */

void Phy::deliver(Tlp tlp)
{
    /* No TLP overtakes on the way down: a completion pushes the writes before it. */
    rx_last_ = tlp.at = std::max(tlp.at, rx_last_);
    statistics_.tlps_down++;
    statistics_.bytes_down += tlp.bytes();
    rx_queue_.push_back(std::move(tlp));
}

void Phy::drive(Inputs& in, Time now)
{
    while (!tx_held_.empty() && tx_held_.front().first <= now) {
        buffer_tlps_--;
        buffer_bytes_ -= tx_held_.front().second;
        tx_held_.pop_front();
    }
    /* `ready` falls between TLPs only, as a hard block's does. */
    in.pcie_tx_ready = in_tlp_ || (buffer_tlps_ < profile_.pcie.transmit_buffer_tlps &&
                                   buffer_bytes_ + profile_.pcie.max_payload + 16 <=
                                       profile_.pcie.transmit_buffer_bytes);

    Beat& beat = in.pcie_rx;
    beat.valid = !rx_queue_.empty() && rx_queue_.front().at <= now;
    if (!beat.valid)
        return;
    const Tlp& tlp = rx_queue_.front();
    unsigned total = unsigned(tlp.dw.size()), header = tlp.header_dws();
    /* As the 7-series hard block's `rx_bar_hit`, which stands beside all beats of a TLP. */
    in.pcie_in_aperture =
        tlp.kind() != TlpKind::completion && tlp.address() >= RootComplex::aperture_base;
    beat.first = rx_position_ == 0;
    beat.last = rx_position_ + beat_dws_ >= total;
    beat.be = 0;
    for (unsigned i = 0; i < beat_dws_; i++) {
        unsigned n = rx_position_ + i;
        beat.dat[i] = n >= total                   ? 0
                      : n >= header && big_endian_ ? __builtin_bswap32(tlp.dw[n])
                                                   : tlp.dw[n];
        if (n < total)
            beat.be |= 0xfu << 4 * i;
    }
}

void Phy::sample(const Inputs& in, const Outputs& out, Time now)
{
    if (in.pcie_rx.valid) {
        if (out.pcie_rx_ready) {
            if (in.pcie_rx.first) {
                record(rx_queue_.front(), false, now);
                if (timeline)
                    timeline->taken(rx_queue_.front(), now);
            }
            rx_position_ += beat_dws_;
            if (in.pcie_rx.last) {
                rx_queue_.pop_front();
                rx_position_ = 0;
            }
        } else {
            statistics_.stalled_cycles++;
        }
    }
    if (timeline) {
        timeline->receiver(in.pcie_rx.valid && !out.pcie_rx_ready, now);
        timeline->transmitter(out.pcie_tx.valid && !in.pcie_tx_ready, now);
    }
    if (in.pcie_bus_master)
        barred_cycles_ = 0;
    else if (barred_cycles_ <= after_clear)
        barred_cycles_++;
    if (out.pcie_tx.valid) {
        /* A TLP has begun when its first beat is offered: it may not be taken back. */
        if (!in_tlp_ && !offered_)
            collecting_.barred = barred_cycles_ > after_clear;
        offered_ = !in.pcie_tx_ready;
        if (in.pcie_tx_ready)
            collect(out, now);
        else
            statistics_.not_ready_cycles++;
    }
    if (!tx_queue_.empty())
        transmit(now);
}

/* Transmit ------------------------------------------------------------------------------------- */

void Phy::collect(const Outputs& out, Time now)
{
    const Beat& beat = out.pcie_tx;
    if (beat.first != !in_tlp_)
        broken_ = true;
    if (!in_tlp_)
        collecting_.dw.clear();
    auto& dw = collecting_.dw;
    unsigned position = unsigned(dw.size());
    for (unsigned i = 0; i < beat_dws_; i++)
        dw.push_back(beat.dat[i]);
    unsigned total = collecting_.total_dws(), header = collecting_.header_dws();
    uint32_t be = 0;
    for (unsigned i = 0; i < beat_dws_ && position + i < total; i++) {
        be |= 0xfu << 4 * i;
        if (big_endian_ && position + i >= header)
            dw[position + i] = __builtin_bswap32(dw[position + i]);
    }
    if (be != beat.be)
        statistics_.byte_enable_errors++;
    in_tlp_ = !beat.last;
    if (!beat.last && dw.size() < 4 + 1024 + beat_dws_)
        return;

    in_tlp_ = false;
    bool good = !broken_ && dw.size() >= total && dw.size() < total + beat_dws_;
    broken_ = false;
    if (!good) {
        statistics_.stream_errors++;
        return;
    }
    dw.resize(total);
    collecting_.at = now;
    record(collecting_, true, now);
    if (timeline)
        timeline->emitted(collecting_, now);
    buffer_tlps_++;
    buffer_bytes_ += collecting_.bytes();
    tx_queue_.push_back(std::move(collecting_));
    collecting_ = {};
}

/* Whether there is credit for a TLP at `start` or at a later time up to `now`; sets `start` to that
 * time.
 */
bool Phy::credit(Credits& credits, unsigned headers, unsigned data, Time& start, Time now)
{
    for (;;) {
        auto& returning = credits.returning;
        bool enough = credits.headers >= headers && credits.data >= data;
        if (!returning.empty() && returning.front().at <= (enough ? start : now)) {
            start = std::max(start, enough ? start : returning.front().at);
            credits.headers += returning.front().headers;
            credits.data += returning.front().data;
            returning.pop_front();
            continue;
        }
        return enough;
    }
}

void Phy::transmit(Time now)
{
    for (;;) {
        bool read_waits = false, sent = false;
        for (auto tlp = tx_queue_.begin(); tlp != tx_queue_.end(); ++tlp) {
            Time earliest = std::max(tlp->at, Time(link_free_));
            if (earliest > now)
                return;
            Time start = earliest;
            TlpKind kind = tlp->kind();
            if (kind == TlpKind::memory_read) {
                if (read_waits)
                    continue;
                if (!credit(nonposted_, 1, 0, start, now)) {
                    read_waits = true;
                    continue;
                }
                nonposted_.headers--;
            } else if (kind != TlpKind::completion) {
                unsigned data = tlp->has_data() ? (tlp->length_dws() + 3) / 4 : 0;
                if (!credit(posted_, 1, data, start, now))
                    return;
                posted_.headers--;
                posted_.data -= data;
            }
            unsigned bytes = tlp->bytes();
            double time = profile_.pcie_ps(bytes);
            link_free_ = std::max(link_free_, double(start)) + time;
            if (timeline)
                timeline->left(*tlp, earliest, start, Time(link_free_));
            statistics_.credit_wait_ps += start - earliest;
            statistics_.busy_up_ps += time;
            statistics_.tlps_up++;
            statistics_.bytes_up += bytes;
            tx_held_.push_back({Time(link_free_), bytes});
            tlp->at = start;
            departed_.push_back(std::move(*tlp));
            tx_queue_.erase(tlp);
            sent = true;
            break;
        }
        if (!sent)
            return;
    }
}

void Phy::return_posted(Time at, unsigned data_units)
{
    posted_.returning.push_back({at, 1, data_units});
}

void Phy::return_nonposted(Time at) { nonposted_.returning.push_back({at, 1, 0}); }

} // namespace dibber
