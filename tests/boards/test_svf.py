# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""OpenOCD replays an SVF of ecppack into a model of the ECP5's JTAG port, and what arrives is the bitstream."""

import subprocess

import pytest

import flow

from dibber_cli.flash.board import FOLDER as OPENOCD
from tap import READ_ID, Bitbang, ECP5TAP

IDCODES = {"LFE5UM5G-85F": 0x81113043, "LFE5UM5G-45F": 0x81112043}


@pytest.fixture(scope="module", params=IDCODES)
def part(request):
    return request.param


@pytest.fixture(scope="module")
def packed(part):
    """A bitstream and its SVF of an empty design, in the project's build folder: the tools see no other."""
    folder = flow.fresh(flow.ROOT/"build"/"tests"/"svf"/part)
    (folder/"empty.config").write_text(f".device {part}\n")
    flow.run(["yowasp-ecppack", "--compress", "--input", "empty.config", "--bit", "empty.bit", "--svf", "empty.svf"],
        folder, "ecppack.log")
    return folder/"empty.bit", folder/"empty.svf"


def replay(part, svf, idcode):
    """OpenOCD's result and the TAP that it met."""
    tap    = ECP5TAP(idcode)
    server = Bitbang(tap)
    server.start()
    result = subprocess.run(["openocd", "-c", f"adapter driver remote_bitbang; remote_bitbang host localhost;"
        f" remote_bitbang port {server.port}", "-f", str(OPENOCD/f"{part.lower()}.cfg"), "-c",
        f"init; check_part; svf -quiet {svf}; exit"], capture_output=True, text=True, timeout=600)
    server.join(600)
    return result, tap


def test_the_bits_that_arrive_are_the_bitstream(part, packed):
    bitstream, svf = packed
    result, tap    = replay(part, svf, IDCODES[part])
    assert result.returncode == 0, result.stderr
    arrived = int(bytes(tap.bits), 2).to_bytes(len(tap.bits)//8, "big")
    # The file begins with text for people; the device synchronises on the preamble.
    content = bitstream.read_bytes()
    assert arrived and content.endswith(arrived)
    assert b"\xff\xff\xbd\xb3" in arrived[:64]


def test_another_part_is_refused_before_a_bit_is_sent(part, packed):
    result, tap = replay(part, packed[1], IDCODES[part] ^ 0x1000)
    assert result.returncode != 0 and "the part at the board has IDCODE" in result.stderr
    assert not tap.bits and set(tap.instructions) <= {READ_ID, 0xff}  # and BYPASS


@pytest.mark.parametrize("board", ["ecpix5", "versa_ecp5"])
def test_the_board_s_configuration_parses_and_finds_its_part(board):
    result = subprocess.run(["openocd", "-f", str(OPENOCD/f"{board}.cfg"), "-c", "echo [jtag names]; shutdown"],
        capture_output=True, text=True, timeout=600)
    assert "ecp5.tap" in result.stderr and result.returncode == 0, result.stderr
