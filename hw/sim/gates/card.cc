/* The NIC as a netlist, in place of the Verilated core: `--device` is the list of its gates. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdexcept>

#include "../device.h"
#include "gates.h"

namespace dibber {

namespace {

class Card : public Device {
public:
    explicit Card(const std::string& path) : gates_(path)
    {
        if (gates_.port("pcie_rx_dat").size() != 64)
            throw std::runtime_error(path + ": the core is not one of 64 bits");
    }

    unsigned data_width() const override { return 64; }
    bool big_endian() const override { return true; }

    void settle(const Inputs& in, Outputs& out) override
    {
        set(sys_rst_, in.reset);
        set(rx_valid_, in.pcie_rx.valid);
        if (in.pcie_rx.valid) {
            set(rx_first_, in.pcie_rx.first);
            set(rx_last_, in.pcie_rx.last);
            set(rx_be_, in.pcie_rx.be);
            gates_.set(rx_dat_, in.pcie_rx.dat.data());
        }
        set(tx_ready_, in.pcie_tx_ready);
        set(id_, in.pcie_id);
        set(max_payload_, in.pcie_max_payload);
        set(max_request_, in.pcie_max_request);
        set(extended_tags_, in.pcie_extended_tags);
        set(msix_enable_, in.pcie_msix_enable);
        set(bus_master_, in.pcie_bus_master);
        set(serial_tx_ready_, in.serial_tx_ready);
        set(signal_, in.serial_rx_signal);
        set(serial_rx_valid_, in.serial_rx_valid);
        if (in.serial_rx_valid) {
            set(serial_rx_data_, in.serial_rx.data);
            set(serial_rx_k_, in.serial_rx.k);
            set(code_error_, in.serial_rx_code_error);
            set(disparity_error_, in.serial_rx_disparity_error);
        }
        set(tck_, in.jtag_tck);
        set(tms_, in.jtag_tms);
        set(tdi_, in.jtag_tdi);
        gates_.settle();

        out.pcie_rx_ready = get(rx_ready_);
        out.pcie_tx.valid = get(tx_valid_);
        if (out.pcie_tx.valid) {
            out.pcie_tx.first = get(tx_first_);
            out.pcie_tx.last = get(tx_last_);
            out.pcie_tx.be = get(tx_be_);
            gates_.get(tx_dat_, out.pcie_tx.dat.data());
        }
        out.serial_tx = {get(serial_tx_data_), uint8_t(get(serial_tx_k_))};
        out.serial_loopback = get(loopback_);
        out.jtag_tdo = get(tdo_);
    }

    void clock(const Inputs&) override { gates_.clock(); }

private:
    using Port = Gates::Port;

    void set(const Port& port, uint32_t value) { gates_.set(port, &value); }

    uint32_t get(const Port& port) const
    {
        uint32_t value = 0;
        gates_.get(port, &value);
        return value;
    }

    const Port& port(const char* name) const { return gates_.port(name); }

    Gates gates_;
    const Port& sys_rst_ = port("sys_rst");
    const Port& rx_valid_ = port("pcie_rx_valid");
    const Port& rx_first_ = port("pcie_rx_first");
    const Port& rx_last_ = port("pcie_rx_last");
    const Port& rx_be_ = port("pcie_rx_be");
    const Port& rx_dat_ = port("pcie_rx_dat");
    const Port& rx_ready_ = port("pcie_rx_ready");
    const Port& tx_valid_ = port("pcie_tx_valid");
    const Port& tx_first_ = port("pcie_tx_first");
    const Port& tx_last_ = port("pcie_tx_last");
    const Port& tx_be_ = port("pcie_tx_be");
    const Port& tx_dat_ = port("pcie_tx_dat");
    const Port& tx_ready_ = port("pcie_tx_ready");
    const Port& id_ = port("pcie_id");
    const Port& max_payload_ = port("pcie_max_payload");
    const Port& max_request_ = port("pcie_max_request");
    const Port& extended_tags_ = port("pcie_extended_tags");
    const Port& msix_enable_ = port("pcie_msix_enable");
    const Port& bus_master_ = port("pcie_bus_master");
    const Port& serial_tx_data_ = port("serial_tx_data");
    const Port& serial_tx_k_ = port("serial_tx_k");
    const Port& serial_tx_ready_ = port("serial_tx_ready");
    const Port& loopback_ = port("serial_loopback");
    const Port& serial_rx_valid_ = port("serial_rx_valid");
    const Port& serial_rx_data_ = port("serial_rx_data");
    const Port& serial_rx_k_ = port("serial_rx_k");
    const Port& code_error_ = port("serial_rx_code_error");
    const Port& disparity_error_ = port("serial_rx_disparity_error");
    const Port& signal_ = port("serial_rx_signal");
    const Port& tck_ = port("jtag_tck");
    const Port& tms_ = port("jtag_tms");
    const Port& tdi_ = port("jtag_tdi");
    const Port& tdo_ = port("jtag_tdo");
};

} // namespace

const char* const default_device = "";
const uint64_t aperture_bytes = 0;

std::unique_ptr<Device> make_device(const std::string& name, unsigned, const Profile&, uint64_t)
{
    if (name.empty())
        throw std::runtime_error("which netlist? --device GATES, made by hw/synthesis/gates.py");
    return std::make_unique<Card>(name);
}

} // namespace dibber
