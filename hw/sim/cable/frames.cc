/* SPDX-License-Identifier: BSD-2-Clause */

#include "frames.h"

#include <algorithm>
#include <stdexcept>

#include "cable.h"

namespace dibber {

namespace {

/* IEEE 802.3, 3.1.1 and 4.4.2: preamble with start delimiter, FCS, shortest frame without FCS, gap.
 */
constexpr unsigned preamble_bytes = 8, fcs_bytes = 4, shortest_bytes = 60, gap_bytes = 12;

} // namespace

FrameCable::FrameCable(const Profile& profile, uint64_t seed, const CableDirection& direction)
    : period_(profile.period()), delay_(profile.cable_delay(direction.length_m)),
      byte_ps_(8e3 / profile.link.rate_gbps), loss_(profile.link.frame_loss),
      late_(profile.link.frame_late), captures_(direction.captured),
      bit_error_rate_(direction.bit_error_rate), random_(seed, direction.stream)
{
    for (auto& fault : direction.faults)
        if (fault.kind != CableFault::unplugged && fault.kind != CableFault::noise &&
            fault.kind != CableFault::loopback)
            throw std::runtime_error("a cable of profile " + profile.name +
                                     " carries frames: its faults are unplugged, noise and "
                                     "loopback");
    if (!direction.rates.empty())
        throw std::runtime_error("the bit error rate of a cable that carries frames is that of its "
                                 "profile or topology for the whole run");
    if (bit_error_rate_ > 0)
        bits_to_error_ = random_.failures(bit_error_rate_);
}

/* Sender --------------------------------------------------------------------------------------- */

void FrameCable::drive_transmit(SerialInputs& in, Time now) const
{
    in.frame_tx_ready = next_ < now + period_;
}

void FrameCable::light(bool on, Time now)
{
    if (lit_ != on)
        sent_.push_back({now + delay_, on, {}});
    lit_ = on;
}

/* The sender's MAC has no next word for a frame that has begun. */
void FrameCable::cut(Time now)
{
    if (!inside_)
        return;
    wrong_ = true;
    FrameWord end;
    end.valid = end.last = true;
    end.bytes = 8;
    push(end, std::max(next_, now) + time_of(8) + delay_);
    finish();
}

bool FrameCable::drawn(double share)
{
    return share > 0 && double(random_.bits() >> 11) * 0x1p-53 < share;
}

/* Bit errors of a word. */
void FrameCable::hit(FrameWord& word, CableStatistics& statistics)
{
    uint64_t left = word.bytes * 8, place = 0;
    while (bits_to_error_ < left) {
        place += bits_to_error_;
        left -= bits_to_error_ + 1;
        word.data ^= uint64_t(1) << place++;
        wrong_ = true;
        statistics.bit_errors++;
        bits_to_error_ = random_.failures(bit_error_rate_);
    }
    if (bits_to_error_ != ~uint64_t(0))
        bits_to_error_ -= left;
}

void FrameCable::sample_transmit(const SerialInputs& in, const SerialOutputs& out,
                                 const CableFault* fault, Time now, CableStatistics& statistics)
{
    bool unplugged = fault && fault->kind == CableFault::unplugged;
    if (inside_ && now > sampled_ + period_)
        cut(now); /* the card was reset within a frame */
    sampled_ = now;
    light(!unplugged, now);
    if (!in.frame_tx_ready)
        return;
    if (!out.frame_tx.valid)
        return cut(now);
    Time start = std::max(next_, now);
    if (!inside_) {
        start += time_of(preamble_bytes);
        inside_ = true;
        bytes_ = 0;
        lost_ = unplugged || drawn(loss_);
        overtaken_ = drawn(late_);
        wrong_ = false;
    }
    statistics.words++;
    wrong_ |= fault && fault->kind != CableFault::loopback;
    FrameWord word = out.frame_tx;
    hit(word, statistics);
    next_ = start + time_of(word.bytes);
    bytes_ += word.bytes;
    push(word, next_ + delay_);
    if (!word.last)
        return;
    unsigned padding = shortest_bytes - std::min(bytes_, shortest_bytes);
    next_ += time_of(padding + fcs_bytes + gap_bytes);
    statistics.code_errors += wrong_;
    statistics.lost_words += lost_ ? frame_.size() : 0;
    finish();
}

void FrameCable::push(const FrameWord& word, Time at)
{
    frame_.push_back({at, lit_, word});
    /* A whole frame goes on its way word by word, as it comes. */
    if (!lost_ && !overtaken_ && !word.last)
        sent_.push_back(frame_.back());
}

/* Keep the bytes of the frame, for a file. */
void FrameCable::capture()
{
    CarriedFrame frame{frame_.back().at, {}};
    for (auto& arrival : frame_)
        for (unsigned n = 0; n < arrival.word.bytes; n++)
            frame.bytes.push_back(uint8_t(arrival.word.data >> 8 * n));
    captured_.push_back(std::move(frame));
}

/* The frame's last word was sent. */
void FrameCable::finish()
{
    inside_ = false;
    frame_.back().word.error = wrong_;
    if (captures_ && !lost_)
        capture();
    Time after = frame_.back().at;
    if (overtaken_ && !lost_) {
        held_.insert(held_.end(), frame_.begin(), frame_.end());
    } else {
        if (!lost_)
            sent_.push_back(frame_.back());
        for (auto& late : held_) {
            late.at = after += time_of(late.word.bytes);
            sent_.push_back(late);
        }
        held_.clear();
    }
    frame_.clear();
}

void FrameCable::stay_dark(Time now)
{
    cut(now);
    light(false, now);
}

/* Receiver ------------------------------------------------------------------------------------- */

void FrameCable::meet(bool received)
{
    if (received)
        arriving_.insert(arriving_.end(), sent_.begin(), sent_.end());
    sent_.clear();
}

void FrameCable::drive_receive(SerialInputs& in, Time now)
{
    in.frame_rx.valid = false;
    while (!arriving_.empty() && arriving_.front().at <= now) {
        Arrival arrival = arriving_.front();
        arriving_.pop_front();
        signal_ = arrival.signal;
        if (arrival.word.valid) {
            in.frame_rx = arrival.word;
            break;
        }
    }
    in.serial_rx_signal = signal_;
}

} // namespace dibber
