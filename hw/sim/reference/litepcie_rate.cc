/* This file is part of Dibber. */
/* SPDX-License-Identifier: BSD-2-Clause */

/* The contiguous rate of LitePCIe's DMA on the host model, as JSON on standard output.
 *
 *     litepcie-rate PROFILE write|read BYTES [seed=S] [trace=FILE] [table.key=value]...
 *
 * One descriptor of BYTES. Bytes a second are those of the payload in the steady state: written, from the
 * first TLP being in memory to the last; read, from a quarter to three quarters of the words that the DMA
 * gives to its user. Every byte is compared.
 */

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <nlohmann/json.hpp>

#include "../options.h"
#include "litepcie.h"

using namespace dibber;

namespace {

constexpr uint32_t memory_base = 0x1000000, most_bytes = 4 << 20;
constexpr double   longest_ns = 1e7, slice_ns = 1e4;

/* The writer sends a counter that runs all the time, so that its first value is not known. */
uint64_t wrong_words_written(const std::vector<uint64_t>& memory)
{
    uint64_t wrong = 0;
    for (size_t i = 0; i < memory.size(); i++)
        wrong += memory[i] != memory[0] + i;
    return wrong;
}

uint64_t wrong_words_read(const std::vector<uint64_t>& memory, const std::vector<Litepcie::Word>& words)
{
    uint64_t wrong = words.size() == memory.size() ? 0 : 1;
    for (size_t i = 0; i < std::min(memory.size(), words.size()); i++)
        wrong += words[i].data != memory[i];
    return wrong;
}

nlohmann::json measure(const Profile& profile, const Options& options, Half half, uint32_t bytes)
{
    Simulation simulation(profile, options);
    auto& device = dynamic_cast<Litepcie&>(simulation.device(0));
    RootComplex& host = simulation.host(0);
    std::vector<uint64_t> memory(bytes/8);
    for (size_t i = 0; i < memory.size(); i++)
        memory[i] = i*0x9e3779b97f4a7c15;    /* no two words alike, and no counter */
    simulation.memory(0).map_local(memory_base, {reinterpret_cast<uint8_t*>(memory.data()), bytes});
    const uint8_t memory_and_master = 6;
    host.config.write(4, {&memory_and_master, 1});

    Time until = from_ns(slice_ns);
    simulation.run_until(until);    /* LitePCIe fills its queue of tags after reset */
    start_dma(half, {{memory_base, bytes}}, false, [&](uint32_t offset, uint32_t value) {
        uint8_t data[4];
        std::memcpy(data, &value, 4);
        host.write_bar(offset, data);
    });
    auto finished = [&] {
        return half == Half::writer ? host.statistics().write_bytes >= bytes : device.words().size() >= bytes/8;
    };
    while (!finished() && until < from_ns(longest_ns))
        simulation.run_until(until += from_ns(slice_ns));
    simulation.run_until(until += from_ns(slice_ns));

    nlohmann::json out = nlohmann::json::parse(simulation.statistics());
    const HostStatistics& done = host.statistics();
    out["finished"] = finished();
    if (half == Half::writer && done.writes > 1) {
        out["words_wrong"] = wrong_words_written(memory);
        out["bytes_per_second"] =
            double(done.write_bytes)*double(done.writes - 1)/double(done.writes)/double(done.last_write - done.first_write)*1e12;
    } else if (half == Half::reader && finished()) {
        const auto& words = device.words();
        size_t from = words.size()/4, to = words.size()*3/4;
        out["words_wrong"] = wrong_words_read(memory, words);
        out["bytes_per_second"] =
            8.0*double(to - from)/(double(words[to].cycle - words[from].cycle)*double(profile.period()))*1e12;
    }
    return out;
}

int run(int argc, char** argv)
{
    if (argc < 4 || (strcmp(argv[2], "write") && strcmp(argv[2], "read")))
        throw UsageError("usage: litepcie-rate PROFILE write|read BYTES [seed=S] [trace=FILE] [table.key=value]...");
    uint32_t bytes = uint32_t(strtoul(argv[3], nullptr, 0));
    if (bytes < 4096 || bytes > most_bytes || bytes % 4096)
        throw UsageError("BYTES is a multiple of 4096, 4 MiB at most");
    Options options;
    options.device  = default_device;
    options.cards   = 1;
    options.threads = 1;
    options.participants = 0;
    for (int i = 4; i < argc; i++) {
        std::string text = argv[i];
        if (text.starts_with("seed="))
            options.seed = strtoull(argv[i] + 5, nullptr, 0);
        else if (text.starts_with("trace="))
            options.tlp_trace = text.substr(6);
        else
            options.overrides.push_back(text);
    }
    Half half = strcmp(argv[2], "write") ? Half::reader : Half::writer;
    Profile profile = read_profile(argv[1], options.overrides);
    printf("%s\n", measure(profile, options, half, bytes).dump().c_str());
    return 0;
}

}  // namespace

int main(int argc, char** argv)
{
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        fprintf(stderr, "litepcie-rate: %s\n", error.what());
        return 1;
    }
}
