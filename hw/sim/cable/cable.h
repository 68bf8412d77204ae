/* This file is part of Dibber. */
/* SPDX-License-Identifier: BSD-2-Clause */

/* One direction of the cable with its two transceivers: words in at the sender's serial PHY boundary, words
 * out at the receiver's after the delay of transceivers and cable.
 *
 * Every symbol is 10 bits of 8b/10b. Bit errors, drawn from a seed, hit those bits, and the receiver sees
 * what a decoder makes of them. A cut cable delivers a little noise and then no signal. What arrives is
 * computed in the sender's thread; the receiver's thread gets it at the next meeting.
 */

#pragma once

#include <deque>
#include <vector>

#include "../device.h"
#include "../random.h"
#include "code_8b10b.h"

namespace dibber {

/* From `from` until `until` the cable is out. */
struct Unplugged {
    Time from, until;
};

struct CableStatistics {
    uint64_t words = 0, bit_errors = 0, code_errors = 0, disparity_errors = 0, lost_words = 0;
};

class Cable {
public:
    Cable(const Profile& profile, uint64_t seed, unsigned direction, std::vector<Unplugged> unplugged);

    /* Sender, each cycle. */
    void drive_transmit(Inputs& in, Time now) const;
    void sample_transmit(const Inputs& in, const Outputs& out, Time now);

    /* Receiver, each cycle. */
    void drive_receive(Inputs& in, Time now);

    /* Between cycles: hand over what was sent. */
    void meet();

    const CableStatistics& statistics() const { return statistics_; }

private:
    struct Arrival {
        Time    at;
        bool    signal, valid;
        Symbols symbols;
        uint8_t code_error, disparity_error;
    };

    Arrival carry(const Symbols& symbols);
    Arrival noise();
    void decode(unsigned place, uint16_t symbol, Arrival& out);
    bool cut(Time now);
    void draw_next_error();

    const Profile& profile_;
    const Time     word_, period_, delay_;
    const Code8b10b code_;
    Random         random_;

    Time     next_word_ = 0;                   /* when the transmitter begins its next word */
    bool     tx_disparity_ = false, rx_disparity_ = false;
    uint64_t bits_to_error_ = ~uint64_t(0);
    std::vector<Unplugged> unplugged_;
    size_t   next_cut_ = 0;
    unsigned cut_words_ = 0;

    std::vector<Arrival> sent_;
    std::deque<Arrival>  arriving_;
    bool                 signal_ = false;
    CableStatistics      statistics_;
};

}  // namespace dibber
