/* A processor's write-combining buffers by themselves, as JSON on standard output.
 *
 *     combining-bench PROFILE [table.key=value]... <STEPS
 *
 * Each line of STEPS is "store WAIT OFFSET HEX" or "fence WAIT 0 -", made WAIT picoseconds after
 * the processor has done the line before. Prints "left", a list of [ps, offset, enables, HEX] in
 * their order, and "done", the processor's time after each line.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <cstdio>
#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

#include "../../host/write_combiner.h"

using namespace dibber;

namespace {

std::string hex(std::span<const uint8_t> bytes)
{
    std::string text;
    for (uint8_t byte : bytes) {
        char digits[3];
        snprintf(digits, sizeof(digits), "%02x", byte);
        text += digits;
    }
    return text;
}

std::vector<uint8_t> bytes_of(const std::string& text)
{
    std::vector<uint8_t> bytes;
    for (size_t n = 0; n + 1 < text.size(); n += 2)
        bytes.push_back(uint8_t(std::stoul(text.substr(n, 2), nullptr, 16)));
    return bytes;
}

} // namespace

int main(int argc, char** argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: combining-bench PROFILE [table.key=value]... <STEPS\n");
        return 2;
    }
    Profile profile = read_profile(argv[1], std::vector<std::string>(argv + 2, argv + argc));
    nlohmann::json left = nlohmann::json::array(), done = nlohmann::json::array();
    WriteCombiner combiner(
        profile, [&](Time at, uint64_t offset, std::span<const uint8_t> bytes, uint64_t enables) {
            left.push_back({at, offset, enables, hex(bytes)});
        });
    std::string step, data;
    uint64_t wait, offset;
    Time now = 0;
    while (std::cin >> step >> wait >> offset >> data) {
        now += wait;
        now = step == "fence" ? combiner.fence(now) : combiner.store(now, offset, bytes_of(data));
        done.push_back(now);
    }
    std::cout << nlohmann::json{{"left", left}, {"done", done}} << "\n";
    return 0;
}
