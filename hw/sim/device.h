/* Interface of a card, Verilated or written in C++: its pins, cycle by cycle. */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "profile.h"

namespace dibber {

/* A beat of a TLP as in LitePCIe's PHYs: DW 0 in dat[0], payload DWs in the device's endianness.
 * `be` has a bit for each byte; a DW is whole or absent. */
struct Beat {
    bool valid = false, first = false, last = false;
    uint32_t be = 0;
    std::array<uint32_t, 8> dat = {};
};

/* Four symbols; symbol 0 is first on the wire and lies in bits 7:0. */
struct Symbols {
    uint32_t data = 0;
    uint8_t k = 0;
};

/* Eight bytes of an Ethernet frame, the first in bits 7:0; layout frame_layout of the gateware. */
struct FrameWord {
    bool valid = false, last = false, error = false;
    uint8_t bytes = 8;
    uint64_t data = 0;
};

/* A block of 64b/66b of one lane; layout block_layout of the gateware. */
struct LaneBlock {
    bool valid = false;
    uint8_t header = 0; /* as IEEE 802.3 prints it: its high bit leaves first */
    uint64_t data = 0;  /* the first bit on the wire is lowest */
};

constexpr unsigned bonded_lanes = 4;

/* What a port is given in a cycle, and what it drives: symbols, frames of a card over Ethernet, or
 * blocks of a bonded link. All have the signal. */
struct SerialInputs {
    bool serial_tx_ready = false;
    bool serial_rx_valid = false, serial_rx_signal = false;
    Symbols serial_rx;
    uint8_t serial_rx_code_error = 0, serial_rx_disparity_error = 0;
    bool frame_tx_ready = false;
    FrameWord frame_rx;
    bool row_tx_ready = false;
    std::array<LaneBlock, bonded_lanes> lanes_rx;
    uint8_t lanes_locked = 0; /* a bit for each lane: its receiver found the blocks */
};

struct SerialOutputs {
    Symbols serial_tx;
    bool serial_loopback = false; /* the transceiver hears itself */
    FrameWord frame_tx;
    std::array<LaneBlock, bonded_lanes> row_tx; /* a block of each lane; all are valid, or none */
};

struct Inputs : SerialInputs {
    SerialInputs second; /* of a card with two cables: port 1 */
    bool reset = false;
    Beat pcie_rx; /* host to card */
    bool pcie_tx_ready = false;
    uint16_t pcie_id = 0; /* bus, device, function */
    uint16_t pcie_max_payload = 0, pcie_max_request = 0;
    bool pcie_extended_tags = false, pcie_msix_enable = false, pcie_bus_master = false;
    bool pcie_in_aperture = false; /* the TLP at pcie_rx is for BAR 2 */
    bool jtag_tck = false, jtag_tms = false, jtag_tdi = false;
    uint64_t frame_address = 0; /* of the card's MAC, its first byte in bits 7:0 */
};

struct Outputs : SerialOutputs {
    SerialOutputs second;
    bool pcie_rx_ready = false;
    Beat pcie_tx; /* card to host */
    bool jtag_tdo = false;
};

/* A variable of a Verilated card. */
struct Variable {
    std::string name; /* in Verilog */
    const void* at;
    size_t bytes;
};

/* A card. Each cycle the simulator calls settle(), looks at the outputs, and then calls clock(). */
class Device {
public:
    virtual ~Device() = default;

    /* Bits of its PCIe stream: 64, 128 or 256. */
    virtual unsigned data_width() const = 0;

    /* Whether payload DWs are byte-swapped in the stream, as the 7-series PHY does ("big"). */
    virtual bool big_endian() const = 0;

    /* Set `out` to the device's outputs before the clock edge, for the inputs `in`. */
    virtual void settle(const Inputs& in, Outputs& out) = 0;

    /* The rising edge. `in` has not changed since settle(). */
    virtual void clock(const Inputs& in) = 0;

    /* Bytes of the control program's SRAM that preload() can write; 0: it cannot. */
    virtual size_t sram_bytes() const { return 0; }

    /* The 32-bit word at a multiple of 4 in the SRAM, as it is between cycles. */
    virtual uint32_t sram_word(size_t) const { return 0; }

    /* Put `image` at the start of the SRAM, between clock() and settle() at the end of a reset. */
    virtual void preload(const std::vector<uint8_t>&) {}

    /* Its variables, without memories, to see which change. None where the device has no table. */
    virtual std::vector<Variable> variables() const { return {}; }
};

/* The device called `name` for card number `card`; throws std::runtime_error for an unknown name.
 * Each program that links the simulator defines it: card.cc has the Verilated NIC. */
std::unique_ptr<Device> make_device(const std::string& name, unsigned card, const Profile& profile,
                                    uint64_t seed);

/* The device that is used if the command line names none. */
extern const char* const default_device;

/* Bytes of BAR 2 of its cards, the remote window's aperture; 0: they have none. */
extern const uint64_t aperture_bytes;

} // namespace dibber
