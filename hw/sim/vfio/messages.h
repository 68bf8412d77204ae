/* Fields of messages that are read and checked in the same way for every kind of client. */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>

#include "../host/root_complex.h"
#include "connection.h"

namespace dibber::vfio {

/* Messages of one client that are handled before others have a turn. */
constexpr unsigned max_turn = 256;

/* Accesses of BAR 0 that a client outside the clock may have under way: bytes, and TLPs on their
 * way to the card. Further messages wait in its socket, as a CPU waits for posted credit.
 */
constexpr uint64_t max_backlog_bytes = 4 << 20;
constexpr size_t max_backlog_tlps = 4096;

/* Largest memory of a waiting access beside its bytes. */
constexpr uint64_t scheduling_cost = 256;

/* An error for the client: errno, and the reason as text for stderr. */
struct Refusal {
    int error;
    std::string why;
};

template <typename T>
std::span<const uint8_t> bytes_of(const T& value)
{
    return {reinterpret_cast<const uint8_t*>(&value), sizeof(value)};
}

/* The fixed part of a message's payload. */
template <typename T>
bool parse(const Message& message, T& out)
{
    if (message.payload.size() < sizeof(T))
        return false;
    memcpy(&out, message.payload.data(), sizeof(T));
    return true;
}

inline std::string hex(uint64_t value)
{
    char text[20];
    snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

/* Bytes of a region; 0: the client has none of that number. */
using RegionSize = uint64_t (*)(uint32_t index);

/* The offset of an access as RootComplex counts. */
inline uint64_t bar_offset(const RegionAccess& access)
{
    return access.offset + (access.region == bar2_region ? RootComplex::aperture_offset : 0);
}

/* The answer to GET_REGION_INFO. Throws Refusal, like the functions below. */
inline RegionInfo region_info(const Message& message, RegionSize size)
{
    RegionInfo info;
    if (!parse(message, info) || info.argsz < sizeof(info))
        throw Refusal{EINVAL, "GET_REGION_INFO is too short"};
    if (info.index >= regions)
        throw Refusal{EINVAL, "GET_REGION_INFO of region " + std::to_string(info.index)};
    RegionInfo answer = {sizeof(answer), 0, info.index, 0, size(info.index), 0};
    if (answer.size)
        answer.flags = region_readable | region_writable;
    return answer;
}

inline RegionAccess region_access(const char* what, const Message& message, RegionSize size)
{
    RegionAccess access;
    if (!parse(message, access))
        throw Refusal{EINVAL, std::string(what) + " is too short"};
    uint64_t bytes = size(access.region);
    if (access.count == 0 || access.count > max_transfer || access.offset > bytes ||
        access.count > bytes - access.offset)
        throw Refusal{EINVAL, std::string(what) + " of " + std::to_string(access.count) +
                                  " bytes at " + hex(access.offset) + " of region " +
                                  std::to_string(access.region)};
    return access;
}

inline RegionAccess read_access(const Message& message, RegionSize size)
{
    return region_access("REGION_READ", message, size);
}

inline RegionAccess write_access(const Message& message, RegionSize size)
{
    RegionAccess access = region_access("REGION_WRITE", message, size);
    if (message.payload.size() - sizeof(access) != access.count)
        throw Refusal{EINVAL, "REGION_WRITE with more or less than it says"};
    return access;
}

} // namespace dibber::vfio
