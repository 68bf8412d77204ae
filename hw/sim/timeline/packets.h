/* The words of one direction of a link as packets: a listener at one end (docs/design/link.md). */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <array>

#include "../device.h"
#include "dibber_interface.h"
#include "events.h"

namespace dibber {

class PacketListener {
public:
    static constexpr unsigned channels = 4;

    /* Packets of channel n are spans of row `first_row` + n. */
    PacketListener(Events& events, unsigned first_row) : events_(events), first_row_(first_row) {}

    /* A word that begins at `now` and takes `word`. Returns the flow byte of an intact flow word,
     * otherwise -1. */
    int hear(const Symbols& symbols, bool erroneous, Time now, Time word);

    /* The link or the run ends: packets that have begun are cut. */
    void cut(Time now);

private:
    struct Packet {
        bool begun = false;
        Time from = 0;
        unsigned prefix = 0; /* words of the route that are still to come */
        uint64_t words = 0;  /* after the prefix */
        dibber_packet_header header = {};
    };

    void finish(unsigned channel, Time now, const char* how);

    Events& events_;
    const unsigned first_row_;
    std::array<Packet, channels> packets_;
    int current_ = -1; /* the channel of the following words; none: -1 */
};

/* Name of a channel, "BULK" for example. */
const char* channel_name(unsigned channel);

} // namespace dibber
