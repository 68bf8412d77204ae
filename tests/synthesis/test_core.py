"""A board's shell and a core synthesized by itself, joined: every pin of the core meets its own,
and crossings are seen through it.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json

import core
import crossings
import flow
import netlist
import pytest
import xilinx

from boards import acorn, vivado
from tests.boards.nocore import NoCore


@pytest.fixture(scope="module")
def joined():
    """Netlist and constraints of the Acorn's link build around NoCore, made in two parts; cells;
    cells of the core.
    """
    folder = flow.fresh(flow.BUILD / "tests" / "joined")
    inside = flow.fresh(folder / "core")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core, "DibberCore", NoCore)
        sources, _ = core.generate(inside, 64, 100e6)
    within = xilinx.synthesize(inside, core.TOP, sources)
    platform = acorn.platform("cle-101")
    shell = folder / "shell"
    sources, _ = vivado.generate(shell, "top", platform, acorn.Link(platform, 100e6, core.CoreBox))
    for name, text in (
        ("pcie_s7.v", xilinx.HERE / "pcie_s7.v"),
        (f"{core.TOP}_box.v", inside / f"{core.TOP}_box.v"),
        ("core.json", inside / "netlist.json"),
    ):
        (shell / name).write_bytes(text.read_bytes())
    count = xilinx.synthesize(shell, "top", sources, xilinx.boxes(1, 64), xilinx.JOIN)
    nets = netlist.Netlist(json.loads((shell / "netlist.json").read_text()), "top")
    return nets, (shell / "top.xdc").read_text(), count, within


def test_no_box_is_left_and_the_core_s_registers_are_there(joined):
    _, _, count, within = joined
    assert within["FDRE"] > 0 and count["FDRE"] > within["FDRE"] and core.TOP not in count
    assert xilinx.unknown_cells(count) == []


def test_what_crosses_goes_through_the_core(joined):
    nets, text, *_ = joined
    lines, wrong = crossings.report(nets, crossings.Constraints(text))
    assert wrong == []
    for start in (
        "AsyncFIFO              pcie_clk to sys_clk",
        "AsyncFIFO              sys_clk to pcie_clk",
        "AsyncFIFO              rx_clk to sys_clk",
        "AsyncFIFO              sys_clk to tx_clk",
    ):
        assert sum(line.startswith(start) for line in lines) == 1


def test_a_clock_that_the_core_does_not_know_is_found_in_it(joined):
    """Were its clock another one, all that goes in and out would cross bare."""
    nets, text, *_ = joined
    register = next(
        name
        for name, cell in nets.cells.items()
        if f"{core.TOP}." in name and cell["type"] == "FDRE"
    )
    clock = next(
        cell["connections"]["C"]
        for cell in nets.cells.values()
        if cell["type"] == "FDRE"
        and cell["connections"]["C"] != nets.cells[register]["connections"]["C"]
    )
    kept = nets.cells[register]["connections"]["C"]
    nets.cells[register]["connections"]["C"] = clock
    try:
        nets.reach.clear()
        _, wrong = crossings.report(nets, crossings.Constraints(text))
    finally:
        nets.cells[register]["connections"]["C"] = kept
        nets.reach.clear()
    assert any("takes it bare" in line for line in wrong)
