/* dibber-replay PROFILE PINS [FROM [TO]]: give recorded pins to a card, compare its outputs in each
 * cycle with the recorded ones, and print a line of JSON:
 *
 *     {"cycles": …, "cpu_seconds": …}    only of the cycles from FROM to before TO
 *
 * At the first different output it ends with code 1 and a sentence.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
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

} // namespace

int main(int argc, char** argv)
try {
    if (argc < 3 || argc > 5)
        throw std::runtime_error("usage: dibber-replay PROFILE PINS [FROM [TO]]");
    Profile profile = read_profile(argv[1], {});
    PinsReader pins(argv[2]);
    replay(profile, pins, argc > 3 ? strtoull(argv[3], nullptr, 10) : 0,
           argc > 4 ? strtoull(argv[4], nullptr, 10) : ~0ull);
    return 0;
} catch (const std::exception& error) {
    fprintf(stderr, "dibber-replay: %s\n", error.what());
    return 1;
}
