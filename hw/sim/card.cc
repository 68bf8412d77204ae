/* The NIC: the Verilated core of boards/sim.py, and the flash of its board. Built once for each
 * data width and clock. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <cstdio>
#include <cstring>
#include <stdexcept>

#include <verilated.h>

#include "Vdibber_card.h"
#include "Vdibber_card___024root.h"
#include "Vdibber_card_dibber_card.h"
#include "device.h"
#include "dibber_interface.h"
#include "evaluator.h"
#include "flash/flash.h"

/* Verilator's runtime calls it for the time, because no other source is set. */
double sc_time_stamp() { return 0; }

namespace dibber {

namespace {

class Card : public Device {
public:
    Card(const std::string& name, uint64_t seed)
        : model_(&context_, name.c_str()), evaluator_(model_)
    {
        context_.randReset(0);
        context_.randSeed(int(seed & 0x7fffffff));
        model_.sys_clk = 0;
        model_.sys_rst = 1;
    }

    ~Card() override
    {
        /* Destructors look in the thread's context, which may be that of a destroyed card. */
        Verilated::threadContextp(&context_);
        model_.final();
#ifdef DIBBER_COUNTED
        for (uint64_t runs : evaluator_.runs)
            printf("%llu\n", (unsigned long long)runs);
#endif
    }

    unsigned data_width() const override { return DIBBER_DATA_WIDTH; }
    bool big_endian() const override { return true; }

    void settle(const Inputs& in, Outputs& out) override
    {
        model_.sys_rst = in.reset;
        model_.pcie_rx_valid = in.pcie_rx.valid;
        if (in.pcie_rx.valid) {
            model_.pcie_rx_first = in.pcie_rx.first;
            model_.pcie_rx_last = in.pcie_rx.last;
            model_.pcie_rx_be = decltype(model_.pcie_rx_be)(in.pcie_rx.be);
            std::memcpy(&model_.pcie_rx_dat, in.pcie_rx.dat.data(), DIBBER_DATA_WIDTH / 8);
        }
        model_.pcie_tx_ready = in.pcie_tx_ready;
        model_.pcie_id = in.pcie_id;
        model_.pcie_max_payload = in.pcie_max_payload;
        model_.pcie_max_request = in.pcie_max_request;
        model_.pcie_extended_tags = in.pcie_extended_tags;
        model_.pcie_msix_enable = in.pcie_msix_enable;
        model_.pcie_bus_master = in.pcie_bus_master;
#ifdef DIBBER_WITH_WINDOW
        model_.pcie_in_aperture = in.pcie_in_aperture;
#endif
#if DIBBER_MTU
        model_.frame_address = in.frame_address;
        model_.frame_signal = in.serial_rx_signal;
        model_.frame_tx_ready = in.frame_tx_ready;
        model_.frame_rx_valid = in.frame_rx.valid;
        if (in.frame_rx.valid) {
            model_.frame_rx_data = in.frame_rx.data;
            model_.frame_rx_bytes = in.frame_rx.bytes;
            model_.frame_rx_last = in.frame_rx.last;
            model_.frame_rx_error = in.frame_rx.error;
        }
#elif defined(DIBBER_BONDED)
        model_.lanes_signal = in.serial_rx_signal;
        model_.lanes_locked = in.lanes_locked;
        model_.row_tx_ready = in.row_tx_ready;
        take(in.lanes_rx[0], model_.lane0_rx_valid, model_.lane0_rx_header, model_.lane0_rx_data);
        take(in.lanes_rx[1], model_.lane1_rx_valid, model_.lane1_rx_header, model_.lane1_rx_data);
        take(in.lanes_rx[2], model_.lane2_rx_valid, model_.lane2_rx_header, model_.lane2_rx_data);
        take(in.lanes_rx[3], model_.lane3_rx_valid, model_.lane3_rx_header, model_.lane3_rx_data);
#else
        model_.serial_tx_ready = in.serial_tx_ready;
        model_.serial_rx_signal = in.serial_rx_signal;
        model_.serial_rx_valid = in.serial_rx_valid;
        if (in.serial_rx_valid) {
            model_.serial_rx_data = in.serial_rx.data;
            model_.serial_rx_k = in.serial_rx.k;
            model_.serial_rx_code_error = in.serial_rx_code_error;
            model_.serial_rx_disparity_error = in.serial_rx_disparity_error;
        }
#endif
#ifdef DIBBER_TWO_CABLES
        model_.serial2_tx_ready = in.second.serial_tx_ready;
        model_.serial2_rx_signal = in.second.serial_rx_signal;
        model_.serial2_rx_valid = in.second.serial_rx_valid;
        if (in.second.serial_rx_valid) {
            model_.serial2_rx_data = in.second.serial_rx.data;
            model_.serial2_rx_k = in.second.serial_rx.k;
            model_.serial2_rx_code_error = in.second.serial_rx_code_error;
            model_.serial2_rx_disparity_error = in.second.serial_rx_disparity_error;
        }
#endif
        model_.jtag_tck = in.jtag_tck;
        model_.jtag_tms = in.jtag_tms;
        model_.jtag_tdi = in.jtag_tdi;
        model_.flash_miso = flash_miso_;
        evaluator_.settle();

        out.pcie_rx_ready = model_.pcie_rx_ready;
        out.pcie_tx.valid = model_.pcie_tx_valid;
        if (model_.pcie_tx_valid) {
            out.pcie_tx.first = model_.pcie_tx_first;
            out.pcie_tx.last = model_.pcie_tx_last;
            out.pcie_tx.be = model_.pcie_tx_be;
            std::memcpy(out.pcie_tx.dat.data(), &model_.pcie_tx_dat, DIBBER_DATA_WIDTH / 8);
        }
#if DIBBER_MTU
        out.frame_tx.valid = model_.frame_tx_valid;
        if (model_.frame_tx_valid) {
            out.frame_tx.data = model_.frame_tx_data;
            out.frame_tx.bytes = model_.frame_tx_bytes;
            out.frame_tx.last = model_.frame_tx_last;
        }
#elif defined(DIBBER_BONDED)
        for (unsigned n = 0; n < bonded_lanes; n++) {
            LaneBlock& block = out.row_tx[n];
            block.valid = model_.row_tx_valid;
            if (block.valid) {
                block.header = model_.row_tx_header >> 2 * n & 3;
                block.data =
                    uint64_t(model_.row_tx_data[2 * n + 1]) << 32 | model_.row_tx_data[2 * n];
            }
        }
#else
        out.serial_tx = {model_.serial_tx_data, model_.serial_tx_k};
        out.serial_loopback = model_.serial_loopback;
#endif
#ifdef DIBBER_TWO_CABLES
        out.second.serial_tx = {model_.serial2_tx_data, model_.serial2_tx_k};
        out.second.serial_loopback = model_.serial2_loopback;
#endif
        out.jtag_tdo = model_.jtag_tdo;
    }

    void clock(const Inputs&) override
    {
        flash_miso_ = flash_.step(model_.flash_cs_n, model_.flash_clk, model_.flash_mosi);
        evaluator_.clock();
    }

    size_t sram_bytes() const override
    {
        return DIBBER_DATA_WIDTH / 8 * sizeof(card().__PVT__sram0) / sizeof(uint32_t);
    }

    uint32_t sram_word(size_t at) const override
    {
        const auto& card = *model_.rootp->dibber_card;
        size_t row = at / (DIBBER_DATA_WIDTH / 8);
        switch (at / 4 % (DIBBER_DATA_WIDTH / 32)) {
        case 0:
            return card.__PVT__sram0[row];
        case 1:
            return card.__PVT__sram1[row];
#if DIBBER_DATA_WIDTH >= 128
        case 2:
            return card.__PVT__sram2[row];
        case 3:
            return card.__PVT__sram3[row];
#endif
#if DIBBER_DATA_WIDTH >= 256
        case 4:
            return card.__PVT__sram4[row];
        case 5:
            return card.__PVT__sram5[row];
        case 6:
            return card.__PVT__sram6[row];
        case 7:
            return card.__PVT__sram7[row];
#endif
        }
        return 0;
    }

    void preload(const std::vector<uint8_t>& image) override
    {
        auto& card = *model_.rootp->dibber_card;
        for (size_t at = 0; at + 4 <= image.size(); at += 4) {
            uint32_t word;
            std::memcpy(&word, image.data() + at, 4);
            size_t row = at / (DIBBER_DATA_WIDTH / 8);
            switch (at / 4 % (DIBBER_DATA_WIDTH / 32)) {
            case 0:
                card.__PVT__sram0[row] = word;
                break;
            case 1:
                card.__PVT__sram1[row] = word;
                break;
#if DIBBER_DATA_WIDTH >= 128
            case 2:
                card.__PVT__sram2[row] = word;
                break;
            case 3:
                card.__PVT__sram3[row] = word;
                break;
#endif
#if DIBBER_DATA_WIDTH >= 256
            case 4:
                card.__PVT__sram4[row] = word;
                break;
            case 5:
                card.__PVT__sram5[row] = word;
                break;
            case 6:
                card.__PVT__sram6[row] = word;
                break;
            case 7:
                card.__PVT__sram7[row] = word;
                break;
#endif
            }
        }
        evaluator_.touch();
    }

    std::vector<Variable> variables() const override
    {
        std::vector<Variable> found;
        for (const auto& variable : evaluator_.variables())
            found.push_back({variable.name, variable.at, variable.bytes});
        return found;
    }

private:
#ifdef DIBBER_BONDED
    template <typename Valid, typename Header, typename Data>
    static void take(const LaneBlock& block, Valid& valid, Header& header, Data& data)
    {
        valid = block.valid;
        if (block.valid) {
            header = block.header;
            data = block.data;
        }
    }
#endif

    const Vdibber_card_dibber_card& card() const { return *model_.rootp->dibber_card; }

    VerilatedContext context_;
    Vdibber_card model_;
    Evaluator evaluator_; /* of hw/sim/changed, or of hw/sim/plain */
    Flash flash_;
    bool flash_miso_ = true;
};

} // namespace

const char* const default_device = "card";

#ifdef DIBBER_WITH_WINDOW
const uint64_t aperture_bytes = DIBBER_APERTURE_BYTES;
#else
const uint64_t aperture_bytes = 0;
#endif

std::unique_ptr<Device> make_device(const std::string& name, unsigned card, const Profile& profile,
                                    uint64_t seed)
{
    if (name != "card")
        throw std::runtime_error("device '" + name + "' is not known here: there is card");
    if (profile.card.data_width != DIBBER_DATA_WIDTH ||
        profile.card.clock_mhz != DIBBER_CLOCK_MHZ || profile.link.mtu != DIBBER_MTU ||
        profile.link.peers != DIBBER_PEERS || profile.link.bulk_width != DIBBER_BULK_WIDTH ||
        profile.link.fabric != DIBBER_FABRIC) {
        char built[96];
        snprintf(built, sizeof(built), "%d bits at %g MHz, MTU %d, peers %d, BULK of %d bits",
                 DIBBER_DATA_WIDTH, double(DIBBER_CLOCK_MHZ), DIBBER_MTU, DIBBER_PEERS,
                 DIBBER_BULK_WIDTH);
        if (DIBBER_MTU == 0)
            *std::strchr(built, ',') = 0;
        std::string fabric = profile.link.fabric == DIBBER_FABRIC
                                 ? ""
                                 : ", fabric " DIBBER_FABRIC " in place of " + profile.link.fabric;
        throw std::runtime_error("profile " + profile.name +
                                 " is not for this simulator, built for " + built + fabric);
    }
    return std::make_unique<Card>("card" + std::to_string(card), seed);
}

} // namespace dibber
