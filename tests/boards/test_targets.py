"""Each board's command line, with a building program and programmers that do nothing."""

# SPDX-License-Identifier: BSD-2-Clause

import shlex
import subprocess

import bitstream
import flow
import pytest
from dibber.debug.transport import DebugTransport
from litex.gen import *
from migen import *

from boards import ecpix5, kc705, target, versa_ecp5, vivado

BOARDS = {"ecpix5": ecpix5, "versa_ecp5": versa_ecp5}
RATES = {"card": (65e6, 2.5e9), "link": (35e6, 1.25e9), "ring": (35e6, 1.25e9)}


@pytest.fixture
def calls(monkeypatch):
    """What was built, as (name, seeds, gate, rates), and which commands were run; what is not there
    counts as what its
    manifest says."""
    found = []
    monkeypatch.setattr(target.manifest, "check", lambda file, board: found.append(file.name))
    monkeypatch.setattr(
        target.tools, "load", lambda board, file: found.append(("load", board.name, file.name))
    )
    monkeypatch.setattr(
        target.tools,
        "flash",
        lambda board, file, golden: found.append(("flash", board.name, file.name, golden)),
    )
    monkeypatch.setattr(
        bitstream,
        "build",
        lambda name, platform, made, seeds, gate, say: found.append((name, seeds, gate, made)),
    )
    return found


def run(board, monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["board", *arguments])
    target.main(board, lambda: "platform", lambda platform, design, *rates: rates, RATES)


@pytest.mark.parametrize("board", BOARDS)
def test_build_load_flash_in_that_order(board, calls, monkeypatch):
    run(board, monkeypatch, "--build", "--load", "--flash", "--seed", "3")
    svf, bit = f"dibber_{board}.svf", f"dibber_{board}.bit"
    assert calls == [
        (board, [3], False, (65e6, 2.5e9)),
        svf,
        ("load", board, svf),
        bit,
        ("flash", board, bit, False),
    ]


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("design", ["link", "ring"])
def test_each_link_tester_is_a_bitstream_of_its_own(board, design, calls, monkeypatch):
    run(board, monkeypatch, "--build", "--gate", "--design", design)
    assert calls == [(f"{board}_{design}", [1], True, (35e6, 1.25e9))]


@pytest.mark.parametrize("board", BOARDS)
def test_rates_may_be_others(board, calls, monkeypatch):
    run(board, monkeypatch, "--build", "--linerate", "1.25e9")
    run(board, monkeypatch, "--build", "--design", "link", "--sys-clk-freq", "40e6")
    assert calls == [
        (board, [1], False, (65e6, 1.25e9)),
        (f"{board}_link", [1], False, (40e6, 1.25e9)),
    ]


@pytest.mark.parametrize(
    "rates, why", [((64e6, 3e9), "No config found"), ((62.5e6, 2.5e9), "too slow for 2.5 Gb/s")]
)
@pytest.mark.parametrize("board", BOARDS)
def test_rates_that_cannot_be_are_refused(board, rates, why, calls, monkeypatch):
    monkeypatch.setattr("sys.argv", ["board", "--build"])
    with pytest.raises(SystemExit, match=why):
        target.main(board, BOARDS[board].platform, BOARDS[board].Board, {"link": rates})
    assert not calls


@pytest.mark.parametrize("board, design", [("ecpix5", "link"), ("versa_ecp5", "ring")])
def test_the_design_has_the_pins_and_constraints_of_every_clock(board, design, tmp_path):
    platform = BOARDS[board].platform()
    made = BOARDS[board].Board(platform, target.DESIGNS[design], 65e6, 2.5e9)
    sources, _ = bitstream.generate(tmp_path / "generated", "top", platform, made)
    constraints = (tmp_path / "generated" / "top.lpf").read_text()
    assert "top.v" in sources
    # nextpnr derives what a PLL makes; what a transceiver makes it has to be told.
    for clock in set(made.clocks) - {"sys_clk"}:
        assert f'FREQUENCY PORT "{clock}" {made.clocks[clock] / 1e6} MHz;' in constraints
    verilog = (tmp_path / "generated" / "top.v").read_text()
    for clock in made.clocks:
        assert f'(* keep = "true" *)\nwire          {clock};' in verilog


class Debugged(LiteXModule):
    """In place of a card, which takes a minute to elaborate: what a debugger scans."""

    def __init__(self, platform, uart, serial, sys_clk_freq, board, flash):
        self.debug = DebugTransport()
        self.scan = self.debug.scan
        self.link_up = Signal()


@pytest.mark.parametrize("board", BOARDS)
def test_what_a_debugger_scans_is_behind_the_jtag_port_of_the_fpga(board, tmp_path):
    platform = BOARDS[board].platform()
    bitstream.generate(
        tmp_path / "generated",
        "top",
        platform,
        BOARDS[board].Board(platform, Debugged, 65e6, 2.5e9),
    )
    assert "JTAGG JTAGG(" in (tmp_path / "generated" / "top.v").read_text()


# make bitstream -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words, said",
    [
        ("BOARD=ecpix5", "ran boards/ecpix5.py --build"),
        ("BOARD=ecpix5 SEED='1 2 3 4'", "ran boards/ecpix5.py --build --seed 1 2 3 4"),
        (
            "BOARD=versa_ecp5 SEED=3 DESIGN=link",
            "ran boards/versa_ecp5.py --build --design link --seed 3",
        ),
        ("BOARD=acorn VARIANT=cle-101", "ran boards/acorn.py --build --variant cle-101"),
        ("BOARD=xilinx", "bitstream: there is no board 'xilinx'"),
        ("BOARD=toaster", "bitstream: there is no board 'toaster'"),
    ],
)
def test_make_gives_a_board_what_was_asked_for(words, said, tmp_path, monkeypatch):
    for name in ("BOARD", "SEED", "VARIANT", "DESIGN", "MAKEFLAGS", "MAKELEVEL"):
        monkeypatch.delenv(name, raising=False)
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "ran $*"\n')
    python.chmod(0o755)
    done = subprocess.run(
        [
            "make",
            "--no-print-directory",
            "--old-file",
            "install",
            "bitstream",
            f"PYTHON={python}",
            *shlex.split(words),
        ],
        cwd=flow.ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.stdout.startswith(said) and done.returncode == (0 if said.startswith("ran ") else 2)


@pytest.mark.parametrize(
    "main, words, said",
    [
        (
            lambda: vivado.main(kc705.BOARD, None, {"card": None}, 100e6),
            ["--seed", "2"],
            "unrecognized arguments: --seed",
        ),
        (
            lambda: vivado.main(kc705.BOARD, None, {"card": None}, 100e6),
            ["--variant", "cle-101"],
            "kc705 has no variants",
        ),
        (
            lambda: target.main("ecpix5", None, None, RATES),
            ["--variant", "cle-101"],
            "unrecognized arguments: --variant",
        ),
    ],
)
def test_a_board_without_seeds_or_variants_says_so(main, words, said, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["board", "--build", *words])
    with pytest.raises(SystemExit):
        main()
    assert said in capsys.readouterr().err
