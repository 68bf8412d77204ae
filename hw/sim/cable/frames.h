/* One direction of a cable that carries Ethernet frames, with a MAC at each end: words in at the
 * sender's frame stream, words out at the receiver's after the delay of both MACs and the cable.
 *
 * The sender's MAC adds preamble, padding, FCS and the gap between frames. A frame with a bit error
 * arrives with `error`, as by a wrong FCS. Frames may be lost, or overtaken by the next one, drawn
 * from a seed.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <deque>
#include <vector>

#include "../device.h"
#include "../random.h"
#include "pcap.h"

namespace dibber {

struct CableDirection;
struct CableFault;
struct CableStatistics;

class FrameCable {
public:
    FrameCable(const Profile& profile, uint64_t seed, const CableDirection& direction);

    /* As of Cable. */
    void drive_transmit(SerialInputs& in, Time now) const;
    void sample_transmit(const SerialInputs& in, const SerialOutputs& out, const CableFault* fault,
                         Time now, CableStatistics& statistics);
    void stay_dark(Time now);
    void drive_receive(SerialInputs& in, Time now);
    void meet(bool received);

    /* Frames that arrive, if they are to be captured; to be emptied between cycles. */
    std::vector<CarriedFrame>& captured() { return captured_; }

private:
    struct Arrival {
        Time at;
        bool signal; /* without a word: from then on the receiver sees a signal, or none */
        FrameWord word;
    };

    Time time_of(unsigned bytes) const { return Time(bytes * byte_ps_ + 0.5); }
    void light(bool on, Time now);
    void cut(Time now);
    bool drawn(double share);
    void hit(FrameWord& word, CableStatistics& statistics);
    void push(const FrameWord& word, Time at);
    void capture();
    void finish();

    const Time period_, delay_;
    const double byte_ps_, loss_, late_;
    const bool captures_;
    double bit_error_rate_;
    Random random_;

    Time next_ = 0; /* when the sender's MAC takes its next word */
    Time sampled_ = 0;
    bool lit_ = false;
    bool inside_ = false;                                   /* a frame has begun */
    bool lost_ = false, overtaken_ = false, wrong_ = false; /* of this frame */
    unsigned bytes_ = 0;
    uint64_t bits_to_error_ = ~uint64_t(0);

    std::vector<Arrival> sent_, frame_, held_; /* held_: frames that the next one overtakes */
    std::deque<Arrival> arriving_;
    bool signal_ = false;
    std::vector<CarriedFrame> captured_;
};

} // namespace dibber
