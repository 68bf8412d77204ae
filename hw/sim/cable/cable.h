/* One direction of the cable with its two transceivers: words in at the sender's serial PHY
 * boundary, words out at the receiver's after the delay of transceivers and cable. While the
 * sender's transceiver is in loopback its words come back to it after the delay of transmitter and
 * receiver, and the other end sees no signal.
 *
 * Every symbol is 10 bits of 8b/10b. Bit errors, drawn from a seed, hit those bits, and the
 * receiver gets the decoder's output. Faults come and go at stated times. The sender's thread
 * computes the arriving words, and the receiver's thread gets them at the next meeting.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../device.h"
#include "../random.h"
#include "code_8b10b.h"
#include "frames.h"
#include "lanes.h"

namespace dibber {

/* A fault of a cable from `from` until `until`. */
struct CableFault {
    enum Kind {
        unplugged, /* a little noise, then no signal */
        noise,     /* every symbol is random, and the signal is there */
        stop,      /* flow words say STOP for all channels */
        inverted,  /* the pair's two wires are exchanged */
        rate,      /* the other end has another rate: random bits */
        foreign,   /* good symbols of a sender that never sends a comma */
        loopback,  /* each end's transmit pair is on its own receive pair; for the whole run */
    };

    Kind kind;
    Time from = 0, until = ~Time(0);
    int direction = -1; /* 0 or 1: only what this end sends */
};

/* One direction of a cable. */
struct CableDirection {
    uint64_t stream = 0; /* keeps its random numbers apart from those of others */
    double length_m = 0, bit_error_rate = 0;
    std::vector<CableFault> faults;               /* of this direction */
    std::vector<std::pair<Time, double>> rates{}; /* from then on this bit error rate; by time */
    bool captured = false;                        /* frames are kept for a file */
    bool plugged = true; /* false: the port has no cable, and its words are not even coded */
};

/* "KIND", "KIND:T0:T1" or "KIND:T0:T1:DIRECTION", times in microseconds. Throws
 * std::invalid_argument. */
CableFault parse_fault(const std::string& text);

struct CableStatistics {
    uint64_t words = 0, bit_errors = 0, code_errors = 0, disparity_errors = 0, lost_words = 0;
};

class Cable {
public:
    Cable(const Profile& profile, uint64_t seed, CableDirection direction);

    /* Sender, each cycle. */
    void drive_transmit(SerialInputs& in, Time now) const;
    void sample_transmit(const SerialInputs& in, const SerialOutputs& out, Time now);

    /* Sender without power, each cycle in place of both. */
    void stay_dark(Time now);

    /* Receiver, each cycle. */
    void drive_receive(SerialInputs& in, Time now);

    /* Sender in loopback, each cycle: what it receives. */
    void drive_loopback(SerialInputs& in, Time now);

    /* The frames that it carried since they were last taken; none of a cable that carries symbols.
     */
    std::vector<CarriedFrame>* captured() { return frames_ ? &frames_->captured() : nullptr; }

    /* Between cycles: hand over the sent words. Without a receiver at the far end they are lost. */
    void meet(bool received);

    /* The time that a word takes. */
    Time word() const { return word_; }

    const CableStatistics& statistics() const { return statistics_; }

private:
    struct Arrival {
        Time at;
        bool signal, valid;
        Symbols symbols;
        uint8_t code_error, disparity_error;
    };

    Arrival carry(Symbols symbols, const CableFault* fault);
    void fall_silent(Time start, unsigned noisy);
    static bool deliver(std::deque<Arrival>& arriving, SerialInputs& in, Time now);
    Arrival noise();
    void decode(unsigned place, uint16_t symbol, Arrival& out);
    const CableFault* fault_at(Time now);
    void draw_next_error();
    void follow_rate(Time start);

    const Time word_, period_, delay_, turn_; /* `turn_`: through one transceiver and back */
    const Code8b10b code_;
    Random random_;

    Time next_word_ = 0; /* when the transmitter begins its next word */
    bool tx_disparity_ = false, rx_disparity_ = false;
    uint64_t bits_to_error_ = ~uint64_t(0);
    const bool plugged_;
    double bit_error_rate_;
    std::vector<CableFault> faults_;
    std::vector<std::pair<Time, double>> rates_;
    size_t next_fault_ = 0, next_rate_ = 0;
    unsigned cut_words_ = 0;

    std::vector<Arrival> sent_;
    std::deque<Arrival> arriving_, looped_;
    bool signal_ = false;
    CableStatistics statistics_;
    std::unique_ptr<FrameCable> frames_; /* a cable of a profile with an MTU: no symbols */
    std::unique_ptr<LaneCable> lanes_;   /* a cable of a bonded link: no symbols */
};

} // namespace dibber
