"""A netlist that nextpnr has placed, made so that it can route it in another run; and whether what
was routed is what the part does.

nextpnr reads where a LUT is before it knows what the LUT is (`attributesToArchInfo` of its
common/kernel/basectx.cc, 0.11.1), and that decides which of its inputs the router may permute
(`bindBel` of ecp5/arch.h). So it permutes inputs of carries across their halves, which makes
another function of them.
"""

# SPDX-License-Identifier: BSD-2-Clause

import re

# Bind ---------------------------------------------------------------------------------------------


def rebind(module, timed):
    """Change `module`, that of the JSON that nextpnr writes, so that nextpnr routes on: by time,
    and what is too long again, or without a thought of time.

    LUTs are bound by a constraint, and that the placer does, which has nothing else to do. But it
    looks for the clocks, enables and resets of multipliers, which nobody writes down that are not
    connected. It refuses a clocks' network that is routed. Its settings are in the file, and those
    count more than options.
    """
    module["settings"] |= {
        "placer": "sa",
        **{name: format(timed, "032b") for name in ("timing_driven", "router/tmg_ripup")},
    }
    for cell in module["cells"].values():
        if cell["type"] == "TRELLIS_COMB":
            cell["attributes"].pop("BEL_STRENGTH", None)
            cell["attributes"]["BEL"] = cell["attributes"].pop("NEXTPNR_BEL")
        if cell["type"] == "MULT18X18D":
            for pin in (f"{kind}{n}" for kind in ("CLK", "CE", "RST") for n in range(4)):
                cell["port_directions"][pin] = "input"
                cell["connections"][pin] = cell["connections"].get(pin) or ["x"]
    for name, net in module["netnames"].items():
        if name.startswith("$glbnet$"):
            net["attributes"].pop("ROUTING", None)


# Check --------------------------------------------------------------------------------------------

# A way into a LUT, from the wire of one of its inputs to another input.
INTO_LUT = re.compile(r"(X\d+/Y\d+)/\S*?([A-D])\d->\S*?([A-D])(\d)_SLICE$")


def permuted(module):
    """Ways of a routed module by which inputs of a LUT are permuted that may not be: of a memory
    none, of a carry those of its
    two halves, A and B, C and D, each among themselves. Lattice TN1264, PFU."""
    modes = {
        cell["attributes"]["NEXTPNR_BEL"]: cell["parameters"].get("MODE", "LOGIC")
        for cell in module["cells"].values()
        if cell["type"] == "TRELLIS_COMB"
    }
    wrong = []
    for net in module["netnames"].values():
        for way in net["attributes"].get("ROUTING", "").split(";")[1::3]:
            if found := INTO_LUT.search(way):
                tile, wire, pin, lut = found.groups()
                mode = modes.get(f"{tile}/SLICE{'ABCD'[int(lut) // 2]}.K{int(lut) % 2}", "LOGIC")
                if wire != pin and (
                    mode in ("DPRAM", "RAMW_BLOCK")
                    or (mode == "CCU2" and {wire, pin} not in ({"A", "B"}, {"C", "D"}))
                ):
                    wrong.append(way)
    return wrong
