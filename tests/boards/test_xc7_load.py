"""OpenOCD loads a .bit file into a model of a 7-series part's JTAG port by the configurations of
the PCIe boards.
"""

# SPDX-License-Identifier: BSD-2-Clause

import random
import subprocess

import pytest
from dibber_cli.flash.board import FOLDER as OPENOCD

from tests.boards.tap import XC7_READ_ID, XC7TAP, Bitbang

# IDCODEs without their revision: UG470, table 1-1; UG570, table 1-4.
IDCODES = {
    "acorn_cle-101": 0x03631093,
    "acorn_cle-215": 0x03636093,
    "kc705": 0x03651093,
    "kcu105": 0x03822093,
    "stlv7325": 0x03651093,
    "vc707": 0x03687093,
}
REVISION = 0x1 << 28


def bit_file(content):
    """Xilinx' header of fields a to d, text with a length before it, and e, the bitstream."""
    text = b"".join(
        name + len(value).to_bytes(2, "big") + value
        for name, value in [
            (b"a", b"top;UserID=0XFFFFFFFF\0"),
            (b"b", b"7k325tffg900\0"),
            (b"c", b"2026/01/01\0"),
            (b"d", b"00:00:00\0"),
        ]
    )
    magic = bytes.fromhex("0009 0ff00ff00ff00ff000 0001")
    return magic + text + b"e" + len(content).to_bytes(4, "big") + content


def load(board, idcode, file):
    """OpenOCD's result and the TAP that it met: the part's configuration, behind an adapter of the
    simulation.
    """
    tap = XC7TAP(idcode)
    server = Bitbang(tap)
    server.start()
    result = subprocess.run(
        [
            "openocd",
            "-c",
            f"adapter driver remote_bitbang; remote_bitbang host localhost;"
            f" remote_bitbang port {server.port}; set PART 0x{IDCODES[board]:08x}",
            "-f",
            OPENOCD / "xc7.cfg",
            "-c",
            f"init; check_part; pld load 0 {file}; exit",
        ],
        capture_output=True,
        text=True,
        timeout=600,
    )
    server.join(600)
    return result, tap


@pytest.fixture
def content(seed):
    return random.Random(seed).randbytes(4096)


def test_the_bits_that_arrive_are_the_file_s(content, tmp_path):
    file = tmp_path / "small.bit"
    file.write_bytes(bit_file(content))
    result, tap = load("kc705", IDCODES["kc705"] | REVISION, file)
    assert result.returncode == 0, result.stderr
    assert content in int(bytes(tap.bits), 2).to_bytes((len(tap.bits) + 7) // 8, "big")


def test_another_part_is_refused_before_a_bit_is_sent(content, tmp_path):
    file = tmp_path / "small.bit"
    file.write_bytes(bit_file(content))
    result, tap = load("kc705", IDCODES["acorn_cle-101"] | REVISION, file)
    assert result.returncode != 0 and "the part at the board has IDCODE 0x13631093" in result.stderr
    assert not tap.bits and set(tap.instructions) <= {XC7_READ_ID, 0x3F}  # and BYPASS


@pytest.mark.parametrize("board", IDCODES)
def test_the_board_s_configuration_parses_and_names_its_part(board):
    result = subprocess.run(
        [
            "openocd",
            "-f",
            OPENOCD / f"{board}.cfg",
            "-c",
            "echo [jtag names]; echo $PART; shutdown",
        ],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, result.stderr
    assert "xc7.tap" in result.stderr and f"0x{IDCODES[board]:08x}" in result.stderr
