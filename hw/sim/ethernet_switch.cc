/* SPDX-License-Identifier: BSD-2-Clause */

#include "ethernet_switch.h"

namespace dibber {

namespace {

constexpr uint64_t address_mask = 0xffffffffffff;

/* The bit of an address's first byte that says group (IEEE 802, 8.2.2); also of broadcast. */
constexpr uint64_t group = 1;

size_t bytes_of(const std::vector<FrameWord>& frame)
{
    return 8 * (frame.size() - 1) + frame.back().bytes;
}

} // namespace

EthernetSwitch::EthernetSwitch(unsigned ports, unsigned queue_bytes)
    : queue_bytes_(queue_bytes), ports_(ports)
{
}

void EthernetSwitch::settle(bool reset, std::span<const SerialInputs> in,
                            std::span<SerialOutputs> out)
{
    if (reset) {
        ports_.assign(ports_.size(), {});
        places_.clear();
    }
    for (unsigned n = 0; n < ports_.size(); n++) {
        Port& port = ports_[n];
        port.comes = reset ? FrameWord{} : in[n].frame_rx;
        port.ready = in[n].frame_tx_ready;
        port.sends = !port.queue.empty();
        out[n].frame_tx = port.sends ? (*port.queue.front())[port.sent] : FrameWord{};
    }
}

void EthernetSwitch::clock()
{
    for (Port& port : ports_) {
        if (!port.sends || !port.ready || ++port.sent < port.queue.front()->size())
            continue;
        port.bytes -= bytes_of(*port.queue.front());
        port.queue.pop_front();
        port.sent = 0;
    }
    for (unsigned n = 0; n < ports_.size(); n++) {
        Port& port = ports_[n];
        if (!port.comes.valid)
            continue;
        port.received.push_back(port.comes);
        if (!port.comes.last)
            continue;
        if (port.comes.error || port.received.size() < 2)
            dropped_++;
        else
            forward(n, std::make_shared<std::vector<FrameWord>>(std::move(port.received)));
        port.received.clear();
    }
}

void EthernetSwitch::forward(unsigned from, Frame frame)
{
    uint64_t first = (*frame)[0].data, second = (*frame)[1].data;
    uint64_t target = first & address_mask;
    uint64_t source = (first >> 48 | second << 16) & address_mask;
    if (!(source & group))
        places_[source] = from;
    auto place = places_.find(target);
    for (unsigned n = 0; n < ports_.size(); n++)
        if (n != from && ((target & group) || place == places_.end() || place->second == n))
            enqueue(ports_[n], frame);
}

void EthernetSwitch::enqueue(Port& port, const Frame& frame)
{
    if (port.bytes + bytes_of(*frame) > queue_bytes_) {
        dropped_++;
        return;
    }
    port.bytes += bytes_of(*frame);
    port.queue.push_back(frame);
}

} // namespace dibber
