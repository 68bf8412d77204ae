/* Simulated time, and its names in the rest of the simulator. */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <cstdint>

namespace dibber {

/* Picoseconds since the simulator started. 64 bits last 213 days. */
using Time = uint64_t;

constexpr Time never = ~Time(0);

constexpr Time from_ns(double ns) { return Time(ns * 1000.0 + 0.5); }

} // namespace dibber
