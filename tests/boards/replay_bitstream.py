"""OpenOCD replays the SVF of a bitstream that was made, into a model of its part, and what arrives
is the .bit file beside it.

    BITSTREAM=out/bitstream/ecpix5_link pytest tests/boards/replay_bitstream.py

`make test-bitstream` runs it: its name keeps it out of the tests that need no bitstream.
"""

# SPDX-License-Identifier: BSD-2-Clause

import os
import pathlib

from dibber_cli.flash import manifest
from dibber_cli.flash.commands import bitstream, board_of

from tests.boards.test_svf import arrived


def test_the_bits_that_arrive_are_the_bitstream_that_was_made():
    file = bitstream(pathlib.Path(os.environ["BITSTREAM"]).resolve(), golden=False)
    made = manifest.check(file, None)
    board = board_of(made["board"])
    svf = file.with_suffix(".svf")
    for image in (file, svf):
        manifest.check(image, board)
    assert board.part in board.config.read_text().upper()
    came = arrived(board.part, svf)
    # The file may begin with text for people; the device synchronises on the preamble.
    assert came and file.read_bytes().endswith(came)
    assert b"\xff\xff\xbd\xb3" in came[:64]
    print(f"{svf.name}: {svf.stat().st_size} bytes, {8 * len(came)} bits arrived")
