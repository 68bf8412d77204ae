/* SPDX-License-Identifier: BSD-2-Clause */

#include <cstdarg>
#include <cstdio>
#include <utility>

#include "events.h"

namespace dibber {

namespace {

constexpr unsigned picoseconds_of_microsecond = 1000000;

void append(std::string& text, const char* format, ...) __attribute__((format(printf, 2, 3)));

void append(std::string& text, const char* format, ...)
{
    char part[256];
    va_list list;
    va_start(list, format);
    vsnprintf(part, sizeof(part), format, list);
    va_end(list);
    text += part;
}

void append_time(std::string& text, const char* member, Time time)
{
    append(text, ",\"%s\":%llu.%06u", member,
           static_cast<unsigned long long>(time / picoseconds_of_microsecond),
           unsigned(time % picoseconds_of_microsecond));
}

} // namespace

Events::Events(unsigned card) : process_(card + 1) {}

/* Each event but the first of a file follows a comma. */
void Events::head(const char* phase, const char* name, Time at)
{
    append(text_, ",\n{\"ph\":\"%s\",\"pid\":%u,\"name\":\"%s\"", phase, process_, name);
    append_time(text_, "ts", at);
}

void Events::arguments(const char* format, va_list list)
{
    char part[512];
    vsnprintf(part, sizeof(part), format, list);
    text_ += ",\"args\":{";
    text_ += part;
    text_ += "}}";
}

void Events::name_card()
{
    append(text_, ",\n{\"ph\":\"M\",\"pid\":%u,\"name\":\"process_name\",\"args\":{\"name\":\"",
           process_);
    append(text_, "card%u and its host\"}}", process_ - 1);
}

void Events::name_row(unsigned row, const std::string& name)
{
    append(text_, ",\n{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"thread_name\"", process_, row);
    append(text_, ",\"args\":{\"name\":\"%s\"}}", name.c_str());
    append(text_, ",\n{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"thread_sort_index\"", process_,
           row);
    append(text_, ",\"args\":{\"sort_index\":%u}}", row);
}

void Events::span(unsigned row, const char* name, Time from, Time until, const char* format, ...)
{
    head("X", name, from);
    append_time(text_, "dur", until - from);
    append(text_, ",\"tid\":%u", row);
    va_list list;
    va_start(list, format);
    arguments(format, list);
    va_end(list);
}

void Events::instant(unsigned row, const char* name, Time at, const char* format, ...)
{
    head("i", name, at);
    append(text_, ",\"s\":\"t\",\"tid\":%u", row);
    va_list list;
    va_start(list, format);
    arguments(format, list);
    va_end(list);
}

void Events::begin(const char* category, const char* name, uint64_t number, Time at,
                   const char* format, ...)
{
    head("b", name, at);
    append(text_, ",\"cat\":\"%s\",\"id2\":{\"local\":\"%llu\"}", category,
           static_cast<unsigned long long>(number));
    va_list list;
    va_start(list, format);
    arguments(format, list);
    va_end(list);
}

void Events::end(const char* category, const char* name, uint64_t number, Time at)
{
    head("e", name, at);
    append(text_, ",\"cat\":\"%s\",\"id2\":{\"local\":\"%llu\"}}", category,
           static_cast<unsigned long long>(number));
}

std::string Events::take() { return std::exchange(text_, {}); }

} // namespace dibber
