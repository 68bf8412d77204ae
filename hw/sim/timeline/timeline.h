/* The file of --timeline: Chrome trace events of all cards, in simulated time.
 *
 * Each card's events are written when the units meet, so memory holds those of one quantum. The
 * order in the file depends on no thread. If the file cannot be written any more, the run goes on
 * without it, and close() says so.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "card_timeline.h"

namespace dibber {

class Timeline {
public:
    /* Throws std::runtime_error that names the file. */
    Timeline(const std::string& path, unsigned cards);
    ~Timeline();

    CardTimeline& card(unsigned number) { return *cards_[number]; }

    /* Write what the cards have said. */
    void write();

    /* End what has begun, and the file. Throws std::runtime_error if the file is not whole. */
    void close(Time now);

private:
    void put(const std::string& text);

    const std::string path_;
    std::FILE* file_;
    int error_ = 0; /* errno of the first write that failed */
    std::vector<std::unique_ptr<CardTimeline>> cards_;
};

} // namespace dibber
