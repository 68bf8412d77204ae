/* What the host model allows a card without limits of its own, as JSON on standard output.
 *
 *     host-model-bench PROFILE write|read BYTES COUNT [address=A] [stride=S] [in_flight=N] [seed=S]
 *                      [master=0] [cpu=NS] [table.key=value]...
 *
 * With `cpu` the CPU writes 64 bytes to BAR 0 every so many nanoseconds.
 *
 * Bytes a second are those of the payload: of writes from the first being in memory to the last, of
 * reads from the first beat taken to the end of the last completion.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <nlohmann/json.hpp>

#include "../../options.h"
#include "../generator.h"

using namespace dibber;

namespace {

constexpr uint64_t memory_bytes = 1 << 24;

/* Run the work on a card of its own, then look at time, memory and statistics. */
nlohmann::json measure(const Profile& profile, const Options& options, const Generator::Work& work,
                       bool master, uint64_t cpu_ns)
{
    Simulation simulation(profile, options);
    auto& generator = dynamic_cast<Generator&>(simulation.device(0));
    std::vector<uint8_t> memory(memory_bytes);
    for (size_t i = 0; i < memory.size(); i++)
        memory[i] = uint8_t(i);
    simulation.memory(0).map_local(work.address & ~uint64_t(4095), memory);
    uint8_t command = master ? 6 : 2;
    simulation.host(0).config.write(4, {&command, 1});
    generator.start(work);
    Time limit = 0;
    while (!generator.finished() && limit < from_ns(cpu_ns ? 1e5 : 1e8)) {
        limit += from_ns(cpu_ns ? double(cpu_ns) : 10000);
        simulation.run_until(limit);
        if (cpu_ns)
            simulation.host(0).write_bar(0, std::vector<uint8_t>(64));
    }
    simulation.run_until(limit + from_ns(20000));

    double period = double(profile.period());
    uint64_t last = generator.last_cycle();
    nlohmann::json out = nlohmann::json::parse(simulation.statistics());
    if (work.read) {
        uint64_t latency = 0, completions = 0;
        bool good = true;
        for (auto& read : generator.reads()) {
            latency = std::max(latency, read.answered - read.asked);
            completions += read.completions;
            good &= read.good;
            last = std::max(last, read.finished);
        }
        out["first_latency_cycles"] = generator.reads()[0].answered - generator.reads()[0].asked;
        out["longest_latency_cycles"] = latency;
        out["completions"] = completions;
        out["good"] = good;
        out["overtaken"] = generator.overtaken();
    }
    const HostStatistics& host = simulation.host(0).statistics();
    out["first_latency_ns"] =
        host.writes ? (double(host.first_write) - double(generator.first_cycle()) * period) / 1e3
                    : 0;
    out["bytes_per_second"] = work.read
                                  ? double(work.bytes) * work.count /
                                        (double(last - generator.first_cycle() + 1) * period) * 1e12
                                  : double(work.bytes) * (work.count - 1) /
                                        double(host.last_write - host.first_write) * 1e12;
    out["finished"] = generator.finished();
    uint64_t wrong = 0;
    uint64_t base = work.address & 4095;
    for (unsigned n = 0; !work.read && n < work.count; n++)
        for (unsigned i = 0; i < work.bytes; i++)
            wrong += memory[base + n * work.stride + i] != uint8_t(n * 7 + i);
    out["bytes_wrong"] = wrong;
    return out;
}

int run(int argc, char** argv)
{
    if (argc < 5)
        throw UsageError("usage: host-model-bench PROFILE write|read BYTES COUNT [key=value]...");
    Options options;
    options.device = "generator";
    options.cards = 1;
    options.threads = 1;
    options.participants = 0;
    Generator::Work work;
    work.read = !strcmp(argv[2], "read");
    work.bytes = unsigned(strtoul(argv[3], nullptr, 0));
    work.count = unsigned(strtoul(argv[4], nullptr, 0));
    work.stride = work.bytes;
    bool master = true;
    uint64_t cpu_ns = 0;
    for (int i = 5; i < argc; i++) {
        std::string text = argv[i], key = text.substr(0, text.find('='));
        if (key.find('.') != std::string::npos) {
            options.overrides.push_back(text);
            continue;
        }
        uint64_t value = strtoull(text.c_str() + key.size() + 1, nullptr, 0);
        if (key == "address")
            work.address = value;
        else if (key == "stride")
            work.stride = value;
        else if (key == "in_flight")
            work.in_flight = unsigned(value);
        else if (key == "seed")
            options.seed = value;
        else if (key == "master")
            master = value;
        else if (key == "cpu")
            cpu_ns = value;
        else if (key == "trace")
            options.tlp_trace = text.substr(6);
        else
            throw UsageError("unknown argument " + key);
    }
    if (work.stride * work.count + work.bytes + 4096 > memory_bytes || work.in_flight > 256)
        throw UsageError("more than this program's memory or tags");
    Profile profile = read_profile(argv[1], options.overrides);
    printf("%s\n", measure(profile, options, work, master, cpu_ns).dump().c_str());
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
