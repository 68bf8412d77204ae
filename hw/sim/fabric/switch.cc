/* The Verilated switch of boards/sim_switch.py, as a shared object. Built once for each number of
 * ports and clock; switch_models.cc loads it. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <array>

#include <verilated.h>

#include "../switch_device.h"
#include "Vdibber_switch.h"
#include "evaluator.h"

double sc_time_stamp() { return 0; }

namespace dibber {

namespace {

/* The pins of a serial port. */
struct Pins {
    IData& tx_data;
    CData &tx_k, &tx_ready, &rx_valid;
    IData& rx_data;
    CData &rx_k, &rx_code_error, &rx_disparity_error, &rx_signal;
};

#define PORT(n)                                                                                    \
    Pins                                                                                           \
    {                                                                                              \
        model_.serial##n##_tx_data, model_.serial##n##_tx_k, model_.serial##n##_tx_ready,          \
            model_.serial##n##_rx_valid, model_.serial##n##_rx_data, model_.serial##n##_rx_k,      \
            model_.serial##n##_rx_code_error, model_.serial##n##_rx_disparity_error,               \
            model_.serial##n##_rx_signal                                                           \
    }

class Switch : public SwitchDevice {
public:
    Switch(const char* name, uint32_t identity)
        : model_(&context_, name), evaluator_(model_), pins_{{
                                                           PORT(0),
                                                           PORT(1),
                                                           PORT(2),
                                                           PORT(3),
#if DIBBER_PORTS > 4
                                                           PORT(4),
                                                           PORT(5),
                                                           PORT(6),
                                                           PORT(7),
#endif
#if DIBBER_PORTS > 8
                                                           PORT(8),
                                                           PORT(9),
                                                           PORT(10),
                                                           PORT(11),
                                                           PORT(12),
                                                           PORT(13),
                                                           PORT(14),
                                                           PORT(15),
#endif
                                                       }}
    {
        context_.randReset(0);
        model_.sys_clk = 0;
        model_.sys_rst = 1;
        model_.identity = identity;
    }

    ~Switch() override
    {
        /* As in card.cc. */
        Verilated::threadContextp(&context_);
        model_.final();
    }

    void settle(bool reset, std::span<const SerialInputs> in, std::span<SerialOutputs> out) override
    {
        model_.sys_rst = reset;
        for (unsigned n = 0; n < DIBBER_PORTS; n++) {
            Pins& pins = pins_[n];
            pins.tx_ready = in[n].serial_tx_ready;
            pins.rx_signal = in[n].serial_rx_signal;
            pins.rx_valid = in[n].serial_rx_valid;
            if (in[n].serial_rx_valid) {
                pins.rx_data = in[n].serial_rx.data;
                pins.rx_k = in[n].serial_rx.k;
                pins.rx_code_error = in[n].serial_rx_code_error;
                pins.rx_disparity_error = in[n].serial_rx_disparity_error;
            }
        }
        evaluator_.settle();
        for (unsigned n = 0; n < DIBBER_PORTS; n++)
            out[n].serial_tx = {pins_[n].tx_data, pins_[n].tx_k};
    }

    void clock() override { evaluator_.clock(); }

private:
    VerilatedContext context_;
    Vdibber_switch model_;
    Evaluator evaluator_; /* of hw/sim/changed */
    std::array<Pins, DIBBER_PORTS> pins_;
};

} // namespace

} // namespace dibber

extern "C" __attribute__((visibility("default"))) dibber::SwitchDevice*
dibber_make_switch(const char* name, uint32_t identity)
{
    return new dibber::Switch(name, identity);
}
