/* The cable by itself, on standard output.
 *
 *     cable-bench code                       encoder: "K byte disparity symbol disparity_after" a
 * line cable-bench decode                     decoder: "symbol disparity byte K code_error
 * disparity_error" a line cable-bench words PROFILE CYCLES SEED [fault=KIND:T0:T1] [loopback=C0:C1]
 * [table.key=value]...
 *
 * `words` sends numbered words and comma words in turn for CYCLES cycles of the card's clock, and
 * prints as JSON how many were taken, when each word came, and the errors. From cycle C0 until C1
 * the sender's transceiver is in loopback: `looped_delays` is after how many cycles each word came
 * back, those that are not what was sent left out.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <nlohmann/json.hpp>

#include "../../cable/cable.h"

using namespace dibber;

namespace {

int print_code()
{
    Code8b10b code;
    for (unsigned character = 0; character < 512; character++)
        for (bool before : {false, true}) {
            bool after = before;
            uint16_t symbol = code.encode(uint8_t(character), character >> 8, after);
            if (symbol != Code8b10b::no_symbol)
                printf("%u %u %d %u %d\n", character >> 8, character & 0xff, before, symbol, after);
        }
    return 0;
}

int print_decoder()
{
    Code8b10b code;
    for (uint16_t symbol = 0; symbol < 1024; symbol++)
        for (bool before : {false, true}) {
            bool disparity = before;
            auto decoded = code.decode(symbol, disparity);
            printf("%u %d %u %d %d %d\n", symbol, before, decoded.byte, decoded.k,
                   decoded.code_error, decoded.disparity_error);
        }
    return 0;
}

int carry_words(int argc, char** argv)
{
    if (argc < 5)
        return 1;
    std::vector<std::string> overrides;
    std::vector<CableFault> faults;
    uint64_t loop_from = 0, loop_until = 0;
    for (int i = 5; i < argc; i++) {
        if (sscanf(argv[i], "loopback=%" SCNu64 ":%" SCNu64, &loop_from, &loop_until) == 2)
            continue;
        if (!strncmp(argv[i], "fault=", 6))
            faults.push_back(parse_fault(argv[i] + 6));
        else
            overrides.push_back(argv[i]);
    }
    Profile profile = read_profile(argv[2], overrides);
    uint64_t cycles = strtoull(argv[3], nullptr, 0);
    std::erase_if(faults, [](auto& fault) { return fault.direction == 1; });
    Cable cable(profile, strtoull(argv[4], nullptr, 0),
                {0x200, profile.link.length_m, profile.link.bit_error_rate, faults});
    Inputs in, looped;
    Outputs out;
    uint64_t taken = 0, came = 0, wrong = 0, silent = 0, unmarked = 0, quiet_after = 0;
    uint64_t looped_next = 0, looped_signal = 0;
    nlohmann::json delays = nlohmann::json::array(), looped_delays = nlohmann::json::array();
    std::vector<Symbols> sent;
    std::vector<uint64_t> sent_at;
    for (uint64_t cycle = 0; cycle < cycles; cycle++) {
        Time now = cycle * profile.period();
        cable.drive_transmit(in, now);
        cable.drive_receive(in, now);
        if (in.serial_rx_valid) {
            bool good = came < sent.size() && in.serial_rx.data == sent[came].data &&
                        in.serial_rx.k == sent[came].k;
            bool marked = in.serial_rx_code_error || in.serial_rx_disparity_error;
            wrong += !good;
            unmarked += !good && !marked;
            if (came < 100)
                delays.push_back(cycle - sent_at[came]);
            came++;
        }
        if (out.serial_loopback) {
            cable.drive_loopback(looped, now);
            looped_signal += looped.serial_rx_signal;
            if (looped.serial_rx_valid && looped.serial_rx.data == sent[looped_next].data)
                looped_delays.push_back(cycle - sent_at[looped_next]);
            looped_next += looped.serial_rx_valid;
        }
        silent += cycle > 100 && !in.serial_rx_signal;
        quiet_after = in.serial_rx_signal ? quiet_after : cycle;
        out.serial_tx =
            taken % 2 ? Symbols{uint32_t(taken) * 0x9e3779b9u, 0} : Symbols{0x4a4a00bc, 1};
        bool begins = !out.serial_loopback && cycle >= loop_from && cycle < loop_until;
        out.serial_loopback = cycle >= loop_from && cycle < loop_until;
        if (begins)
            looped_next = sent.size();
        if (in.serial_tx_ready) {
            taken++;
            sent.push_back(out.serial_tx);
            sent_at.push_back(cycle);
        }
        cable.sample_transmit(in, out, now);
        cable.meet(true);
    }
    auto& s = cable.statistics();
    nlohmann::json result = {{"taken", taken},
                             {"came", came},
                             {"wrong", wrong},
                             {"unmarked", unmarked},
                             {"delays", delays},
                             {"looped_signal", looped_signal},
                             {"looped_delays", looped_delays},
                             {"silent_cycles", silent},
                             {"last_silent_cycle", quiet_after},
                             {"bit_errors", s.bit_errors},
                             {"code_errors", s.code_errors},
                             {"disparity_errors", s.disparity_errors},
                             {"lost_words", s.lost_words}};
    printf("%s\n", result.dump().c_str());
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    try {
        if (argc == 2 && !strcmp(argv[1], "code"))
            return print_code();
        if (argc == 2 && !strcmp(argv[1], "decode"))
            return print_decoder();
        if (argc > 2 && !strcmp(argv[1], "words"))
            return carry_words(argc, argv);
    } catch (const std::exception& error) {
        fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    fprintf(stderr,
            "usage: cable-bench code | decode | words PROFILE CYCLES SEED [key=value]...\n");
    return 2;
}
