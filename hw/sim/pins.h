/* Recorded pins: a card's inputs and outputs in each cycle. `dibber-sim --record` writes a file for
 * each card, dibber-replay reads it.
 *
 * A file is a PinsHead and then a PinsCycle for each cycle, as they lie in memory. A file is only
 * for programs of one build of the simulator. Others refuse it if sizes differ.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "device.h"

namespace dibber {

struct PinsHead {
    char magic[8] = {'D', 'I', 'B', 'P', 'I', 'N', 'S', '1'};
    uint32_t cycle_bytes;
    uint32_t card;
    uint64_t seed;
};

struct PinsCycle {
    uint32_t powered; /* number of times that the card lost its power before this cycle */
    Inputs in;
    Outputs out;
};

class PinsWriter {
public:
    /* Throws std::runtime_error that names the file. */
    PinsWriter(const std::string& path, unsigned card, uint64_t seed);
    ~PinsWriter();

    void write(unsigned powered, const Inputs& in, const Outputs& out);

private:
    std::FILE* file_;
    std::string path_;
};

class PinsReader {
public:
    /* Throws std::runtime_error that names the file. */
    explicit PinsReader(const std::string& path);
    ~PinsReader();

    unsigned card() const { return head_.card; }
    uint64_t seed() const { return head_.seed; }

    /* The next cycle; false at the end of the file. Throws std::runtime_error if the file ends
     * within a cycle. */
    bool read(PinsCycle& cycle);

private:
    std::FILE* file_;
    std::string path_;
    PinsHead head_;
};

/* The name of the first output that differs, or nullptr. */
const char* difference(const Outputs& one, const Outputs& other);

} // namespace dibber
