"""The card that computes only what changed drives the same pins as Verilator's own code does.

A run is recorded, cycle by cycle, and its inputs are given to a card that computes all logic in
each cycle. The inputs have all that the simulator has: PCIe, the cable, resets, a loss of power,
and JTAG.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json
import random
import socket
import subprocess
import sys

import pytest
from dibber.interface.description import STATUS
from dibber_cli import paths

from tests.system.pair import Pair, Side

SIZE = 1 << 14
STEPS = 3000  # of JTAG
STAY = 20_000  # ns


def program(name, *options):
    """The program that build.py makes for a profile; built if it is not up to date."""
    script = paths.ROOT / "hw" / "sim" / "build.py"
    command = [sys.executable, script, "--profile", name, *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout.split()[-1]


def replay(name, pins, *options):
    """Give recorded pins to a card: the finished process."""
    command = [program(name, "--replay", *options), paths.PROFILES / f"{name}.toml", pins]
    return subprocess.run(command, capture_output=True, text=True)


def put_blocks(side, key):
    """64 blocks of 8 bytes, 24 bytes apart, to places 40 bytes apart."""
    own = side.regions["source"].key
    return side.put_strided((own, 8, 0, ((64, 24),)), (key, 8, 8, ((64, 40),)))


def put_inline(side, key):
    side.endpoint.put_inline(bytes(range(16)), key, 4096, node=1)
    return side.completion()


def move_jtag(path, seed):
    """Levels of TCK, TMS and TDI without any order, and what TDO answers."""
    generator = random.Random(seed)
    steps = "".join(generator.choice("01234567") + "R" for _ in range(STEPS))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.connect(str(path))
        line.sendall(steps.encode())
        answers = b""
        while len(answers) < STEPS and (received := line.recv(4096)):
            answers += received
    return answers


def begin_again(side, over):
    """The card loses its power, and its host loads the control program again."""
    side.unregister("source")
    side.endpoint.close()
    side.card.close()
    side.__init__(side.uri, side.node)
    side.register("source", SIZE)
    side.fill("source", 2)
    over.touch()


def stay(side, over):
    """Time goes on for a newcomer only while somebody is there."""
    while not over.exists():
        side.endpoint.wait(STAY)


@pytest.fixture(scope="module", params=["gen2x4", "gen2x1"])
def recording(request, tmp_path_factory):
    """A profile's name, and the folder with the pins of both cards."""
    seed = request.config.getoption("--seed")
    folder = tmp_path_factory.mktemp("pins")
    options = ["--record", str(folder), "--jtag", "--reset-takes-power", "--threads", "1"]
    with Pair(request.param, seed, options) as pair:
        pair.first(Side.register, "source", SIZE)
        key = pair.second(Side.register, "target", SIZE)
        pair.first(Side.fill, "source", 1)
        assert pair.first(put_blocks, key) == STATUS.OK
        assert pair.first(put_inline, key) == STATUS.OK
        answers = move_jtag(pair.simulator.directory / "card0.jtag", seed)
        assert set(answers) == set(b"01"), "TDO never moved"
        over = folder / "over"
        pair.together((begin_again, over), (stay, over))
        assert pair.first(put_blocks, key) == STATUS.OK
    return request.param, folder


@pytest.mark.parametrize("card", [0, 1])
def test_all_outputs_are_those_of_verilators_own_code_in_each_cycle(recording, card):
    name, folder = recording
    done = replay(name, folder / f"card{card}.pins", "--plain", "--unoptimised")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["cycles"] > 50_000


def test_a_replay_repeats_the_run(recording):
    name, folder = recording
    done = replay(name, folder / "card0.pins")
    assert done.returncode == 0, done.stderr


def test_an_output_that_differs_is_named_with_its_cycle(recording, tmp_path):
    """The comparison can fail: one bit of one recorded output is turned."""
    name, folder = recording
    pins = bytearray((folder / "card0.pins").read_bytes())
    head = 24
    size = int.from_bytes(pins[8:12], "little")
    # The end of a PinsCycle: four words of pcie_tx.dat, then jtag_tdo in a word of its own.
    data = size - 20
    for cycle in range(16, 2000):
        pins[head + cycle * size + data] ^= 1
    broken = tmp_path / "card0.pins"
    broken.write_bytes(pins)
    done = replay(name, broken)
    assert done.returncode == 1
    assert "the output pcie_tx_dat is not as recorded" in done.stderr


def test_a_file_that_is_no_recording_is_refused(recording, tmp_path):
    name, folder = recording
    short = tmp_path / "short.pins"
    short.write_bytes((folder / "card0.pins").read_bytes()[:1000])
    assert "ends within a cycle" in replay(name, short).stderr
    other = tmp_path / "other.pins"
    other.write_bytes(b"no pins at all, but long enough for a head")
    assert "not recorded by this build" in replay(name, other).stderr
