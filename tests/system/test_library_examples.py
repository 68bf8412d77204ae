"""The library's examples run on two simulated cards. tests/system/qemu/test_vfio.py runs the same
in a guest.
"""

# SPDX-License-Identifier: BSD-2-Clause

import subprocess

import pytest
from dibber_cli import paths, profile
from dibber_cli.simulator import Pair

SAID = {
    "put_strided": {"completion: 512 bytes", "notice 7: 512 bytes; the last element is 63"},
    "put_indexed": {
        "completion: 64 bytes",
        "at 3: object 999",
        "at 500: object 0",
        "at 2: object 17",
        "at 700: object 400",
    },
    "messages": {"counted: 4", *(f"10 bytes: message {n}" for n in range(4))},
    "mailbox": {
        "answered: 32 words and the 200000 bytes of the index",
        "asked for 32 words, all answers are right; the other side has closed its mailbox",
    },
}


@pytest.mark.parametrize("name", SAID)
def test_an_example_runs_on_two_cards(name, seed):
    with Pair(profile.load("gen2x4"), seed=seed) as pair:
        done = subprocess.run(
            [paths.BUILD / "lib" / "examples" / name, paths.FIRMWARE, *pair.uris],
            timeout=600,
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.splitlines()) == SAID[name]


def test_each_example_is_run():
    sources = (paths.ROOT / "software" / "lib" / "examples").glob("*.c")
    assert {path.stem for path in sources} == {*SAID, "remote_window"}  # in tests/window
