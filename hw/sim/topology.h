/* Which cards and switches there are, and which cables join them.
 *
 * The file of --topology is TOML:
 *
 *     cards = 2                            # card0, card1, ...; a card has port 0 alone; or with
 *                                          # fabric ring-pair port 0 (NEXT) and 1 (PREVIOUS); or
 *                                          # with fabric two-links port 0 and 1
 *
 *     links = 2                            # links a card, 1 or 2: for fabric two-links. If absent:
 *                                          # those of the profile
 *
 *     [[switch]]
 *     name  = "hub"                        # if absent: switch0, switch1, ... in their order
 *     ports = 4                            # 4, 8 or 16
 *
 *     [[cable]]
 *     name           = "left"              # if absent: cable0, cable1, ... in their order
 *     ends           = ["card0", "hub:0"]  # UNIT or UNIT:PORT. One end: the other is open
 *     length_m       = 3.0                 # if absent: that of the profile
 *     bit_error_rate = 1e-9                # if absent: that of the profile
 *     one_way        = true                # from ends[0] to ends[1] alone: a segment of a ring. A
 *                                          # card may have one that leaves and one that comes
 *
 * `dibber sim topology` prints such files.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "profile.h"

namespace dibber {

struct TopologyError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Topology {
    struct Switch {
        std::string name;
        unsigned ports;
    };

    struct End {
        unsigned unit; /* cards come first, then switches */
        unsigned port;
    };

    struct Cable {
        std::string name;
        std::vector<End> ends; /* one or two; direction 0 leaves ends[0] */
        double length_m, bit_error_rate;
        bool one_way = false; /* direction 0 alone */

        size_t directions() const { return one_way ? 1 : ends.size(); }
    };

    unsigned cards = 0;
    unsigned card_ports = 1;
    std::vector<Switch> switches;
    std::vector<Cable> cables;

    size_t units() const { return cards + switches.size(); }
    unsigned ports(unsigned unit) const;
    std::string name(unsigned unit) const;

    /* The unit or cable that has this name, or -1. */
    int find_unit(const std::string& name) const;
    int find_cable(const std::string& name) const;
};

/* One card with a cable whose far end is open, or two cards and the cable between them. With two
 * links a card, port 1 has a cable of its own. If the profile's fabric is a ring or a pair
 * of rings: two cards and a cable from each to the other, or one to itself. */
Topology cabled_cards(unsigned cards, const Profile& profile);

/* Read `path`. Throws TopologyError, which names the file, the line and what is wrong. */
Topology read_topology(const std::string& path, const Profile& profile);

} // namespace dibber
