/* A switch in C++ for tests: it passes words on, one by one, and knows no packets.
 *
 * A data word leaves by the port that lies (word & 15) ports behind the one where it came in,
 * modulo the number of ports, as word >> 4. So a word that crosses several switches carries a digit
 * for each, the first in the lowest bits. Words of control symbols stay here.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <deque>
#include <vector>

#include "../switch_device.h"

namespace dibber {

class Relay : public SwitchDevice {
public:
    explicit Relay(unsigned ports) : ports_(ports) {}

    void settle(bool reset, std::span<const SerialInputs> in,
                std::span<SerialOutputs> out) override;
    void clock() override;

private:
    struct Port {
        std::deque<uint32_t> leaving;
        bool offered = false;
        SerialInputs in;
    };

    bool reset_ = false;
    std::vector<Port> ports_;
};

} // namespace dibber
