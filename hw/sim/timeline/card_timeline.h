/* What one card and its host did in simulated time, for the file of --timeline.
 *
 * The host model, the PCIe block, the clock and the card's unit tell it what they see at their
 * boundaries. It changes nothing. Where there is no timeline, each of them tests one pointer.
 * A card's unit and its host never run at the same time, so no lock is needed.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "../device.h"
#include "../host/tlp.h"
#include "dibber_interface.h"
#include "events.h"
#include "packets.h"

namespace dibber {

class CardTimeline {
public:
    explicit CardTimeline(unsigned card);

    /* Clock: a participant's charged call, its wait, its read of a register. */
    void call(unsigned endpoint, uint32_t call, uint32_t count, Time from, Time until);
    void waited(unsigned endpoint, Time from, Time until, bool woken);
    void read_register(unsigned endpoint, Time from, Time until);

    /* Host: a write of BAR 0 by the CPU; a TLP on the link to the card; what reaches memory. */
    void bar_written(Time at, uint64_t offset, std::span<const uint8_t> bytes);
    void to_card(const Tlp& tlp, Time from, Time until);
    void memory_busy(Time arrival, Time until);
    void in_memory(Time at, const Tlp& tlp);
    void interrupted(Time at, unsigned vector);

    /* PCIe block: the card offers a beat or takes one; whole TLPs; the way to the host. */
    void transmitter(bool waits, Time now);
    void receiver(bool waits, Time now);
    void emitted(const Tlp& tlp, Time now);
    void taken(const Tlp& tlp, Time now);
    void left(const Tlp& tlp, Time ready, Time from, Time until);

    /* Unit, each cycle: the words of the link. `word` is the time that a word takes. */
    void sent(const Symbols& symbols, Time now, Time word)
    {
        sends_.hear(symbols, false, now, word);
    }
    void heard(const SerialInputs& in, Time now, Time word);

    /* Between runs, at cycle `cycle` of the card since its power-up: new entries of the control
     * program's trace ring. */
    void look_at_program(const Device& device, uint64_t cycle, Time now, Time period);

    /* The card lost its power, or the run ends: what has begun is cut. */
    void cut(Time now);

    Events events;

private:
    struct Queue {
        uint64_t base = 0, bytes = 0;
    };

    void doorbell(Time at, unsigned endpoint, uint32_t producer);
    void register_written(Time at, uint64_t offset, uint32_t value);
    bool is_queue_entry(uint64_t address, unsigned bytes, unsigned& queue) const;
    void program_event(const dibber_trace_entry& entry, Time at);

    PacketListener sends_, hears_;
    std::array<std::optional<Time>, PacketListener::channels> stopped_;
    std::optional<Time> transmitter_waits_, receiver_waits_;
    std::array<uint64_t, 256> reads_ = {}; /* by tag: number of the read under way; 0: none */
    uint64_t numbers_ = 0;
    std::array<std::array<uint8_t, DIBBER_SLOTS * DIBBER_SLOT_BYTES>, DIBBER_ENDPOINTS> slots_ = {};
    std::array<uint32_t, DIBBER_ENDPOINTS> producers_ = {};
    std::array<Queue, DIBBER_QUEUES> queues_ = {};
    uint32_t traced_ = 0;
};

} // namespace dibber
