/* The cable for frames and the Ethernet switch by themselves, as JSON on standard output.
 *
 *     frames-bench carry PROFILE CYCLES SEED BYTES [fault=KIND:T0:T1] [table.key=value]...
 *     frames-bench switch PORTS QUEUE_BYTES BYTES FRAMES SENDERS
 *
 * `carry` sends numbered frames of BYTES one behind the other. It prints how many were sent, the
 * number of each frame that came whole and right, how many came with an error, the cycle in which
 * each began, the frames of the pcap file, and the cycles in which the receiver saw no signal.
 *
 * `switch` lets stations at the ports 1 to SENDERS send FRAMES frames each, at once, to the station
 * at port 0, which has sent one before. It prints how many came there from each port, all whole and
 * in order, how many came elsewhere, and how many were dropped.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <nlohmann/json.hpp>

#include "../../cable/cable.h"
#include "../../ethernet_switch.h"

using namespace dibber;

namespace {

/* Frame `number` from station `from` to station `to`: the number in each word behind the addresses.
 */
std::vector<FrameWord> make_frame(unsigned to, unsigned from, unsigned bytes, uint64_t number)
{
    auto address = [](unsigned station) { return uint64_t(station) << 40 | 0x02; };
    std::vector<FrameWord> frame;
    for (unsigned at = 0; at < bytes; at += 8) {
        FrameWord word;
        word.valid = true;
        word.last = at + 8 >= bytes;
        word.bytes = uint8_t(std::min(8u, bytes - at));
        word.data = at == 0   ? address(to) | address(from) << 48
                    : at == 8 ? address(from) >> 16 | number << 32
                              : number;
        if (word.bytes < 8)
            word.data &= (uint64_t(1) << 8 * word.bytes) - 1;
        frame.push_back(word);
    }
    return frame;
}

bool same(const std::vector<FrameWord>& one, const std::vector<FrameWord>& other)
{
    bool equal = one.size() == other.size();
    for (size_t n = 0; equal && n < one.size(); n++)
        equal = one[n].data == other[n].data && one[n].bytes == other[n].bytes;
    return equal;
}

uint64_t number_of(const std::vector<FrameWord>& frame)
{
    return frame.size() > 1 ? frame[1].data >> 32 : ~uint64_t(0);
}

int carry(int argc, char** argv)
{
    if (argc < 6)
        return 1;
    std::vector<std::string> overrides;
    CableDirection direction;
    direction.stream = 0x200;
    direction.captured = true;
    for (int i = 6; i < argc; i++)
        if (!strncmp(argv[i], "fault=", 6))
            direction.faults.push_back(parse_fault(argv[i] + 6));
        else
            overrides.push_back(argv[i]);
    Profile profile = read_profile(argv[2], overrides);
    direction.length_m = profile.link.length_m;
    direction.bit_error_rate = profile.link.bit_error_rate;
    uint64_t cycles = strtoull(argv[3], nullptr, 0);
    unsigned bytes = unsigned(atoi(argv[5]));
    Cable cable(profile, strtoull(argv[4], nullptr, 0), direction);
    Inputs in;
    Outputs out;
    uint64_t sent = 0, errors = 0, dark = 0, captured = 0;
    nlohmann::json came = nlohmann::json::array(), began = nlohmann::json::array();
    auto frame = make_frame(1, 2, bytes, 0);
    std::vector<FrameWord> received;
    size_t at = 0;
    for (uint64_t cycle = 0; cycle < cycles; cycle++) {
        Time now = cycle * profile.period();
        cable.drive_transmit(in, now);
        cable.drive_receive(in, now);
        dark += !in.serial_rx_signal;
        out.frame_tx = frame[at];
        if (in.frame_rx.valid) {
            if (received.empty())
                began.push_back(cycle);
            received.push_back(in.frame_rx);
            if (in.frame_rx.last) {
                if (in.frame_rx.error)
                    errors++;
                else if (same(received, make_frame(1, 2, bytes, number_of(received))))
                    came.push_back(number_of(received));
                received.clear();
            }
        }
        cable.sample_transmit(in, out, now);
        if (in.frame_tx_ready && ++at == frame.size()) {
            at = 0;
            frame = make_frame(1, 2, bytes, ++sent);
        }
        captured += cable.captured()->size();
        cable.captured()->clear();
        cable.meet(true);
    }
    printf("%s\n", nlohmann::json{{"sent", sent},
                                  {"came", came},
                                  {"errors", errors},
                                  {"began", began},
                                  {"captured", captured},
                                  {"dark", dark}}
                       .dump()
                       .c_str());
    return 0;
}

int through_switch(int argc, char** argv)
{
    if (argc != 7)
        return 1;
    unsigned ports = unsigned(atoi(argv[2])), bytes = unsigned(atoi(argv[4])),
             frames = unsigned(atoi(argv[5])), senders = unsigned(atoi(argv[6]));
    EthernetSwitch hub(ports, unsigned(atoi(argv[3])));
    std::vector<SerialInputs> in(ports);
    std::vector<SerialOutputs> out(ports);
    std::vector<std::vector<FrameWord>> sending(ports), received(ports);
    std::vector<unsigned> at(ports), number(ports), came(ports), elsewhere(ports);
    bool whole = true, ordered = true;
    std::vector<uint64_t> last(ports);
    sending[0] = make_frame(1, 0, 64, 0);
    for (unsigned cycle = 0; cycle < 100000; cycle++) {
        for (unsigned n = 0; n < ports; n++) {
            bool mine = n == 0 ? cycle >= 20 && number[0] == 0
                               : cycle >= 200 && n <= senders && number[n] < frames;
            if (n > 0 && sending[n].empty())
                sending[n] = make_frame(0, n, bytes, number[n] + 1);
            in[n].frame_rx = mine ? sending[n][at[n]] : FrameWord{};
            in[n].frame_tx_ready = true;
            if (mine && ++at[n] == sending[n].size()) {
                at[n] = 0;
                number[n]++;
                sending[n].clear();
            }
        }
        hub.settle(cycle < 10, in, out);
        for (unsigned n = 0; n < ports; n++) {
            if (!out[n].frame_tx.valid) {
                whole &= received[n].empty();
                continue;
            }
            received[n].push_back(out[n].frame_tx);
            if (!out[n].frame_tx.last)
                continue;
            auto& frame = received[n];
            unsigned from = unsigned(frame[1].data >> 24 & 0xff);
            if (n == 0) {
                whole &= from < ports && same(frame, make_frame(0, from, bytes, number_of(frame)));
                ordered &= number_of(frame) > last[from];
                last[from] = number_of(frame);
                came[from]++;
            } else {
                elsewhere[n]++;
            }
            frame.clear();
        }
        hub.clock();
    }
    printf("%s\n", nlohmann::json{{"came", came},
                                  {"elsewhere", elsewhere},
                                  {"dropped", hub.dropped()},
                                  {"whole", whole},
                                  {"ordered", ordered}}
                       .dump()
                       .c_str());
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    try {
        if (argc > 1 && !strcmp(argv[1], "carry"))
            return carry(argc, argv);
        if (argc > 1 && !strcmp(argv[1], "switch"))
            return through_switch(argc, argv);
    } catch (const std::exception& error) {
        fprintf(stderr, "frames-bench: %s\n", error.what());
        return 1;
    }
    fprintf(stderr, "frames-bench: what?\n");
    return 1;
}
