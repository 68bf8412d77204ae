/* A control program that is in the SRAM of each card from its reset on (--preload). It is for runs
 * that do not test loading: a client that loads the same image need not write and compare it. */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dibber {

struct FirmwareImage {
    uint32_t crc;              /* of its header, which tells images apart */
    std::vector<uint8_t> body; /* content of the start of the SRAM */
};

/* The image for a card with `sram_bytes` of SRAM, from a file of firmware/image.py. Throws
 * std::runtime_error that names the file. */
FirmwareImage read_image(const std::string& path, size_t sram_bytes);

} // namespace dibber
