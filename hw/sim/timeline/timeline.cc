/* SPDX-License-Identifier: BSD-2-Clause */

#include "timeline.h"

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace dibber {

Timeline::Timeline(const std::string& path, unsigned cards)
    : path_(path), file_(std::fopen(path.c_str(), "we"))
{
    if (!file_)
        throw std::runtime_error("timeline " + path + ": " + strerror(errno));
    for (unsigned card = 0; card < cards; card++)
        cards_.push_back(std::make_unique<CardTimeline>(card));
    /* The first event has no comma before it. */
    put("[\n{\"ph\":\"M\",\"pid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"dibber-sim\"}}");
    write();
    std::fflush(file_);
}

Timeline::~Timeline()
{
    if (file_)
        std::fclose(file_);
}

void Timeline::put(const std::string& text)
{
    if (error_ || std::fwrite(text.data(), 1, text.size(), file_) == text.size())
        return;
    error_ = errno;
    fprintf(stderr, "dibber-sim: timeline %s: %s; it ends here\n", path_.c_str(), strerror(error_));
}

void Timeline::write()
{
    for (auto& card : cards_)
        put(card->events.take());
}

void Timeline::close(Time now)
{
    for (auto& card : cards_)
        card->cut(now);
    write();
    put("\n]\n");
    std::FILE* file = file_;
    file_ = nullptr;
    if (std::fclose(file) != 0 && !error_)
        error_ = errno;
    if (error_)
        throw std::runtime_error("timeline " + path_ + ": " + strerror(error_));
}

} // namespace dibber
