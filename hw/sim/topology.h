/* Which cards and switches there are, and which cables join them.
 *
 * The file of --topology is TOML:
 *
 *     cards = 2                            # card0, card1, ...; a card has port 0 alone
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
    };

    unsigned cards = 0;
    std::vector<Switch> switches;
    std::vector<Cable> cables;

    size_t units() const { return cards + switches.size(); }
    unsigned ports(unsigned unit) const;
    std::string name(unsigned unit) const;

    /* The unit or cable that has this name, or -1. */
    int find_unit(const std::string& name) const;
    int find_cable(const std::string& name) const;
};

/* One card with a cable whose far end is open, or two cards and the cable between them. */
Topology cabled_cards(unsigned cards, const Profile& profile);

/* Read `path`. Throws TopologyError, which names the file, the line and what is wrong. */
Topology read_topology(const std::string& path, const Profile& profile);

} // namespace dibber
