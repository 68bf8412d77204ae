/* SPDX-License-Identifier: BSD-2-Clause */

#include "relay.h"

namespace dibber {

namespace {

constexpr Symbols idle = {0xbc, 1};

const bool registered = [] {
    own_switches = [](const std::string&, unsigned ports, const Profile&,
                      uint32_t) -> std::unique_ptr<SwitchDevice> {
        return std::make_unique<Relay>(ports);
    };
    return true;
}();

} // namespace

void Relay::settle(bool reset, std::span<const SerialInputs> in, std::span<SerialOutputs> out)
{
    reset_ = reset;
    for (size_t n = 0; n < ports_.size(); n++) {
        Port& port = ports_[n];
        port.in = in[n];
        port.offered = !port.leaving.empty();
        out[n].serial_tx = port.offered ? Symbols{port.leaving.front(), 0} : idle;
    }
}

void Relay::clock()
{
    for (size_t n = 0; n < ports_.size(); n++) {
        Port& port = ports_[n];
        if (reset_) {
            port.leaving.clear();
            continue;
        }
        if (port.offered && port.in.serial_tx_ready)
            port.leaving.pop_front();
        const SerialInputs& in = port.in;
        if (in.serial_rx_valid && in.serial_rx.k == 0 && !in.serial_rx_code_error &&
            !in.serial_rx_disparity_error)
            ports_[(n + (in.serial_rx.data & 15)) % ports_.size()].leaving.push_back(
                in.serial_rx.data >> 4);
    }
}

} // namespace dibber
