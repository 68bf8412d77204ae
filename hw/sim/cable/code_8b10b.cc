/* SPDX-License-Identifier: BSD-2-Clause */

#include "code_8b10b.h"

#include <bit>

namespace dibber {

namespace {

/* Sub-blocks `abcdei` and `fghj` for negative disparity, by the value of EDCBA and HGF. */
constexpr uint8_t six[32] = {0b100111, 0b011101, 0b101101, 0b110001, 0b110101, 0b101001, 0b011001,
                             0b111000, 0b111001, 0b100101, 0b010101, 0b110100, 0b001101, 0b101100,
                             0b011100, 0b010111, 0b011011, 0b100011, 0b010011, 0b110010, 0b001011,
                             0b101010, 0b011010, 0b111010, 0b110011, 0b100110, 0b010110, 0b110110,
                             0b001110, 0b101110, 0b011110, 0b101011};
constexpr uint8_t four[8] = {0b1011, 0b1001, 0b0101, 0b1100, 0b1101, 0b1010, 0b0110, 0b1110};
constexpr uint8_t alternate_seven = 0b0111;

uint16_t data_symbol(uint8_t byte, bool disparity)
{
    unsigned x = byte & 31, y = byte >> 5;
    unsigned first = six[x];
    bool unbalanced = std::popcount(first) != 3;
    if (disparity && (unbalanced || x == 7))
        first ^= 0x3f;
    disparity ^= unbalanced;
    unsigned second = four[y];
    /* D.x.A7 avoids five equal bits across the sub-blocks. */
    if (y == 7 && (disparity ? x == 11 || x == 13 || x == 14 : x == 17 || x == 18 || x == 20))
        second = alternate_seven;
    if (disparity && (std::popcount(second) != 2 || y == 3))
        second ^= 0xf;
    return uint16_t(first << 4 | second);
}

uint16_t control_symbol(uint8_t byte, bool disparity)
{
    unsigned x = byte & 31, y = byte >> 5;
    uint16_t symbol;
    if (x == 28) {
        constexpr uint8_t second[8] = {0b0100, 0b1001, 0b0101, 0b0011,
                                       0b0010, 0b1010, 0b0110, 0b1000};
        symbol = uint16_t(0b001111 << 4 | second[y]);
    } else if (y == 7 && (x == 23 || x == 27 || x == 29 || x == 30)) {
        symbol = uint16_t(six[x] << 4 | 0b1000);
    } else {
        return Code8b10b::no_symbol;
    }
    return disparity ? symbol ^ 0x3ff : symbol;
}

} // namespace

Code8b10b::Code8b10b()
{
    characters_.fill(0);
    for (auto& valid : valid_)
        valid.fill(false);
    for (unsigned symbol = 0; symbol < 1024; symbol++) {
        turns_[symbol] = std::popcount(symbol) != 5;
        positive_[symbol] = std::popcount(symbol) > 5;
    }
    for (unsigned character = 0; character < 512; character++)
        for (bool disparity : {false, true}) {
            uint8_t byte = uint8_t(character);
            uint16_t symbol =
                character >> 8 ? control_symbol(byte, disparity) : data_symbol(byte, disparity);
            symbols_[disparity][character] = symbol;
            if (symbol == no_symbol)
                continue;
            characters_[symbol] = uint16_t(character);
            valid_[disparity][symbol] = true;
        }
}

Code8b10b::Decoded Code8b10b::decode(uint16_t symbol, bool& disparity) const
{
    Decoded out = {};
    out.byte = uint8_t(characters_[symbol]);
    out.k = characters_[symbol] >> 8;
    out.code_error = !valid_[0][symbol] && !valid_[1][symbol];
    out.disparity_error = !out.code_error && !valid_[disparity][symbol];
    if (turns_[symbol])
        disparity = positive_[symbol];
    return out;
}

} // namespace dibber
