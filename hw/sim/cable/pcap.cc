/* SPDX-License-Identifier: BSD-2-Clause */

#include "pcap.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace dibber {

namespace {

/* draft-ietf-opsawg-pcap: the magic number of times in nanoseconds, version 2.4, LINKTYPE_ETHERNET.
 */
struct FileHead {
    uint32_t magic = 0xa1b23c4d;
    uint16_t major = 2, minor = 4;
    uint32_t zone = 0, accuracy = 0, longest = 65535, link = 1;
};

struct FrameHead {
    uint32_t seconds, nanoseconds, kept, length;
};

constexpr Time picoseconds_per_second = 1000000000000;

} // namespace

PcapFile::PcapFile(const std::string& path) : file_(std::fopen(path.c_str(), "wb")), path_(path)
{
    if (!file_)
        throw std::runtime_error("pcap " + path + ": " + strerror(errno));
    FileHead head;
    std::fwrite(&head, sizeof(head), 1, file_);
}

PcapFile::~PcapFile()
{
    bool failed = std::ferror(file_) != 0;
    if (std::fclose(file_) != 0 || failed)
        fprintf(stderr, "dibber-sim: pcap %s: not all was written\n", path_.c_str());
}

void PcapFile::write(std::vector<CarriedFrame>& frames)
{
    std::stable_sort(frames.begin(), frames.end(), [](auto& a, auto& b) { return a.at < b.at; });
    for (auto& frame : frames) {
        FrameHead head = {uint32_t(frame.at / picoseconds_per_second),
                          uint32_t(frame.at % picoseconds_per_second / 1000),
                          uint32_t(frame.bytes.size()), uint32_t(frame.bytes.size())};
        std::fwrite(&head, sizeof(head), 1, file_);
        std::fwrite(frame.bytes.data(), 1, frame.bytes.size(), file_);
    }
    frames.clear();
}

} // namespace dibber
