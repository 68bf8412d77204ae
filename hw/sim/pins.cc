/* SPDX-License-Identifier: BSD-2-Clause */

#include "pins.h"

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <type_traits>

namespace dibber {

static_assert(std::is_trivially_copyable_v<PinsCycle>);

PinsWriter::PinsWriter(const std::string& path, unsigned card, uint64_t seed)
    : file_(std::fopen(path.c_str(), "wb")), path_(path)
{
    if (!file_)
        throw std::runtime_error("pins " + path + ": " + strerror(errno));
    PinsHead head;
    head.cycle_bytes = sizeof(PinsCycle);
    head.card = card;
    head.seed = seed;
    std::fwrite(&head, sizeof(head), 1, file_);
}

PinsWriter::~PinsWriter()
{
    if (std::fclose(file_) != 0)
        fprintf(stderr, "dibber-sim: pins %s: not all was written\n", path_.c_str());
}

void PinsWriter::write(unsigned powered, const Inputs& in, const Outputs& out)
{
    PinsCycle cycle{powered, in, out};
    std::fwrite(&cycle, sizeof(cycle), 1, file_);
}

PinsReader::PinsReader(const std::string& path) : file_(std::fopen(path.c_str(), "rb")), path_(path)
{
    if (!file_)
        throw std::runtime_error("pins " + path + ": " + strerror(errno));
    PinsHead expected;
    if (std::fread(&head_, sizeof(head_), 1, file_) != 1 ||
        std::memcmp(head_.magic, expected.magic, sizeof(head_.magic)) != 0 ||
        head_.cycle_bytes != sizeof(PinsCycle)) {
        std::fclose(file_);
        throw std::runtime_error("pins " + path + ": not recorded by this build of the simulator");
    }
}

PinsReader::~PinsReader() { std::fclose(file_); }

bool PinsReader::read(PinsCycle& cycle)
{
    size_t bytes = std::fread(&cycle, 1, sizeof(cycle), file_);
    if (bytes != 0 && bytes != sizeof(cycle))
        throw std::runtime_error("pins " + path_ + ": the file ends within a cycle");
    return bytes != 0;
}

const char* difference(const Outputs& one, const Outputs& other)
{
    if (one.pcie_rx_ready != other.pcie_rx_ready)
        return "pcie_rx_ready";
    if (one.pcie_tx.valid != other.pcie_tx.valid)
        return "pcie_tx_valid";
    if (one.pcie_tx.first != other.pcie_tx.first)
        return "pcie_tx_first";
    if (one.pcie_tx.last != other.pcie_tx.last)
        return "pcie_tx_last";
    if (one.pcie_tx.be != other.pcie_tx.be)
        return "pcie_tx_be";
    if (one.pcie_tx.dat != other.pcie_tx.dat)
        return "pcie_tx_dat";
    if (one.serial_tx.data != other.serial_tx.data)
        return "serial_tx_data";
    if (one.serial_tx.k != other.serial_tx.k)
        return "serial_tx_k";
    if (one.second.serial_tx.data != other.second.serial_tx.data)
        return "serial2_tx_data";
    if (one.second.serial_tx.k != other.second.serial_tx.k)
        return "serial2_tx_k";
    if (one.second.serial_loopback != other.second.serial_loopback)
        return "serial2_loopback";
    if (one.frame_tx.valid != other.frame_tx.valid)
        return "frame_tx_valid";
    if (one.frame_tx.valid && one.frame_tx.data != other.frame_tx.data)
        return "frame_tx_data";
    for (unsigned n = 0; n < bonded_lanes; n++) {
        const LaneBlock &a = one.row_tx[n], &b = other.row_tx[n];
        if (a.valid != b.valid)
            return "row_tx_valid";
        if (a.valid && (a.header != b.header || a.data != b.data))
            return "row_tx_data";
    }
    if (one.serial_loopback != other.serial_loopback)
        return "serial_loopback";
    if (one.jtag_tdo != other.jtag_tdo)
        return "jtag_tdo";
    return nullptr;
}

} // namespace dibber
