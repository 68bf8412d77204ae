"""The GTH of a KCU105 with its gearbox for 10GBASE-R: cells and clock crossings.

Nothing here can place it. What is checked: Yosys knows each pin and parameter of the vendor's
cells, it makes logic of all else, and each clock crossing has its synchroniser.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json

import bitstream
import crossings
import flow
import netlist
import pytest
import xilinx
from dibber.layouts import block_layout
from dibber.link.ethernet.base_r.lock import BlockLock
from dibber.phy.gth import GTHBlockPHY, GTHReference
from litex.build.generic_platform import Pins, Subsignal
from litex.gen import *
from litex.soc.cores.clock import USMMCM
from litex.soc.interconnect import stream
from litex_boards.platforms import xilinx_kcu105
from migen import *

# Cells of UltraScale that logic cannot be made of.
HARD = {"GTHE3_CHANNEL", "GTHE3_COMMON", "BUFG_GT", "IBUFDS_GTE3"}
SYS_HZ = 160e6
# The first cage, with the names that all boards here have.
CAGE = [
    ("cage", 0)
    + tuple(
        Subsignal(name, Pins(pin))
        for name, pin in {"tx_p": "U4", "tx_n": "U3", "rx_p": "T2", "rx_n": "T1"}.items()
    )
]


class Echo(LiteXModule):
    """The transceiver sends back the blocks that it gets."""

    def __init__(self, platform, sys_hz=SYS_HZ):
        self.cd_sys = ClockDomain()
        self.pll = USMMCM(speedgrade=-2)
        self.pll.register_clkin(platform.request("clk125"), 125e6)
        self.pll.create_clkout(self.cd_sys, SYS_HZ)
        self.reference = GTHReference(platform, platform.request("si570_refclk"), 156.25e6)
        self.phy = phy = GTHBlockPHY(platform, platform.request("cage"), self.reference, sys_hz)
        self.lock = lock = BlockLock()
        self.fifo = fifo = stream.SyncFIFO(block_layout(), 32)

        # # #

        clocks = [self.cd_sys.clk, phy.serdes.cd_tx.clk, phy.serdes.cd_rx.clk]
        for n, clock in enumerate(clocks):
            for other in clocks[:n]:
                platform.add_false_path_constraints(clock, other)
        self.comb += [
            phy.block_rx.connect(lock.sink, omit={"ready"}),
            phy.block_rx.connect(fifo.sink, omit={"ready"}),
            fifo.source.connect(phy.block_tx),
            phy.slip.eq(lock.slip),
        ]


def platform():
    board = xilinx_kcu105.Platform()
    board.add_extension(CAGE)
    return board


@pytest.fixture(scope="module")
def made():
    folder = flow.BUILD / "tests" / "base_r"
    board = platform()
    sources, _ = bitstream.generate(folder, "echo", board, Echo(board))
    return folder, sources, xilinx.synthesize(folder, "echo", sources)


def test_the_vendors_cells_have_these_pins_and_parameters_and_all_else_is_logic(made):
    folder, sources, count = made
    assert {cell: n for cell, n in count.items() if cell in HARD} == {
        "GTHE3_CHANNEL": 1,
        "GTHE3_COMMON": 1,
        "BUFG_GT": 2,
        "IBUFDS_GTE3": 1,
    }
    unknown = [f"black box {cell}" for cell in HARD]
    assert [line for line in xilinx.unknown_cells(count) if line not in unknown] == []
    assert xilinx.latches(folder, count) + xilinx.flipflop_memories(folder) == []
    assert xilinx.drivers(folder) == []
    assert "has no driver" not in (folder / "drivers.log").read_text()


def test_each_clock_crossing_has_its_synchroniser(made):
    folder, _, _ = made
    design = netlist.Netlist(json.loads((folder / "netlist.json").read_text()), "echo")
    text = (folder / "echo.xdc").read_text()
    lines, wrong = crossings.report(design, crossings.Constraints(text))
    assert wrong == []
    fifos = [line for line in lines if line.startswith("AsyncFIFO")]
    assert len(fifos) == 2 and all(line.endswith("66 bits") for line in fifos)


def test_a_clock_that_is_too_slow_for_the_wire_is_refused():
    board = platform()
    with pytest.raises(ValueError, match="too slow for 10GBASE-R"):
        Echo(board, 156.25e6)
