/* SPDX-License-Identifier: BSD-2-Clause */

#include "write_combiner.h"

#include <algorithm>
#include <cstring>

namespace dibber {

WriteCombiner::WriteCombiner(const Profile& profile, Leave leave)
    : buffers_(profile.window.combining_buffers), store_(from_ns(profile.window.store_ns)),
      gap_(from_ns(profile.window.line_ns)), leave_(std::move(leave))
{
}

Time WriteCombiner::store(Time now, uint64_t offset, std::span<const uint8_t> bytes)
{
    while (!bytes.empty()) {
        size_t n = std::min(bytes.size(), size_t(word_bytes - offset % word_bytes));
        now += store_;
        Line& line = line_of(offset / line_bytes * line_bytes, now);
        unsigned place = offset % line_bytes;
        std::memcpy(line.bytes.data() + place, bytes.data(), n);
        line.enables |= ((uint64_t(1) << n) - 1) << place;
        if (line.enables == ~uint64_t(0))
            evict(std::find_if(open_.begin(), open_.end(),
                               [&](auto& other) { return &other == &line; }),
                  now);
        offset += n;
        bytes = bytes.subspan(n);
    }
    return now;
}

Time WriteCombiner::fence(Time now)
{
    while (!open_.empty())
        evict(open_.begin(), now);
    if (!leaving_.empty())
        now = std::max(now, leaving_.back());
    leaving_.clear();
    return now;
}

/* The buffer of a line. It may have to be made free, which takes the processor's time. */
WriteCombiner::Line& WriteCombiner::line_of(uint64_t offset, Time& now)
{
    for (Line& line : open_)
        if (line.offset == offset)
            return line;
    while (!leaving_.empty() && leaving_.front() <= now)
        leaving_.pop_front();
    if (open_.size() == buffers_)
        evict(open_.begin(), now);
    if (open_.size() + leaving_.size() >= buffers_) {
        now = std::max(now, leaving_.front());
        leaving_.pop_front();
    }
    open_.push_back({offset});
    return open_.back();
}

void WriteCombiner::evict(std::deque<Line>::iterator line, Time now)
{
    Time at = any_left_ ? std::max(now, last_ + gap_) : now;
    last_ = at;
    any_left_ = true;
    if (line->enables == ~uint64_t(0)) {
        leave_(at, line->offset, line->bytes, line->enables);
    } else {
        for (unsigned place = 0; place < line_bytes; place += word_bytes) {
            uint64_t enables = line->enables >> place & 0xff;
            if (enables)
                leave_(at, line->offset + place, std::span(line->bytes).subspan(place, word_bytes),
                       enables);
        }
    }
    open_.erase(line);
    leaving_.push_back(at);
}

} // namespace dibber
