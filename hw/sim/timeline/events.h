/* Chrome trace events of one card, as text.
 *
 * Format: "Trace Event Format" of Chrome's tracing, the JSON array form; Perfetto reads it. Times
 * are microseconds with six decimals, which are picoseconds. A card is a process of that format,
 * and a row is a thread. Spans of one row do not overlap; what overlaps is a pair of begin() and
 * end() with an identity.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <cstdarg>
#include <string>

#include "../units.h"

namespace dibber {

class Events {
public:
    explicit Events(unsigned card);

    /* Names of the card and of a row. Rows are shown in the order of their numbers. */
    void name_card();
    void name_row(unsigned row, const std::string& name);

    /* `format` and what follows make the members of "args", without braces. */
    void span(unsigned row, const char* name, Time from, Time until, const char* format, ...)
        __attribute__((format(printf, 6, 7)));
    void instant(unsigned row, const char* name, Time at, const char* format, ...)
        __attribute__((format(printf, 5, 6)));
    void begin(const char* category, const char* name, uint64_t number, Time at, const char* format,
               ...) __attribute__((format(printf, 6, 7)));
    void end(const char* category, const char* name, uint64_t number, Time at);

    /* What was said since the last call. */
    std::string take();

private:
    void head(const char* phase, const char* name, Time at);
    void arguments(const char* format, va_list list);

    const unsigned process_; /* 1 for card 0 */
    std::string text_;
};

} // namespace dibber
