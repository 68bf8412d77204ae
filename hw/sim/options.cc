/* SPDX-License-Identifier: BSD-2-Clause */

#include "options.h"

#include <charconv>
#include <cstring>

#include <getopt.h>

#include "dibber_interface.h"

namespace dibber {

const char* const usage =
    "usage: dibber-sim --profile FILE.toml --socket-dir DIRECTORY [option]...\n"
    "\n"
    "Simulated Dibber cards, joined by cables and switches, each offered on a vfio-user\n"
    "socket (DIRECTORY/card0.sock, card1.sock, ...). Prints \"ready\" when the sockets\n"
    "listen.\n"
    "\n"
    "  --profile FILE        the machine and its link (hw/sim/profiles)\n"
    "  --socket-dir DIR      where the sockets are made; it must exist\n"
    "  --participants N      time starts when N endpoints or free clients have joined (one\n"
    "                        a card); 0: at once\n"
    "  --topology FILE       cards, switches and cables (format: hw/sim/topology.h)\n"
    "  --cards N             without a file: 1 card, or 2 and the cable between them (2)\n"
    "  --seed S              of bit errors, completion order and splitting (1)\n"
    "  --ber X               bit error rate on the cables, instead of the profile's\n"
    "  --fault [CABLE=]KIND[:T0:T1[:DIRECTION]]\n"
    "                        what is wrong with the cable, or each cable, from T0 to T1, in\n"
    "                        microseconds of simulated time, or all the time: unplugged,\n"
    "                        noise, stop (flow words say STOP), inverted, rate, foreign (no\n"
    "                        comma), loopback; DIRECTION 0 or 1: only what that end sends\n"
    "                        (of a pair: that card). May be given again\n"
    "  --at 'TIME ACTION NAME [RATE]'\n"
    "                        at TIME in microseconds: pull or plug a cable, errors (its bit\n"
    "                        error rate becomes RATE), off, on or power (off and on at once)\n"
    "                        of a card or switch. May be given again\n"
    "  --script FILE         such events, one a line; # begins a comment\n"
    "  --set TABLE.KEY=VALUE change the profile; may be given again\n"
    "  --reset-takes-power   a card that is reset, as by a client that comes, keeps nothing\n"
    "  --threads N           at most so many threads, with the same results (one a core)\n"
    "  --tlp-trace FILE      write every TLP there (format: hw/sim/trace.h)\n"
    "  --timeline FILE       write what the cards do in simulated time, as Chrome trace events\n"
    "  --pcap FILE           write the frames of cables there, for Wireshark; only of a\n"
    "                        profile whose link is Ethernet\n"
    "  --preload FILE        control program that lies in each card's SRAM after a reset. A\n"
    "                        client that loads this file need not write and compare it\n"
    "  --record DIR          write the pins of each card in each cycle to DIR/card0.pins, ...\n"
    "                        for dibber-replay: some 100 MB a million cycles and card\n"
    "  --stats FILE          write statistics there at the end, as JSON\n"
    "  --exit-when-done      end when all participants have gone\n"
    "  --watchdog S          name who holds the clock after S seconds (30)\n"
    "  --jtag                listen for OpenOCD's remote_bitbang at DIRECTORY/card0.jtag, ...\n"
    "  --device NAME         what is simulated\n";

namespace {

template <typename T>
T number(const char* option, const char* text, T low, T high)
{
    T value{};
    auto [end, error] = std::from_chars(text, text + strlen(text), value);
    if (error != std::errc() || *end || !(value >= low && value <= high)) /* NaN too */
        throw UsageError(std::string("--") + option + ": '" + text +
                         "' is not a number in its range");
    return value;
}

} // namespace

Options parse_options(int argc, char** argv, bool& help)
{
    static const option names[] = {{"profile", 1, nullptr, 'p'},
                                   {"socket-dir", 1, nullptr, 's'},
                                   {"participants", 1, nullptr, 'n'},
                                   {"cards", 1, nullptr, 'c'},
                                   {"seed", 1, nullptr, 'S'},
                                   {"ber", 1, nullptr, 'b'},
                                   {"fault", 1, nullptr, 'f'},
                                   {"set", 1, nullptr, 'x'},
                                   {"threads", 1, nullptr, 't'},
                                   {"tlp-trace", 1, nullptr, 'T'},
                                   {"timeline", 1, nullptr, 'L'},
                                   {"stats", 1, nullptr, 'j'},
                                   {"record", 1, nullptr, 'r'},
                                   {"preload", 1, nullptr, 'l'},
                                   {"exit-when-done", 0, nullptr, 'e'},
                                   {"watchdog", 1, nullptr, 'w'},
                                   {"device", 1, nullptr, 'd'},
                                   {"jtag", 0, nullptr, 'J'},
                                   {"reset-takes-power", 0, nullptr, 'P'},
                                   {"topology", 1, nullptr, 'o'},
                                   {"script", 1, nullptr, 'i'},
                                   {"at", 1, nullptr, 'a'},
                                   {"pcap", 1, nullptr, 'C'},
                                   {"help", 0, nullptr, 'h'},
                                   {nullptr, 0, nullptr, 0}};
    Options options;
    options.device = default_device;
    help = false;
    bool cards_given = false;
    int choice;
    opterr = 0;
    while ((choice = getopt_long(argc, argv, ":", names, nullptr)) != -1) {
        switch (choice) {
        case 'p':
            options.profile = optarg;
            break;
        case 's':
            options.socket_directory = optarg;
            break;
        case 'n':
            options.participants =
                number("participants", optarg, 0u, unsigned(DIBBER_NODES * DIBBER_ENDPOINTS));
            break;
        case 'c':
            options.cards = number("cards", optarg, 1u, 2u);
            cards_given = true;
            break;
        case 'o':
            options.topology = optarg;
            break;
        case 'a':
            try {
                options.events.push_back(parse_event(optarg, std::string("--at '") + optarg + "'"));
            } catch (const ScriptError& error) {
                throw UsageError(error.what());
            }
            break;
        case 'i':
            for (auto& event : read_script(optarg))
                options.events.push_back(event);
            break;
        case 'S':
            options.seed = number("seed", optarg, uint64_t(0), ~uint64_t(0));
            break;
        case 'b':
            number("ber", optarg, 0.0, 0.1);
            options.overrides.push_back(std::string("link.bit_error_rate=") +
                                        (*optarg == '.' ? "0" : "") + optarg);
            break;
        case 'f':
            try {
                options.faults.push_back(parse_named_fault(optarg));
            } catch (const std::invalid_argument& error) {
                throw UsageError(std::string("--fault: ") + error.what());
            }
            break;
        case 'x':
            options.overrides.push_back(optarg);
            break;
        case 't':
            options.threads = number("threads", optarg, 1u, 256u);
            break;
        case 'T':
            options.tlp_trace = optarg;
            break;
        case 'L':
            options.timeline = optarg;
            break;
        case 'C':
            options.pcap = optarg;
            break;
        case 'j':
            options.stats = optarg;
            break;
        case 'r':
            options.record = optarg;
            break;
        case 'l':
            options.preload = optarg;
            break;
        case 'e':
            options.exit_when_done = true;
            break;
        case 'w':
            options.watchdog_seconds = number("watchdog", optarg, 1u, 86400u);
            break;
        case 'J':
            options.jtag = true;
            break;
        case 'P':
            options.reset_takes_power = true;
            break;
        case 'd':
            options.device = optarg;
            break;
        case 'h':
            help = true;
            return options;
        case ':':
            throw UsageError(std::string(argv[optind - 1]) + " needs a value");
        default:
            throw UsageError(std::string("unknown option ") + argv[optind - 1]);
        }
    }
    if (optind < argc)
        throw UsageError(std::string("unexpected argument ") + argv[optind]);
    if (options.profile.empty())
        throw UsageError("--profile is missing");
    if (!options.topology.empty() && cards_given)
        throw UsageError("--cards and --topology exclude each other: the file says how many");
    if (!options.record.empty() && !options.preload.empty())
        throw UsageError("--record and --preload exclude each other: a replay has pins alone");
    return options;
}

} // namespace dibber
