/* Built once for each data width: LITEPCIE_DATA_WIDTH. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "litepcie.h"

#include <cstring>
#include <stdexcept>

#include <verilated.h>

#include "Vlitepcie_reference.h"
#include "litepcie_csr.h"
#include "../profile.h"

/* Verilator's runtime calls it for the time, because no other source is set. */
double sc_time_stamp() { return 0; }

namespace dibber {

Litepcie::Litepcie()
    : context_(new VerilatedContext), model_(new Vlitepcie_reference(context_.get()))
{
    model_->sys_clk = 0;
    model_->sys_rst = 1;
}

Litepcie::~Litepcie() { model_->final(); }

void Litepcie::settle(const Inputs& in, Outputs& out)
{
    model_->sys_clk = 0;
    model_->sys_rst = in.reset;
    model_->pcie_rx_valid = in.pcie_rx.valid;
    if (in.pcie_rx.valid) {
        model_->pcie_rx_first = in.pcie_rx.first;
        model_->pcie_rx_last = in.pcie_rx.last;
        model_->pcie_rx_be = decltype(model_->pcie_rx_be)(in.pcie_rx.be);
        std::memcpy(&model_->pcie_rx_dat, in.pcie_rx.dat.data(), LITEPCIE_DATA_WIDTH / 8);
    }
    model_->pcie_tx_ready = in.pcie_tx_ready;
    model_->pcie_id = in.pcie_id;
    model_->pcie_max_payload = in.pcie_max_payload;
    model_->pcie_max_request = in.pcie_max_request;
    model_->eval();

    out.pcie_rx_ready = model_->pcie_rx_ready;
    out.pcie_tx.valid = model_->pcie_tx_valid;
    if (model_->pcie_tx_valid) {
        out.pcie_tx.first = model_->pcie_tx_first;
        out.pcie_tx.last = model_->pcie_tx_last;
        out.pcie_tx.be = model_->pcie_tx_be;
        std::memcpy(out.pcie_tx.dat.data(), &model_->pcie_tx_dat, LITEPCIE_DATA_WIDTH / 8);
    }
}

void Litepcie::clock(const Inputs&)
{
    if (model_->reader_valid) {
        uint64_t data[LITEPCIE_DATA_WIDTH / 64];
        std::memcpy(data, &model_->reader_data, sizeof(data));
        for (uint64_t word : data)
            words_.push_back({cycle_, word});
    }
    cycle_++;
    model_->sys_clk = 1;
    model_->eval();
}

void start_dma(Half half, const std::vector<Descriptor>& descriptors, bool for_ever,
               const std::function<void(uint32_t offset, uint32_t value)>& write)
{
    /* Both halves have the same registers. */
    uint32_t base = half == Half::writer ? PCIE_DMA0_WRITER_ENABLE : PCIE_DMA0_READER_ENABLE;
    auto set = [&](uint32_t writer_register, uint32_t value) {
        write(base + writer_register - PCIE_DMA0_WRITER_ENABLE, value);
    };
    constexpr uint32_t no_interrupt = 1 << 24, no_last = 1 << 25;
    set(PCIE_DMA0_WRITER_ENABLE, 0);
    set(PCIE_DMA0_WRITER_TABLE_RESET, 1);
    set(PCIE_DMA0_WRITER_TABLE_LOOP_PROG_N, 0);
    for (const Descriptor& descriptor : descriptors) {
        /* A CSR of 64 bits has its upper half first. */
        set(PCIE_DMA0_WRITER_TABLE_VALUE, descriptor.bytes | no_interrupt | no_last);
        set(PCIE_DMA0_WRITER_TABLE_VALUE + 4, descriptor.address);
        set(PCIE_DMA0_WRITER_TABLE_WE, 0);
    }
    set(PCIE_DMA0_WRITER_TABLE_LOOP_PROG_N, for_ever);
    set(PCIE_DMA0_WRITER_ENABLE, 1);
}

const char* const default_device = "litepcie";
const uint64_t aperture_bytes = 0;

std::unique_ptr<Device> make_device(const std::string& name, unsigned, const Profile& profile,
                                    uint64_t)
{
    if (name != default_device)
        throw std::runtime_error("device '" + name + "' is not known here: there is litepcie");
    if (profile.card.data_width != LITEPCIE_DATA_WIDTH)
        throw std::runtime_error("profile " + profile.name +
                                 " has another data width than this program");
    return std::make_unique<Litepcie>();
}

} // namespace dibber
