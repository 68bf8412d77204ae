/* dibber-replay PROFILE PINS [FROM [TO]]: give recorded pins to a card, compare its outputs in each
 * cycle with the recorded ones, and print a line of JSON:
 *
 *     {"cycles": …, "cpu_seconds": …}    only of the cycles from FROM to before TO
 *
 * At the first different output it ends with code 1 and a sentence.
 *
 * dibber-replay --changes PROFILE PINS FROM TO: of the cycles FROM to before TO, say in how many of
 * them each variable of the card changed. Variables that never changed are left out:
 *
 *     {"cycles": …, "variables": …, "changes": {"name": …}}
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <time.h>

#include "pins.h"

using namespace dibber;

namespace {

constexpr size_t batch = 1000; /* cycles between two reads of the time */

double cpu_seconds()
{
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

void replay(const Profile& profile, PinsReader& pins, uint64_t from, uint64_t to)
{
    std::unique_ptr<Device> device;
    unsigned powered = 0;
    uint64_t at = 0, counted = 0;
    double seconds = 0;
    Outputs out;
    std::vector<PinsCycle> cycles;
    while (at < to) {
        cycles.clear();
        PinsCycle cycle;
        while (cycles.size() < batch && pins.read(cycle))
            cycles.push_back(cycle);
        if (cycles.empty())
            break;
        double start = cpu_seconds();
        for (const PinsCycle& recorded : cycles) {
            if (!device || recorded.powered != powered) {
                device = make_device("card", pins.card(), profile, pins.seed());
                powered = recorded.powered;
            }
            device->settle(recorded.in, out);
            if (const char* name = difference(out, recorded.out))
                throw std::runtime_error("in cycle " + std::to_string(at) + " the output " + name +
                                         " is not as recorded");
            device->clock(recorded.in);
            at++;
        }
        if (at > from) {
            seconds += cpu_seconds() - start;
            counted += cycles.size();
        }
    }
    printf("{\"cycles\": %llu, \"cpu_seconds\": %.3f}\n", (unsigned long long)counted, seconds);
}

/* A card's variables, and in how many cycles each has changed. */
class Changes {
public:
    explicit Changes(const Device& device) : variables_(device.variables())
    {
        size_t bytes = 0;
        for (const Variable& variable : variables_)
            bytes += variable.bytes;
        values_.resize(bytes);
        counts_.resize(variables_.size());
        look();
        std::fill(counts_.begin(), counts_.end(), 0);
    }

    /* Compare each variable with its value at the last look. */
    void look()
    {
        char* value = values_.data();
        for (size_t n = 0; n < variables_.size(); n++) {
            const Variable& variable = variables_[n];
            if (std::memcmp(value, variable.at, variable.bytes) != 0) {
                std::memcpy(value, variable.at, variable.bytes);
                counts_[n]++;
            }
            value += variable.bytes;
        }
    }

    void print(uint64_t cycles) const
    {
        /* Variables of two modules may have the same name. */
        std::map<std::string, uint64_t> changes;
        for (size_t n = 0; n < variables_.size(); n++)
            if (counts_[n])
                changes[variables_[n].name] += counts_[n];
        printf("{\"cycles\": %llu, \"variables\": %zu, \"changes\": {", (unsigned long long)cycles,
               variables_.size());
        const char* separator = "";
        for (const auto& [name, count] : changes) {
            printf("%s\"%s\": %llu", separator, name.c_str(), (unsigned long long)count);
            separator = ", ";
        }
        printf("}}\n");
    }

private:
    std::vector<Variable> variables_;
    std::vector<char> values_;
    std::vector<uint64_t> counts_;
};

void count_changes(const Profile& profile, PinsReader& pins, uint64_t from, uint64_t to)
{
    std::unique_ptr<Device> device;
    std::unique_ptr<Changes> changes;
    unsigned powered = 0;
    uint64_t at = 0;
    Outputs out;
    PinsCycle cycle;
    for (; at < to && pins.read(cycle); at++) {
        if (!device || cycle.powered != powered) {
            if (changes)
                throw std::runtime_error("the card lost its power in cycle " + std::to_string(at));
            device = make_device("card", pins.card(), profile, pins.seed());
            powered = cycle.powered;
        }
        if (at == from)
            changes = std::make_unique<Changes>(*device);
        device->settle(cycle.in, out);
        device->clock(cycle.in);
        if (changes)
            changes->look();
    }
    if (!changes)
        throw std::runtime_error("the recording ends before cycle " + std::to_string(from));
    changes->print(at - from);
}

} // namespace

int main(int argc, char** argv)
try {
    bool changes = argc > 1 && std::string(argv[1]) == "--changes";
    argc -= changes;
    argv += changes;
    if (changes ? argc != 5 : argc < 3 || argc > 5)
        throw std::runtime_error("usage: dibber-replay PROFILE PINS [FROM [TO]]\n"
                                 "       dibber-replay --changes PROFILE PINS FROM TO");
    Profile profile = read_profile(argv[1], {});
    PinsReader pins(argv[2]);
    uint64_t from = argc > 3 ? strtoull(argv[3], nullptr, 10) : 0;
    uint64_t to = argc > 4 ? strtoull(argv[4], nullptr, 10) : ~0ull;
    (changes ? count_changes : replay)(profile, pins, from, to);
    return 0;
} catch (const std::exception& error) {
    fprintf(stderr, "dibber-replay: %s\n", error.what());
    return 1;
}
