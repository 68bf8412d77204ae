/* The 8b/10b code (Widmer, Franaszek: "A DC-balanced, partitioned-block, 8B/10B transmission code",
 * IBM Journal of Research and Development 27(5), 1983; the tables as in IEEE 802.3, clause 36).
 *
 * A symbol is 10 bits, `a` (first on the wire) in bit 9. A disparity is true when it is positive.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <array>
#include <cstdint>

namespace dibber {

class Code8b10b {
public:
    static constexpr uint16_t no_symbol = 0xffff;

    struct Decoded {
        uint8_t byte;
        bool k, code_error, disparity_error;
    };

    Code8b10b();

    /* `no_symbol` for a control character that does not exist. Moves `disparity` on. */
    uint16_t encode(uint8_t byte, bool k, bool& disparity) const
    {
        uint16_t symbol = symbols_[disparity][k << 8 | byte];
        disparity ^= symbol != no_symbol && turns_[symbol];
        return symbol;
    }

    /* A symbol of the other disparity decodes, with an error; anything else is a code error.
     * Afterwards `disparity` follows the received symbol. */
    Decoded decode(uint16_t symbol, bool& disparity) const;

    /* Whether a character (K flag in bit 8) exists, and whether it turns the disparity. */
    bool exists(unsigned character) const { return symbols_[0][character] != no_symbol; }
    bool turns(unsigned character) const { return turns_[symbols_[0][character]]; }

private:
    std::array<uint16_t, 512> symbols_[2];  /* by disparity before */
    std::array<uint16_t, 1024> characters_; /* K flag in bit 8 */
    std::array<bool, 1024> valid_[2], turns_, positive_;
};

} // namespace dibber
