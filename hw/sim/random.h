/* Seeded random numbers that are the same on every machine and library.
 *
 * The generator is SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
 * generators", OOPSLA 2014). The standard library's distributions are not used: their results are
 * not specified.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <cmath>
#include <cstdint>

namespace dibber {

class Random {
public:
    /* `stream` keeps users of one seed apart. */
    Random(uint64_t seed, uint64_t stream)
        : state_(seed * 0xd1342543de82ef95u ^ (stream + 1) * 0x9e3779b97f4a7c15u)
    {
    }

    uint64_t bits()
    {
        uint64_t z = state_ += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }

    /* 0 … n-1; n > 0. */
    uint64_t below(uint64_t n)
    {
        return uint64_t((static_cast<unsigned __int128>(bits()) * n) >> 64);
    }

    /* Number of failed trials before the first success, each with `probability` (0 < p < 1). */
    uint64_t failures(double probability)
    {
        double uniform = double((bits() >> 11) + 1) * 0x1p-53; /* (0, 1] */
        double n = std::floor(std::log(uniform) / std::log1p(-probability));
        return n < 1e18 ? uint64_t(n) : uint64_t(1e18);
    }

private:
    uint64_t state_;
};

} // namespace dibber
