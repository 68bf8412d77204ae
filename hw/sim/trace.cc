/* SPDX-License-Identifier: BSD-2-Clause */

#include "trace.h"

#include <cerrno>
#include <cstring>

namespace dibber {

TraceFile::TraceFile(const std::string& path) : file_(std::fopen(path.c_str(), "wb"))
{
    if (!file_)
        throw std::runtime_error("trace " + path + ": " + strerror(errno));
    std::fputs("DIBTLP1\n", file_);
}

TraceFile::~TraceFile() { std::fclose(file_); }

void TraceFile::write(unsigned card, std::vector<TraceRecord>& records)
{
    for (auto& record : records) {
        struct __attribute__((packed)) {
            uint64_t at;
            uint16_t bytes;
            uint8_t card, up;
        } head = {record.at, uint16_t(4 * record.dw.size()), uint8_t(card), record.up};
        for (unsigned i = 0; i < record.header_dws && i < record.dw.size(); i++)
            record.dw[i] = __builtin_bswap32(record.dw[i]);
        std::fwrite(&head, sizeof(head), 1, file_);
        std::fwrite(record.dw.data(), 4, record.dw.size(), file_);
    }
    records.clear();
}

} // namespace dibber
