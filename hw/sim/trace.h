/* The TLP trace: every TLP at the card's PCIe stream, for a checker that shares no code with us.
 *
 * The file starts with the 8 bytes "DIBTLP1\n". A record is, little-endian: u64 picoseconds (first
 * beat to the card, last beat from it), u16 bytes, u8 card, u8 direction (0 to the card, 1 from
 * it); then the TLP's bytes in the order of the wire, headers big-endian. Records of one card are
 * in order of time.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "host/phy.h"

namespace dibber {

class TraceFile {
public:
    /* Throws std::runtime_error that names the file. */
    explicit TraceFile(const std::string& path);
    ~TraceFile();

    /* Write the records and empty the list. */
    void write(unsigned card, std::vector<TraceRecord>& records);

private:
    std::FILE* file_;
};

} // namespace dibber
