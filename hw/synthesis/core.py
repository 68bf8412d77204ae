"""The core as a module of its own: synthesized once, and put into each board that has it.

`generate` writes the module `dibber_core`; a design of `boards/` that gets `CoreBox` for its core
has an instance of it. So a board's netlist is that of its shell and that of the core, joined at the
core's pins: no logic is shared across them.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import ClockDomain, ClockSignal, Instance, ResetSignal, Signal

from litex.gen import LiteXModule

from litex.gen.fhdl.verilog import convert

from boards.sim import FABRICS, SimPCIePHY, SimSerialPHY, SourceList

from dibber.core import DibberCore
from dibber.debug.transport import dmi_port
from dibber.host.flash import flash_pads
from dibber.mcp.processor import SRAM_SCARCE

TOP = "dibber_core"
SERIALS = ("serial", "serial2")  # names of a card's links, as in boards/sim.py

# Boundary -----------------------------------------------------------------------------------------


def boundary(phy, serial, dmi, link_up, flash):
    """[(direction, name, Signal)] of the core's pins but clock and reset. What both kinds of PHY of
    the boards have: see DibberCore. `serial` is a PHY, or a list of those of a pair of rings.
    """
    serials = dict(zip(SERIALS, serial if isinstance(serial, list) else [serial]))
    pins = []
    for prefix, endpoint, given, taken in (
        ("pcie_rx", phy.source, "input", "output"),
        ("pcie_tx", phy.sink, "output", "input"),
        *[(f"{name}_rx", one.source, "input", "output") for name, one in serials.items()],
        *[(f"{name}_tx", one.sink, "output", "input") for name, one in serials.items()],
    ):
        payload = [field[0] for field in endpoint.description.payload_layout]
        pins += [
            (given, f"{prefix}_{name}", getattr(endpoint, name))
            for name in ["valid", "first", "last", *payload]
        ]
        pins += [(taken, f"{prefix}_ready", endpoint.ready)]
    pins += [
        ("input", f"pcie_{name}", getattr(phy, name))
        for name in [
            "id",
            "max_payload_size",
            "max_request_size",
            "extended_tags",
            "msix_enable",
            "bus_master",
        ]
    ]
    for name, one in serials.items():
        pins += [
            ("input", f"{name}_signal", one.signal),
            ("output", f"{name}_loopback", one.loopback),
        ]
    pins += [("input", f"dmi_{name}", getattr(dmi, name)) for name in ["adr", "dat_w", "we", "re"]]
    pins += [("output", f"flash_{name}", getattr(flash, name)) for name in ["cs_n", "clk", "mosi"]]
    return [
        *pins,
        ("input", "flash_miso", flash.miso),
        ("output", "dmi_dat_r", dmi.dat_r),
        ("output", "link_up", link_up),
    ]


class CoreBox(LiteXModule):
    """In place of DibberCore on a board: an instance of the module. It does not know which board,
    and whether link and flash are absent.
    """

    def __init__(
        self,
        platform,
        phy,
        serial,
        data_width,
        clock_hz,
        board="",
        flash=None,
        sram_bytes=None,
        hold_off=True,
        port=None,
    ):
        self.dmi = dmi_port()
        self.link = LiteXModule()
        self.link.up = Signal()

        # # #

        assert phy.data_width == data_width
        assert hold_off, "the module has it, see Core"
        assert isinstance(serial, list) == hasattr(port, "cables")
        pins = {
            f"{direction[0]}_{name}": signal
            for direction, name, signal in boundary(
                phy, serial, self.dmi, self.link.up, flash or flash_pads()
            )
        }
        self.specials += Instance(TOP, i_sys_clk=ClockSignal(), i_sys_rst=ResetSignal(), **pins)


# Module -------------------------------------------------------------------------------------------


class Core(LiteXModule):
    """DibberCore between PHYs that are pins, with the smaller SRAM, so that it fits each part. It
    has the options of the PCIe boards. `fabric` is a name of FABRICS. `pins` is its boundary.
    """

    def __init__(self, platform, data_width, clock_hz, hold_off=True, fabric="direct"):
        self.cd_sys = ClockDomain()
        self.phy = SimPCIePHY(data_width)
        self.serial = serial = SimSerialPHY()
        port = FABRICS[fabric]()
        if hasattr(port, "cables"):
            self.serial2 = SimSerialPHY("serial2")
            serial = [self.serial, self.serial2]
        self.flash = flash_pads()
        self.core = DibberCore(
            platform,
            self.phy,
            serial,
            data_width,
            clock_hz,
            flash=self.flash,
            sram_bytes=SRAM_SCARCE,
            port=port,
            hold_off=hold_off,
        )
        self.pins = boundary(self.phy, serial, self.core.dmi, self.core.link.up, self.flash)
        for _, name, signal in self.pins:
            signal.name_override = name


def generate(folder, data_width, clock_hz, hold_off=True, fabric="direct"):
    """Verilog of the core in `folder`, and as a box in dibber_core_box.v; names of the sources, and
    of memory contents.

    hold_off : as on the PCIe boards; False: the core without options
    fabric   : what its link is a part of, of FABRICS
    """
    platform = SourceList()
    core = Core(platform, data_width, clock_hz, hold_off, fabric)
    verilog = convert(
        core, {core.cd_sys.clk, core.cd_sys.rst, *[signal for _, _, signal in core.pins]}, name=TOP
    )
    text = "\n".join(
        line for line in verilog.main_source.splitlines() if not line.lstrip().startswith("//")
    )
    (folder / f"{TOP}.v").write_text(text + "\n")
    pins = [
        "input sys_clk",
        "input sys_rst",
        *[f"{direction} [{len(signal) - 1}:0] {name}" for direction, name, signal in core.pins],
    ]
    (folder / f"{TOP}_box.v").write_text(f"module {TOP}({', '.join(pins)});\nendmodule\n")
    for name, contents in verilog.data_files.items():
        (folder / name).write_text(contents)
    sources = [f"{TOP}.v"]
    for source in platform.sources:
        name = source.rpartition("/")[2]
        (folder / name).write_bytes(open(source, "rb").read())
        sources.append(name)
    return sources, sorted(verilog.data_files)
