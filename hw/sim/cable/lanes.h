/* One direction of a cable with the four lanes of a bonded link, in 64b/66b: a row of blocks in at
 * the sender's transceivers, blocks of each lane out at the receiver's after the delay of both and
 * the cable. Each lane may be later than the one before it.
 *
 * Bit errors, drawn from a seed, hit the 66 bits of blocks. Each lane's receiver looks for blocks
 * as IEEE 802.3-2018, 49.2.14 says, and gives none before it has found them.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <array>
#include <deque>
#include <vector>

#include "../device.h"
#include "../random.h"

namespace dibber {

struct CableDirection;
struct CableFault;
struct CableStatistics;

/* Whether a lane's receiver has found the blocks. */
class BlockLock {
public:
    /* A block came whose synchronisation header is possible, or not. */
    void block(bool possible);
    void lose() { *this = {}; }
    bool locked() const { return locked_; }

private:
    bool locked_ = false;
    unsigned blocks_ = 0, wrong_ = 0; /* of this window */
};

class LaneCable {
public:
    LaneCable(const Profile& profile, uint64_t seed, const CableDirection& direction);

    /* As of Cable. */
    void drive_transmit(SerialInputs& in, Time now) const;
    void sample_transmit(const SerialInputs& in, const SerialOutputs& out, const CableFault* fault,
                         Time now, CableStatistics& statistics);
    void stay_dark(Time now);
    void drive_receive(SerialInputs& in, Time now);
    void meet(bool received);

private:
    struct Arrival {
        Time at;
        bool light; /* else the lane is dark from then on */
        uint8_t header;
        uint64_t data;
    };

    struct Lane {
        Time delay = 0;
        std::vector<Arrival> sent;
        std::deque<Arrival> arriving;
        bool lit = false; /* at the receiver */
        BlockLock lock;
    };

    void hit(LaneBlock& block, CableStatistics& statistics);

    const Time row_, period_;
    const double bit_error_rate_;
    Random random_;

    Time next_ = 0; /* when the transceivers take their next row */
    bool lit_ = false;
    uint64_t bits_to_error_ = ~uint64_t(0);
    std::array<Lane, bonded_lanes> lanes_;
};

} // namespace dibber
