"""What the JSON of a module tells, that of Yosys' netlist and that of what nextpnr has placed."""

# SPDX-License-Identifier: BSD-2-Clause

import re


def first_free_bit(module):
    """The least number of a net that `module` has not; all above it are free, too."""
    return 1 + max(
        bit for net in module["netnames"].values() for bit in net["bits"] if isinstance(bit, int)
    )


def tile(cell):
    """(x, y) where nextpnr has put `cell`, or None."""
    place = re.match(r"X(\d+)/Y(\d+)/", cell["attributes"].get("NEXTPNR_BEL", ""))
    return place and tuple(map(int, place.groups()))
