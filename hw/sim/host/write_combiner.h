/* What a processor does to stores to write-combined memory (Intel 64 and IA-32 Architectures
 * Software Developer's Manual, volume 3A, 12.3.1): a few buffers of a line each collect them.
 *
 * A line leaves when all its bytes are stored, when another line needs its buffer, or at a fence. A
 * whole line is one TLP of 64 bytes; of a part, each aligned word of 8 bytes is a TLP with its byte
 * enables. Lines leave in the order in which this happens, and at least the profile's `line_ns`
 * apart. A buffer is free when its line has left. If none is free, the processor waits.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>

#include "../profile.h"

namespace dibber {

class WriteCombiner {
public:
    static constexpr unsigned line_bytes = 64, word_bytes = 8;

    /* `bytes`: a line, or an aligned word of which `enables` has a bit for each byte. Called inside
     * store() and fence(), with times that never decrease. */
    using Leave = std::function<void(Time at, uint64_t offset, std::span<const uint8_t> bytes,
                                     uint64_t enables)>;

    WriteCombiner(const Profile& profile, Leave leave);

    /* The processor's time after an instruction for each aligned word of `bytes`, begun at `now`.
     */
    Time store(Time now, uint64_t offset, std::span<const uint8_t> bytes);

    /* The time at which all lines have left, as the processor waits for it at a fence, at a store
     * to other memory of the card, and at an uncached load. */
    Time fence(Time now);

    bool empty() const { return open_.empty() && leaving_.empty(); }

private:
    struct Line {
        uint64_t offset;
        uint64_t enables = 0;
        std::array<uint8_t, line_bytes> bytes = {};
    };

    Line& line_of(uint64_t offset, Time& now);
    void evict(std::deque<Line>::iterator line, Time now);

    const unsigned buffers_;
    const Time store_, gap_;
    const Leave leave_;
    std::deque<Line> open_; /* the oldest first */
    std::deque<Time> leaving_;
    Time last_ = 0;
    bool any_left_ = false;
};

} // namespace dibber
