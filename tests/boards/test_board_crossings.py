"""Every clock crossing of the PCIe boards, in the netlist of Yosys. The core is left out: it has
one clock, and takes minutes.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json
import re

import crossings
import flow
import netlist
import pytest
import xilinx

from boards import acorn, kc705, stlv7325, vivado
from tests.boards.nocore import NoCore

# name: board file, design, arguments of the platform, lanes, bits, hard blocks
DESIGNS = {
    "acorn_link": (
        acorn,
        "Link",
        {"variant": "cle-101"},
        1,
        64,
        {"pcie_s7": 1, "GTPE2_CHANNEL": 1, "GTPE2_COMMON": 1, "BSCANE2": 2, "STARTUPE2": 1},
    ),
    "kc705": (
        kc705,
        "Card",
        {},
        4,
        128,
        {"pcie_s7": 1, "GTXE2_CHANNEL": 1, "BSCANE2": 2, "STARTUPE2": 1},
    ),
}
PAIR = (stlv7325, "Pair", {}, 4, 128, {"pcie_s7": 1, "GTXE2_CHANNEL": 2, "BSCANE2": 2})


def synthesized(design, board, name, arguments, lanes, bits, hard):
    """Folder, cells, what is expected of them; netlist and constraints."""
    folder = flow.BUILD / "tests" / f"shell-{design}"
    platform = board.platform(**arguments)
    sources, _ = vivado.generate(
        folder, "top", platform, getattr(board, name)(platform, 100e6, NoCore)
    )
    (folder / "pcie_s7.v").write_bytes((xilinx.HERE / "pcie_s7.v").read_bytes())
    count = xilinx.synthesize(
        folder, "top", sources, f"read_verilog -lib {xilinx.macros(lanes, bits)} pcie_s7.v;"
    )
    return (
        folder,
        count,
        hard,
        netlist.Netlist(json.loads((folder / "netlist.json").read_text()), "top"),
        (folder / "top.xdc").read_text(),
    )


def problems_without(line, nets, text):
    """What the check of crossings says of a netlist without a line of its XDC.

    line : regular expression of the line's begin
    text : of the whole XDC
    """
    without = re.sub(f"^{line}.*$", "", text, flags=re.M)
    assert without != text
    _, wrong = crossings.report(nets, crossings.Constraints(without))
    return wrong


@pytest.fixture(scope="module", params=DESIGNS)
def design(request):
    return synthesized(request.param, *DESIGNS[request.param])


def test_there_are_no_cells_but_fabric_and_the_vendor_s_blocks_no_latch_and_no_second_driver(
    design,
):
    folder, count, hard, _, _ = design
    assert {cell: number for cell, number in count.items() if cell in xilinx.HARD} == hard
    assert (
        xilinx.unknown_cells(count) + xilinx.latches(folder, count) + xilinx.drivers(folder) == []
    )


def test_every_crossing_has_a_synchroniser_and_a_constraint(design):
    *_, nets, text = design
    lines, wrong = crossings.report(nets, crossings.Constraints(text))
    assert wrong == []
    for start in (
        "AsyncFIFO              pcie_clk to sys_clk",
        "AsyncFIFO              sys_clk to pcie_clk",
        "AsyncFIFO              rx_clk to sys_clk",
        "AsyncFIFO              sys_clk to tx_clk",
    ):
        assert sum(line.startswith(start) for line in lines) == 1
    assert sum(line.startswith("WAIVED") for line in lines) == 1


def test_what_the_flash_answers_is_sampled(design):
    *_, nets, text = design
    lines, _ = crossings.report(nets, crossings.Constraints(text))
    assert [line for line in lines if "miso" in line] == [
        "MultiReg               asynchronous to sys_clk: spiflash_miso"
    ]


def test_the_debugger_s_port_is_sampled_and_the_transport_is_behind_it(design):
    *_, nets, text = design
    lines, _ = crossings.report(nets, crossings.Constraints(text))
    sampled = {
        line.rpartition("BSCANE2.")[2]
        for line in lines
        if line.startswith("MultiReg               asynchronous to sys_clk: BSCANE2")
    }
    assert sampled == {"TCK", "TDI", "CAPTURE", "SHIFT", "UPDATE", "SEL, 2 bits"}
    assert (
        sum(
            bool(re.fullmatch(r"BSCANE2 +sys_clk to asynchronous: .*shifted, 2 bits", line))
            for line in lines
        )
        == 1
    )


@pytest.mark.parametrize(
    "line, complaint",
    [
        ("create_clock -name tx_clk", "clock tx_clk has no period"),
        ("create_clock -name clk200_p", "clock sys_clk has no period"),
        ("create_clock -name pcie_x[14]_clk_p", "clk_p has no period"),
        ("set_false_path .*BSCANE2", "no line of the XDC for BSCANE2"),
        ("set_clock_groups .*sys_clk.*pcie_clk", "no set_clock_groups for its clocks"),
    ],
)
def test_without_a_line_of_the_xdc_it_fails(design, line, complaint):
    *_, nets, text = design
    assert any(complaint in problem for problem in problems_without(line, nets, text))


def test_both_links_of_a_pair_of_rings_cross_to_the_card_and_nowhere_else():
    folder, count, hard, nets, text = synthesized("stlv7325_pair", *PAIR)
    assert {cell: number for cell, number in count.items() if cell in xilinx.HARD} == hard
    assert (
        xilinx.unknown_cells(count) + xilinx.latches(folder, count) + xilinx.drivers(folder) == []
    )
    lines, wrong = crossings.report(nets, crossings.Constraints(text))
    assert wrong == []
    fifos = [line.split(maxsplit=1)[1] for line in lines if line.startswith("AsyncFIFO")]
    expected = {"pcie_clk to sys_clk", "sys_clk to pcie_clk"}
    for n in range(2):
        expected |= {f"phy{n}_rx_clk to sys_clk", f"sys_clk to phy{n}_tx_clk"}
    assert {fifo.split(":")[0] for fifo in fifos} == expected and len(fifos) == 6
    # Without the lines for one of the transceivers, that one alone is named.
    wrong = problems_without("set_clock_groups .*phy1_rx_clk", nets, text)
    assert wrong and all("phy1_rx_clk" in problem for problem in wrong)
