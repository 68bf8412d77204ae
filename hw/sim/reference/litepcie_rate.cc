/* The rate of LitePCIe's DMA on the host model, as JSON on standard output.
 *
 *     litepcie-rate PROFILE write|read BYTES [seed=S] [trace=FILE] [table.key=value]...
 *     litepcie-rate PROFILE write BYTES element=E stride=D [seed=S] ...
 *
 * One descriptor of BYTES; or BYTES in elements of E at a stride of D bytes, with a descriptor
 * each. All of these are in the table of 256 before the DMA starts. Bytes per second are those of
 * the payload in the steady state. For writes this is from the first TLP in memory to the last. For
 * reads it is from a quarter to three quarters of the words that the DMA gives to its user. Every
 * byte is compared.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <nlohmann/json.hpp>

#include "../options.h"
#include "litepcie.h"

using namespace dibber;

namespace {

constexpr uint32_t memory_base = 0x1000000, most_bytes = 4 << 20, table_depth = 256;
constexpr double longest_ns = 1e7, slice_ns = 1e4;

/* BYTES of payload as elements with a descriptor each; the stride is in bytes. */
struct Elements {
    uint32_t bytes, element, stride;

    uint32_t count() const { return bytes / element; }
    uint32_t extent() const { return (count() - 1) * stride + element; }
};

uint64_t filling(size_t word)
{
    return (word + 1) * 0x9e3779b97f4a7c15;
} /* no two alike, and no counter */

/* The writer sends a counter that runs all the time, so its first value is not known. Bytes between
 * elements must not have changed. */
uint64_t wrong_words_written(const std::vector<uint64_t>& memory, const Elements& elements)
{
    uint64_t wrong = 0, counted = 0;
    for (size_t i = 0; i < memory.size(); i++) {
        uint64_t place = i * 8 % elements.stride;
        wrong += memory[i] != (place < elements.element ? memory[0] + counted++ : filling(i));
    }
    return wrong;
}

uint64_t wrong_words_read(const std::vector<uint64_t>& memory,
                          const std::vector<Litepcie::Word>& words)
{
    uint64_t wrong = words.size() == memory.size() ? 0 : 1;
    for (size_t i = 0; i < std::min(memory.size(), words.size()); i++)
        wrong += words[i].data != memory[i];
    return wrong;
}

nlohmann::json measure(const Profile& profile, const Options& options, Half half,
                       const Elements& elements)
{
    uint32_t bytes = elements.bytes;
    Simulation simulation(profile, options);
    auto& device = dynamic_cast<Litepcie&>(simulation.device(0));
    RootComplex& host = simulation.host(0);
    std::vector<uint64_t> memory(elements.extent() / 8);
    for (size_t i = 0; i < memory.size(); i++)
        memory[i] = filling(i);
    simulation.memory(0).map_local(memory_base,
                                   {reinterpret_cast<uint8_t*>(memory.data()), elements.extent()});
    std::vector<Descriptor> descriptors;
    for (uint32_t i = 0; i < elements.count(); i++)
        descriptors.push_back({memory_base + i * elements.stride, elements.element});
    const uint8_t memory_and_master = 6;
    host.config.write(4, {&memory_and_master, 1});

    Time until = from_ns(slice_ns);
    simulation.run_until(until); /* LitePCIe fills its queue of tags after reset */
    start_dma(half, descriptors, false, [&](uint32_t offset, uint32_t value) {
        uint8_t data[4];
        std::memcpy(data, &value, 4);
        host.write_bar(offset, data);
    });
    auto finished = [&] {
        return half == Half::writer ? host.statistics().write_bytes >= bytes
                                    : device.words().size() >= bytes / 8;
    };
    while (!finished() && until < from_ns(longest_ns))
        simulation.run_until(until += from_ns(slice_ns));
    simulation.run_until(until += from_ns(slice_ns));

    nlohmann::json out = nlohmann::json::parse(simulation.statistics());
    const HostStatistics& done = host.statistics();
    out["finished"] = finished();
    if (half == Half::writer && done.writes > 1) {
        out["words_wrong"] = wrong_words_written(memory, elements);
        out["bytes_per_second"] = double(done.write_bytes) * double(done.writes - 1) /
                                  double(done.writes) / double(done.last_write - done.first_write) *
                                  1e12;
    } else if (half == Half::reader && finished()) {
        const auto& words = device.words();
        size_t from = words.size() / 4, to = words.size() * 3 / 4;
        out["words_wrong"] = wrong_words_read(memory, words);
        out["bytes_per_second"] =
            8.0 * double(to - from) /
            (double(words[to].cycle - words[from].cycle) * double(profile.period())) * 1e12;
    }
    return out;
}

int run(int argc, char** argv)
{
    if (argc < 4 || (strcmp(argv[2], "write") && strcmp(argv[2], "read")))
        throw UsageError(
            "usage: litepcie-rate PROFILE write|read BYTES [element=E stride=D] [seed=S] [trace=FILE] "
            "[table.key=value]...");
    uint32_t bytes = uint32_t(strtoul(argv[3], nullptr, 0));
    Elements elements = {bytes, bytes, bytes};
    Options options;
    options.device = default_device;
    options.cards = 1;
    options.threads = 1;
    options.participants = 0;
    for (int i = 4; i < argc; i++) {
        std::string text = argv[i];
        if (text.starts_with("seed="))
            options.seed = strtoull(argv[i] + 5, nullptr, 0);
        else if (text.starts_with("element="))
            elements.element = uint32_t(strtoul(argv[i] + 8, nullptr, 0));
        else if (text.starts_with("stride="))
            elements.stride = uint32_t(strtoul(argv[i] + 7, nullptr, 0));
        else if (text.starts_with("trace="))
            options.tlp_trace = text.substr(6);
        else
            options.overrides.push_back(text);
    }
    Half half = strcmp(argv[2], "write") ? Half::reader : Half::writer;
    if (!elements.element || elements.element % 8 || bytes % elements.element ||
        elements.stride < elements.element || elements.stride % 8 ||
        elements.count() > table_depth || elements.extent() > most_bytes)
        throw UsageError(
            "BYTES is a multiple of the element, element and stride of 8; 256 elements and 4 MiB at most");
    if (half == Half::reader && elements.count() > 1)
        throw UsageError("elements are for 'write'");
    Profile profile = read_profile(argv[1], options.overrides);
    printf("%s\n", measure(profile, options, half, elements).dump().c_str());
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        fprintf(stderr, "litepcie-rate: %s\n", error.what());
        return 1;
    }
}
