"""`dibber flash URI` on a simulated card, through the gateware to the simulated flash."""

# SPDX-License-Identifier: BSD-2-Clause

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time

import libdibber
import pytest
from dibber_cli import profile
from dibber_cli.flash import board as boards
from dibber_cli.flash import images
from dibber_cli.main import main
from dibber_cli.simulator import Pair as Simulator

BOARD = boards.find("sim")


@pytest.fixture(params=["gen2x1", "gen2x4"])
def uri(monkeypatch, tmp_path, request):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with Simulator(profile.load(request.param), participants=0) as simulator:
        yield simulator.uris[0]


def made(folder, seed, length):
    """A folder as `make bitstream` leaves it, and its bitstream."""
    content = b"Part\0" + images.PREAMBLE + random.Random(seed).randbytes(length)
    folder.mkdir()
    (folder / "dibber_sim.bit").write_bytes(content)
    (folder / "manifest.json").write_text(
        json.dumps(
            {
                "board": "sim",
                "part": BOARD.part,
                "clocks": [],
                "files": {"dibber_sim.bit": hashlib.sha256(content).hexdigest()},
            }
        )
    )
    return str(folder), content


def test_a_card_that_is_up_is_flashed_and_a_run_that_is_killed_leaves_the_golden_image(
    uri, tmp_path, capsys
):
    golden, kept = made(tmp_path / "golden", 1, 300)
    assert main(["flash", "--golden", uri, golden]) == 0
    user, content = made(tmp_path / "user", 2, 2500)
    program = subprocess.Popen(
        [sys.executable, "-P", "-m", "dibber_cli", "flash", uri, user],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )
    with libdibber.Card(uri, observe=True) as card:
        # Beside it: the present part of the second page.
        while card.flash_read(256, 4) == b"\xff" * 4 and program.poll() is None:
            time.sleep(0.01)
        program.send_signal(signal.SIGKILL)
        killed = program.wait() == -signal.SIGKILL
        card.flash_info()
        assert card.flash_read(BOARD.golden, len(kept)) == kept
        assert images.jumps_to(card.flash_read(BOARD.flash - 256, 256)) == BOARD.golden
        assert not killed or card.flash_read(0, 256) == b"\xff" * 256
    assert main(["flash", "--json", uri, user]) == 0
    assert json.loads(capsys.readouterr().out.split("\n", 2)[2])["address"] == 0
    with libdibber.Card(uri, observe=True) as card:
        assert card.board() == "sim"
        assert (
            card.flash_read(0, len(content)) == content
            and card.flash_read(BOARD.golden, len(kept)) == kept
        )
        with pytest.raises(libdibber.DibberError, match="outside"):
            card.flash_erase(BOARD.golden, 65536)
