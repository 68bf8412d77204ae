/* An Ethernet switch: it stores each frame and forwards it, learns which port has which address,
 * and floods frames for addresses that it does not know. A frame with a wrong FCS is dropped, and
 * so is one for an output whose queue has no room for all of it (tail drop).
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "switch_device.h"

namespace dibber {

class EthernetSwitch : public SwitchDevice {
public:
    /* `queue_bytes`: room for frames of each output. */
    EthernetSwitch(unsigned ports, unsigned queue_bytes);

    void settle(bool reset, std::span<const SerialInputs> in,
                std::span<SerialOutputs> out) override;
    void clock() override;

    uint64_t dropped() const { return dropped_; }

private:
    using Frame = std::shared_ptr<const std::vector<FrameWord>>;

    struct Port {
        bool ready = false, sends = false; /* of this cycle */
        FrameWord comes;
        std::vector<FrameWord> received;
        std::deque<Frame> queue;
        size_t sent = 0;  /* words of the first frame */
        size_t bytes = 0; /* in the queue */
    };

    void forward(unsigned from, Frame frame);
    void enqueue(Port& port, const Frame& frame);

    const unsigned queue_bytes_;
    std::vector<Port> ports_;
    std::map<uint64_t, unsigned> places_; /* address: port */
    uint64_t dropped_ = 0;
};

} // namespace dibber
