/* A file of the frames that cables carry, as Wireshark reads it: classic pcap with times in
 * nanoseconds. A frame has no FCS there. Its time is that of its last bytes at the receiver.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "../units.h"

namespace dibber {

struct CarriedFrame {
    Time at;
    std::vector<uint8_t> bytes;
};

class PcapFile {
public:
    /* Throws std::runtime_error that names the file. */
    explicit PcapFile(const std::string& path);
    ~PcapFile();

    /* Write the frames in order of time. */
    void write(std::vector<CarriedFrame>& frames);

private:
    std::FILE* file_;
    std::string path_;
};

} // namespace dibber
