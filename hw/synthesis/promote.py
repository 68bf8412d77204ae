"""Resets and enables of very many registers, put on the clocks' network of an ECP5.

That network has 16 nets in each quadrant of the part and reaches the LSR and CE of every slice
(Lattice FPGA-TN-02200, "sysCLOCK PLL Design and Usage Guide"). nextpnr gives it to clocks only, and
takes all other nets through the fabric, where the reset of `sys` and that of `Halt` take a tenth of
all wires. What a DCCA drives it takes as a clock.
"""

# SPDX-License-Identifier: BSD-2-Clause

import collections

import design

PINS = ("LSR", "CE")


def promote(module, most, least=250):
    """Puts a DCCA in front of the LSR and CE pins of the `most` nets that have most of them, of
    those that have `least` or more.

    `module` is that of Yosys' JSON, and is changed. What else a net drives stays on it. Returns
    [(name of the net, pins)].
    """
    pins = collections.Counter(
        bit
        for cell in module["cells"].values()
        if cell["type"] == "TRELLIS_FF"
        for pin in PINS
        for bit in cell["connections"].get(pin, [])
        if isinstance(bit, int)
    )
    nets = [bit for bit, number in pins.most_common(most) if number >= least]
    if not nets:
        return []
    names = {}
    for name, net in module["netnames"].items():
        for bit in net["bits"]:
            names.setdefault(bit, name)
    free = design.first_free_bit(module)
    new = {bit: free + n for n, bit in enumerate(nets)}
    for cell in module["cells"].values():
        if cell["type"] == "TRELLIS_FF":
            for pin in PINS:
                if pin in cell["connections"]:
                    cell["connections"][pin] = [
                        new.get(bit, bit) for bit in cell["connections"][pin]
                    ]
    for n, (bit, far) in enumerate(new.items()):
        module["cells"][f"promoted{n}"] = {
            "hide_name": 0,
            "type": "DCCA",
            "parameters": {},
            "attributes": {},
            "port_directions": {"CLKI": "input", "CLKO": "output"},  # without CE it is always open
            "connections": {"CLKI": [bit], "CLKO": [far]},
        }
        module["netnames"][f"promoted{n}"] = {"hide_name": 0, "bits": [far], "attributes": {}}
    return [(names[bit], pins[bit]) for bit in nets]
