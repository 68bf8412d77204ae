"""A flat netlist of Yosys for 7-series: which clock each register has, and which registers data
comes from.

Cells are of four sorts. *Registers* (flip-flops, block RAMs, DSPs) take data with a clock and give
it with one. *LUT memories* take it with a clock and give it whenever they are read. *Clock cells*
make clocks of clocks. *Hard blocks* are the vendor's: HARD says which of their pins go with which
clock; all others are asynchronous. Everything else is logic.
"""

# SPDX-License-Identifier: BSD-2-Clause

import collections
import fnmatch
import functools
import re

# Cells --------------------------------------------------------------------------------------------

FLIPFLOPS = ("FDRE", "FDSE", "FDCE", "FDPE")

# Outputs of a LUT memory -> the pins that address them. Writes are timed by WCLK.
LUT_MEMORIES = {
    "RAM32M": {"DOA": ["ADDRA"], "DOB": ["ADDRB"], "DOC": ["ADDRC"], "DOD": ["ADDRD"]},
    "RAM64M": {"DOA": ["ADDRA"], "DOB": ["ADDRB"], "DOC": ["ADDRC"], "DOD": ["ADDRD"]},
    "RAM32X1D": {"DPO": [f"DPRA{n}" for n in range(5)], "SPO": [f"A{n}" for n in range(5)]},
    "RAM64X1D": {"DPO": [f"DPRA{n}" for n in range(6)], "SPO": [f"A{n}" for n in range(6)]},
    "RAM128X1D": {"DPO": ["DPRA"], "SPO": ["A"]},
    "RAM32X1S": {"O": [f"A{n}" for n in range(5)]},
    "RAM64X1S": {"O": [f"A{n}" for n in range(6)]},
}
WRITE_ADDRESS = ("ADDRD", "A", *[f"A{n}" for n in range(6)])

# the same clock
BUFFERS = {
    **{"BUFG": "I", "BUFH": "I", "IBUF": "I", "IBUFDS": "I", "IBUFDS_GTE2": "I"},
    # UltraScale. A BUFG_GT divides by 1 here.
    **{"IBUFDS_GTE3": "I", "BUFG_GT": "I"},
}
MAKERS = {
    "PLLE2_ADV": ["CLKIN1"],
    "MMCME2_ADV": ["CLKIN1"],
    "BUFR": ["I"],
    "BUFGCTRL": ["I0", "I1"],
}
# PG054, figure "Clocking Architecture"
THROUGH = {("pcie_s7", "user_clk_out"): "pipe_userclk2_in"}

# Xilinx UG482, UG476: clocks of the ports of a transceiver. PG054: `user_clk_out` is that of all
# that is no clock.
CHANNEL = {
    "TXUSRCLK2": ["TXDATA", "TXCHARDISP*", "TXCHARISK", "TX8B10BBYPASS"],
    "RXUSRCLK2": ["RXDATA", "RXCHARISK", "RXDISPERR", "RXNOTINTABLE"],
    "DRPCLK": ["DRPADDR", "DRPDI", "DRPDO", "DRPEN", "DRPRDY", "DRPWE"],
}
# Xilinx UG576: the same of UltraScale.
CHANNEL_GTH = {
    "TXUSRCLK2": ["TXDATA", "TXCTRL0", "TXCTRL1"],
    "RXUSRCLK2": ["RXDATA", "RXCTRL0", "RXCTRL1"],
    "DRPCLK": CHANNEL["DRPCLK"],
}
HARD = {
    "GTHE3_CHANNEL": CHANNEL_GTH,
    "GTHE3_COMMON": {"DRPCLK": CHANNEL["DRPCLK"]},
    "GTPE2_CHANNEL": CHANNEL,
    "GTXE2_CHANNEL": CHANNEL,
    "GTPE2_COMMON": {"DRPCLK": CHANNEL["DRPCLK"]},
    "pcie_s7": {
        "user_clk_out": [
            "s_axis_*",
            "m_axis_*",
            "user_reset_out",
            "user_lnk_up",
            "tx_*",
            "rx_np*",
            "fc_*",
            "cfg_*",
            "pl_*",
        ]
    },
    # PG156: the same, but for the pins of the link and of resets.
    "pcie_us": {
        "user_clk": ["s_axis_*", "m_axis_*", "user_reset", "user_lnk_up", "pcie_rq_*", "cfg_*"],
    },
}

# Logic: what comes in goes out.
LOGIC = (
    "LUT1",
    "LUT2",
    "LUT3",
    "LUT4",
    "LUT5",
    "LUT6",
    "INV",
    "MUXF7",
    "MUXF8",
    "CARRY4",
    "OBUF",
    "IOBUF",
    "OBUFDS",
    "OBUFT",
)
FABRIC = {*FLIPFLOPS, *LUT_MEMORIES, *BUFFERS, *MAKERS, *LOGIC, "RAMB18E1", "RAMB36E1", "DSP48E1"}

# Netlist ------------------------------------------------------------------------------------------

Source = collections.namedtuple("Source", "cell port bit domain")  # cell None: a port of the design


class Netlist:
    """
    Parameters
    ----------
    document : what `write_json` wrote
    top      : the module, which is flat

    A *domain* is the net of a clock behind its buffers, by number; None is asynchronous.
    """

    def __init__(self, document, top):
        module = document["modules"][top]
        self.cells = module["cells"]
        self.names = collections.defaultdict(list)  # bit -> its names
        self.marks = collections.defaultdict(set)  # bit -> attributes of its nets
        self.bits = {}  # name of a net -> its bits
        self.driver = {}  # bit -> (cell, port)
        self.reads = collections.defaultdict(list)  # bit -> [(cell, port)]
        for name, net in module["netnames"].items():
            self.bits[name] = net["bits"]
            for n, bit in enumerate(net["bits"]):
                if not net.get("hide_name"):
                    self.names[bit].append(f"{name}[{n}]" if len(net["bits"]) > 1 else name)
                self.marks[bit] |= net["attributes"].keys()
        for name, cell in self.cells.items():
            for port, bits in cell["connections"].items():
                for bit in bits:
                    if isinstance(bit, str):
                        continue
                    if cell["port_directions"][port] == "output":
                        self.driver[bit] = (name, port)
                    else:
                        self.reads[bit].append((name, port))
        self.reach = {}

    def kind(self, cell):
        return self.cells[cell]["type"]

    def pin(self, cell, port):
        """The one bit at a pin, or None where it is a constant."""
        bit = self.cells[cell]["connections"].get(port, ["0"])[0]
        return None if isinstance(bit, str) else bit

    def name(self, bit):
        """What people call a net: the longest name says most, an unnamed one is called by what
        drives it.
        """
        return max(
            self.names.get(bit, []),
            key=len,
            default=".".join(map(str, self.driver.get(bit, (bit,)))),
        )

    # Clocks ---------------------------------------------------------------------------------------

    @functools.cache  # noqa: B019
    def domain(self, bit):
        """The clock's net behind buffers."""
        while bit in self.driver:
            cell, port = self.driver[bit]
            before = BUFFERS.get(self.kind(cell)) or THROUGH.get((self.kind(cell), port))
            if before is None or self.pin(cell, before) is None:
                break
            bit = self.pin(cell, before)
        return bit

    def ancestors(self, bit):
        """[[bits from a clock up to one of its origins]]: a port, or a pin of a hard block."""
        path = [bit]
        while bit in self.driver:
            cell, port = self.driver[bit]
            kind = self.kind(cell)
            before = (
                [BUFFERS[kind]]
                if kind in BUFFERS
                else MAKERS.get(kind, [THROUGH[kind, port]] if (kind, port) in THROUGH else [])
            )
            before = [self.pin(cell, pin) for pin in before]
            if len(before) != 1:
                return [path + rest for source in before for rest in self.ancestors(source)] or [
                    path
                ]
            bit = before[0]
            path.append(bit)
        return [path]

    def origins(self, domain):
        """Where a clock comes from in the end: clocks of one origin are timed against each other."""
        return frozenset(path[-1] for path in self.ancestors(domain))

    def clock(self, cell, port):
        """The domain of a pin of a register, a LUT memory or a hard block."""
        kind = self.kind(cell)
        if kind in FLIPFLOPS:
            pin = "C"
        elif kind in LUT_MEMORIES:
            pin = "WCLK"
        elif kind.startswith("RAMB"):
            pin = block_ram_clock(self.cells[cell]["parameters"].get("RAM_MODE", "TDP"), port)
        elif kind == "DSP48E1":
            pin = "CLK"
        else:
            pin = next(
                (
                    pin
                    for pin, ports in HARD.get(kind, {}).items()
                    if any(fnmatch.fnmatchcase(port, pattern) for pattern in ports)
                ),
                None,
            )
        bit = None if pin is None else self.pin(cell, pin)
        return None if bit is None else self.domain(bit)

    # Data -----------------------------------------------------------------------------------------

    def through(self, cell, port):
        """Bits that an output depends on within the cycle; and whether it also gives what the cell
        holds.
        """
        kind = self.kind(cell)
        wires = self.cells[cell]["connections"]
        if kind in LUT_MEMORIES:
            return [
                bit for pin in LUT_MEMORIES[kind].get(port, []) for bit in wires.get(pin, [])
            ], True
        if (
            kind in LOGIC
            or kind in BUFFERS
            or (kind == "DSP48E1" and self.pin(cell, "CLK") is None)
        ):
            return [
                bit
                for pin, bits in wires.items()
                if self.cells[cell]["port_directions"][pin] != "output"
                for bit in bits
            ], False
        return [], True

    def domains(self, bit):
        """The domains of all registers that a bit comes from, None among them where there is
        something asynchronous.
        """
        stack, begun = [bit], set()
        while stack:
            at = stack[-1]
            if at in self.reach:
                stack.pop()
                continue
            if at not in self.driver:
                self.reach[at] = frozenset([None])
                continue
            before, holds = self.through(*self.driver[at])
            before = [b for b in before if not isinstance(b, str)]
            missing = [b for b in before if b not in self.reach and b not in begun]
            begun.add(at)
            if missing:
                stack += missing
                continue
            # What is begun and has nothing yet is a loop through logic, which `check` of Yosys
            # finds.
            found = frozenset([self.clock(*self.driver[at])]) if holds else frozenset()
            self.reach[at] = found.union(*[self.reach.get(b, ()) for b in before])
            stack.pop()
        return self.reach[bit]

    def sources(self, bit):
        """[Source] of a bit."""
        found, seen, stack = [], set(), [bit]
        while stack:
            at = stack.pop()
            if at in seen or isinstance(at, str):
                continue
            seen.add(at)
            if at not in self.driver:
                found.append(Source(None, None, at, None))
                continue
            before, holds = self.through(*self.driver[at])
            stack += before
            if holds:
                found.append(Source(*self.driver[at], at, self.clock(*self.driver[at])))
        return found

    def sinks(self):
        """(cell, port, bit, domain) of each pin that takes data with a clock, and of each
        asynchronous set and reset.
        """
        for name, cell in self.cells.items():
            kind = cell["type"]
            if kind in LOGIC or kind in BUFFERS or kind in MAKERS:
                continue
            clocks = {
                "C",
                "WCLK",
                "CLK",
                "CLKARDCLK",
                "CLKBWRCLK",
                *HARD.get(kind, ()),
                *(THROUGH[key] for key in THROUGH if key[0] == kind),
            }
            for port, bits in cell["connections"].items():
                if cell["port_directions"][port] == "output" or port in clocks:
                    continue
                if (
                    kind in LUT_MEMORIES
                    and not (port in WRITE_ADDRESS or re.match("D|WE", port))
                    or port.startswith("DPRA")
                ):
                    continue
                domain = self.clock(name, port)
                if domain is None:
                    continue
                for bit in bits:
                    if not isinstance(bit, str):
                        yield name, port, bit, domain


def block_ram_clock(mode, port):
    """Xilinx UG473, table 1-3: which clock a port of a block RAM has. In SDP mode A reads and B
    writes, all the width.
    """
    if mode == "SDP" and port.startswith("DI"):
        return "CLKBWRCLK"
    if mode == "SDP" and port.startswith("DO"):
        return "CLKARDCLK"
    return (
        "CLKBWRCLK"
        if re.search("BWR|^WEB|^DIB|^DIPB|^DOB|^DOPB|REGCEB|RAMB$|REGB$", port)
        else "CLKARDCLK"
    )
