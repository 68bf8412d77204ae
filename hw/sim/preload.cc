/* SPDX-License-Identifier: BSD-2-Clause */

#include "preload.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "dibber_interface.h"

namespace dibber {

FirmwareImage read_image(const std::string& path, size_t sram_bytes)
{
    std::ifstream file(path, std::ios::binary);
    if (!file)
        throw std::runtime_error("--preload " + path + ": " + strerror(errno));
    std::vector<uint8_t> bytes(std::istreambuf_iterator<char>(file), {});
    size_t at = 0;
    while (at < bytes.size()) {
        dibber_firmware_header header;
        if (bytes.size() - at < sizeof(header))
            break;
        std::memcpy(&header, bytes.data() + at, sizeof(header));
        at += sizeof(header);
        if (header.magic != DIBBER_FIRMWARE_MAGIC || header.bytes > bytes.size() - at)
            break;
        if (header.version != DIBBER_INTERFACE_VERSION || header.hash != DIBBER_INTERFACE_HASH)
            throw std::runtime_error("--preload " + path + ": built for another interface");
        if (header.sram == sram_bytes && header.bytes <= sram_bytes)
            return {header.crc,
                    {bytes.begin() + long(at), bytes.begin() + long(at + header.bytes)}};
        at += header.bytes;
    }
    throw std::runtime_error("--preload " + path + ": it has no image for " +
                             std::to_string(sram_bytes / 1024) + " KiB of SRAM");
}

} // namespace dibber
