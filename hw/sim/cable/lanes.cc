/* SPDX-License-Identifier: BSD-2-Clause */

#include "lanes.h"

#include <algorithm>
#include <stdexcept>

#include "cable.h"

namespace dibber {

namespace {

constexpr unsigned block_bits = 66;

/* IEEE 802.3-2018, 49.2.14: blocks of a window, and impossible headers in it that end the lock. */
constexpr unsigned window_blocks = 64, too_many_wrong = 16;

/* A synchronisation header has two different bits. */
bool is_possible(uint8_t header) { return header == 1 || header == 2; }

} // namespace

/* Block Lock ----------------------------------------------------------------------------------- */

void BlockLock::block(bool possible)
{
    blocks_++;
    wrong_ += !possible;
    if (!possible && (!locked_ || wrong_ == too_many_wrong))
        return lose(); /* also an impossible header before the lock begins the count anew */
    if (blocks_ < window_blocks)
        return;
    locked_ = true;
    blocks_ = wrong_ = 0;
}

/* Sender --------------------------------------------------------------------------------------- */

LaneCable::LaneCable(const Profile& profile, uint64_t seed, const CableDirection& direction)
    : row_(Time(block_bits * 1e3 / profile.link.rate_gbps + 0.5)), period_(profile.period()),
      bit_error_rate_(direction.bit_error_rate), random_(seed, direction.stream)
{
    for (auto& fault : direction.faults)
        if (fault.kind != CableFault::unplugged && fault.kind != CableFault::noise &&
            fault.kind != CableFault::loopback)
            throw std::runtime_error("a cable of profile " + profile.name +
                                     " has bonded lanes: its faults are unplugged, noise and "
                                     "loopback");
    if (!direction.rates.empty())
        throw std::runtime_error("the bit error rate of a cable with bonded lanes is that of its "
                                 "profile or topology for the whole run");
    for (unsigned n = 0; n < bonded_lanes; n++)
        lanes_[n].delay = profile.cable_delay(direction.length_m) +
                          from_ns(profile.link.skew_ns * n / (bonded_lanes - 1));
    if (bit_error_rate_ > 0)
        bits_to_error_ = random_.failures(bit_error_rate_);
}

void LaneCable::drive_transmit(SerialInputs& in, Time now) const
{
    in.row_tx_ready = next_ < now + period_;
}

/* Bit errors of a block. */
void LaneCable::hit(LaneBlock& block, CableStatistics& statistics)
{
    uint64_t left = block_bits, place = 0;
    while (bits_to_error_ < left) {
        place += bits_to_error_;
        left -= bits_to_error_ + 1;
        if (place < 2)
            block.header ^= uint8_t(1 << place);
        else
            block.data ^= uint64_t(1) << (place - 2);
        place++;
        statistics.bit_errors++;
        bits_to_error_ = random_.failures(bit_error_rate_);
    }
    if (bits_to_error_ != ~uint64_t(0))
        bits_to_error_ -= left;
}

void LaneCable::sample_transmit(const SerialInputs& in, const SerialOutputs& out,
                                const CableFault* fault, Time now, CableStatistics& statistics)
{
    if (!in.row_tx_ready)
        return;
    if ((fault && fault->kind == CableFault::unplugged) || !out.row_tx[0].valid) {
        statistics.lost_words++;
        return stay_dark(now);
    }
    Time start = std::max(next_, now);
    next_ = start + row_;
    lit_ = true;
    statistics.words++;
    for (unsigned n = 0; n < bonded_lanes; n++) {
        LaneBlock block = out.row_tx[n];
        if (fault && fault->kind == CableFault::noise) {
            block.header = uint8_t(random_.below(4));
            block.data = random_.bits();
        }
        hit(block, statistics);
        statistics.code_errors += !is_possible(block.header);
        lanes_[n].sent.push_back({start + lanes_[n].delay, true, block.header, block.data});
    }
}

void LaneCable::stay_dark(Time now)
{
    if (next_ >= now + period_)
        return;
    Time start = std::max(next_, now);
    next_ = start + row_;
    if (lit_)
        for (auto& lane : lanes_)
            lane.sent.push_back({start + lane.delay, false, 0, 0});
    lit_ = false;
}

/* Receiver ------------------------------------------------------------------------------------- */

void LaneCable::meet(bool received)
{
    for (auto& lane : lanes_) {
        if (received)
            lane.arriving.insert(lane.arriving.end(), lane.sent.begin(), lane.sent.end());
        lane.sent.clear();
    }
}

void LaneCable::drive_receive(SerialInputs& in, Time now)
{
    in.serial_rx_signal = true;
    in.lanes_locked = 0;
    for (unsigned n = 0; n < bonded_lanes; n++) {
        Lane& lane = lanes_[n];
        LaneBlock& block = in.lanes_rx[n];
        block.valid = false;
        if (!lane.arriving.empty() && lane.arriving.front().at <= now) {
            Arrival arrival = lane.arriving.front();
            lane.arriving.pop_front();
            lane.lit = arrival.light;
            if (arrival.light)
                lane.lock.block(is_possible(arrival.header));
            else
                lane.lock.lose();
            block = {lane.lock.locked(), arrival.header, arrival.data};
        }
        in.serial_rx_signal &= lane.lit;
        in.lanes_locked |= uint8_t(lane.lock.locked() << n);
    }
}

} // namespace dibber
