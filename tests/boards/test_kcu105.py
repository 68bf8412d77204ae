"""The KCU105, whose family has another PCIe block than the other boards: its project, cells and
clock crossings. The core is left out.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json

import crossings
import flow
import netlist
import pytest
import xilinx
from dibber.interface.description import C
from dibber.layouts import frame_layout
from dibber.phy.dna import DNA_BITS, NumberReader
from litex.gen import LiteXModule
from litex.soc.interconnect import stream
from migen import Signal, passive

from boards import kcu105, vivado
from tests.boards.nocore import NoCore
from tests.boards.test_board_crossings import problems_without
from tests.boards.test_vivado import debug_chains, run_with_stand_ins
from tests.gateware.models.compiled import run_simulation

HARD = {
    "pcie_us": 1,
    "GTHE3_CHANNEL": 1,
    "GTHE3_COMMON": 1,
    "BUFG_GT": 2,
    "IBUFDS_GTE3": 2,
    "BSCANE2": 2,
    "DNA_PORTE2": 1,
}


class NoPort(LiteXModule):
    """In place of the port, which is in the clock domain of the core, and takes minutes: frames
    that come are sent back.
    """

    def __init__(self, **options):
        self.frame_tx = stream.Endpoint(frame_layout())
        self.frame_rx = stream.Endpoint(frame_layout())
        self.sinks = self.sources = []
        self.retrain, self.up, self.signal, self.mac = Signal(), Signal(), Signal(), Signal(48)

        # # #

        self.comb += [
            self.frame_rx.connect(self.frame_tx),
            self.up.eq(self.signal & self.retrain & (self.mac != 0)),
        ]


@pytest.fixture(scope="module")
def project():
    folder = flow.BUILD / "tests" / "kcu105"
    platform = kcu105.platform()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kcu105, "EthernetPort", NoPort)
        sources, _ = vivado.generate(folder, "top", platform, kcu105.Card(platform, 160e6, NoCore))
    (folder / "pcie_us.v").write_bytes((xilinx.HERE / "pcie_us.v").read_bytes())
    return folder, sources


@pytest.fixture(scope="module")
def made(project):
    folder, sources = project
    stub = f"read_verilog -lib {xilinx.macros(4, 128)} pcie_us.v;"
    count = xilinx.synthesize(folder, "top", sources, stub)
    nets = netlist.Netlist(json.loads((folder / "netlist.json").read_text()), "top")
    return folder, count, nets, (folder / "top.xdc").read_text()


# Project ------------------------------------------------------------------------------------------


def test_the_pcie_block_gets_the_identity_of_the_card(project):
    tcl = (project[0] / "top.tcl").read_text()
    for line in (
        "create_ip -vendor xilinx.com -name pcie3_ultrascale -module_name pcie_us",
        f"CONFIG.vendor_id {{{C.PCI_VENDOR:04x}}}",
        f"CONFIG.PF0_DEVICE_ID {{{C.PCI_DEVICE:04x}}}",
        f"CONFIG.PF0_MSIX_CAP_TABLE_OFFSET {{{C.MSIX_TABLE_BASE:08x}}}",
        "CONFIG.axisten_if_width {128_bit}",
    ):
        assert line in tcl
    assert tcl.index("route_design") < tcl.index("a path misses its time")
    assert tcl.index("a path misses its time") < tcl.index("write_bitstream")


ANSWERS = (
    "PF0_MSIX_CAP_TABLE_SIZE 11'h007 PF0_MSIX_CAP_TABLE_OFFSET 29'h00000200"
    " PF0_MSIX_CAP_PBA_OFFSET 29'h00000300 PF0_DEV_CAP_MAX_PAYLOAD_SIZE 3'h2 "
)


@pytest.mark.parametrize(
    "change, said",
    [
        ("", "the project ran to its end"),
        ("PF0_MSIX_CAP_TABLE_OFFSET 29'h00001000", "is 29'h00001000, not 200"),
        ("PF0_DEV_CAP_MAX_PAYLOAD_SIZE 3'h3", "PF0_DEV_CAP_MAX_PAYLOAD_SIZE of the PCIe block"),
        ("SLACK -0.1", "a path misses its time"),
    ],
)
def test_the_tcl_runs_and_stops_at_a_wrong_block(change, said, project, tmp_path):
    folder, _ = project
    tcl = (folder / "top.tcl").read_text() + vivado.FIGURES
    text = run_with_stand_ins(tcl, ANSWERS + change, folder, tmp_path)
    assert said in text and ("ran to its end" in text) == ("ran to its end" in said)


def test_the_debug_module_is_behind_the_jtag_port_of_the_fpga(project):
    assert debug_chains((project[0] / "top.v").read_text()) == [3, 4]


# Netlist ------------------------------------------------------------------------------------------


def test_there_are_no_cells_but_fabric_and_the_vendor_s_blocks_no_latch_and_no_second_driver(made):
    folder, count, *_ = made
    assert {cell: number for cell, number in count.items() if cell in HARD} == HARD
    unknown = [f"black box {cell}" for cell in HARD]
    assert [line for line in xilinx.unknown_cells(count) if line not in unknown] == []
    assert xilinx.latches(folder, count) + xilinx.flipflop_memories(folder) == []
    assert xilinx.drivers(folder) == []


def test_each_bit_of_the_transceiver_is_driven(made):
    """Outputs of a block that go to a slice of a slice go nowhere."""
    assert "has no driver" not in (made[0] / "drivers.log").read_text()


def test_every_crossing_has_a_synchroniser_and_a_constraint(made):
    *_, nets, text = made
    lines, wrong = crossings.report(nets, crossings.Constraints(text))
    assert wrong == []
    for start in (
        "AsyncFIFO              pcie_clk to sys_clk",
        "AsyncFIFO              sys_clk to pcie_clk",
        "AsyncFIFO              rx_clk to sys_clk",
        "AsyncFIFO              sys_clk to tx_clk",
    ):
        assert sum(line.startswith(start) for line in lines) == 1


@pytest.mark.parametrize(
    "line, complaint",
    [
        ("create_clock -name tx_clk", "clock tx_clk has no period"),
        ("create_clock -name clk125_p", "clock sys_clk has no period"),
        ("set_clock_groups .*sys_clk.*pcie_clk", "no set_clock_groups for its clocks"),
    ],
)
def test_without_a_line_of_the_xdc_it_fails(made, line, complaint):
    *_, nets, text = made
    assert any(complaint in problem for problem in problems_without(line, nets, text))


# Number of the part -------------------------------------------------------------------------------


def test_the_number_of_the_part_is_shifted_out_once():
    dut, number = NumberReader(), 0x0123456789ABCDEF01234567
    edges = []

    @passive
    def port():
        """UG570: at a rising edge it loads its number, or shifts it; the lowest bit is shown."""
        held = before = read = shift = 0
        while True:
            clock = yield dut.clock
            if clock and not before:
                edges.append(clock)
                held = number if read else held >> shift
                yield dut.bit.eq(held & 1)
            before, read, shift = clock, (yield dut.read), (yield dut.shift)
            yield

    def main():
        for _ in range(9 * DNA_BITS):
            yield
        assert (yield dut.done)
        assert (yield dut.number) == number

    run_simulation(dut, [main(), port()])
    assert len(edges) == DNA_BITS + 1
