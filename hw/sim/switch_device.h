/* What the simulator needs of a switch, Verilated or written in C++: its serial ports, cycle by
 * cycle. */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <memory>
#include <span>
#include <string>

#include "device.h"

namespace dibber {

/* A switch. Each cycle the simulator calls settle(), looks at the outputs, and calls clock(). */
class SwitchDevice {
public:
    virtual ~SwitchDevice() = default;

    /* Make `out` what the switch drives before the clock edge, given `in`: an element a port. */
    virtual void settle(bool reset, std::span<const SerialInputs> in,
                        std::span<SerialOutputs> out) = 0;

    /* The rising edge; the inputs are those of settle(). */
    virtual void clock() = 0;
};

/* A switch with so many ports, for cards of `profile`. `name` is that of the unit; `identity` is
 * different for each switch of a network.
 *
 * A program can bring switches of its own (`own_switches`). Otherwise the model is the shared
 * object dibber-switch-PORTS[-MHZ].so beside the program, which hw/sim/build.py --switch builds.
 * Throws std::runtime_error, which says how to build it. */
std::unique_ptr<SwitchDevice> make_switch(const std::string& name, unsigned ports,
                                          const Profile& profile, uint32_t identity);

using MakeSwitch = std::unique_ptr<SwitchDevice> (*)(const std::string& name, unsigned ports,
                                                     const Profile& profile, uint32_t identity);

/* What make_switch() calls in place of a shared object, if a program sets it before main(). */
extern MakeSwitch own_switches;

/* The function that a shared object has under the name `switch_model_symbol`; the caller owns what
 * it returns. */
using MakeSwitchModel = SwitchDevice* (*)(const char* name, uint32_t identity);
constexpr const char* switch_model_symbol = "dibber_make_switch";

} // namespace dibber
