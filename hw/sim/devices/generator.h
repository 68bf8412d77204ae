/* A bare TLP generator: as many memory writes or reads as the stream takes, and nothing between
 * them. It has no limit of its own, so its rate is the limit of the host model. */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <vector>

#include "stream.h"

namespace dibber {

class Generator : public StreamDevice {
public:
    struct Work {
        bool read = false;
        uint64_t address = 0, stride = 0; /* bytes from one TLP's address to the next */
        unsigned bytes = 8, count = 0, in_flight = 1;
    };

    /* A read: the cycles at which its request was taken and its first completion began, and its
     * data.
     */
    struct Read {
        uint64_t asked = 0, answered = 0, finished = 0;
        unsigned completions = 0, received = 0;
        bool good = true;
    };

    using StreamDevice::StreamDevice;

    void start(const Work& work);
    bool finished() const { return sent_ == work_.count && waiting() == 0 && open_ == 0; }

    /* Cycles at which the first beat of all was taken and the last. */
    uint64_t first_cycle() const { return first_; }
    uint64_t last_cycle() const { return last_; }
    const std::vector<Read>& reads() const { return reads_; }
    /* Whether completions of a later read began before an earlier one had ended. */
    bool overtaken() const { return overtaken_; }

    void settle(const Inputs& in, Outputs& out) override;
    void clock(const Inputs& in) override;

private:
    void received(const Tlp& tlp) override;

    Work work_;
    unsigned sent_ = 0, open_ = 0;
    uint64_t cycle_ = 0, first_ = 0, last_ = 0, tlp_began_ = 0;
    bool valid_ = false, last_beat_ = false, overtaken_ = false;
    std::vector<Read> reads_;
    std::vector<unsigned> tag_read_ = std::vector<unsigned>(256);
    std::deque<uint8_t> free_tags_;
    std::deque<unsigned> taken_; /* reads queued, whose request has not been taken */
};

} // namespace dibber
