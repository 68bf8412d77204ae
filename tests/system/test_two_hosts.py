"""The examples in two terminals: two programs that share nothing but TCP and their cards."""

# SPDX-License-Identifier: BSD-2-Clause

import re
import subprocess
import sys
from pathlib import Path

import pytest
from dibber_cli import profile
from dibber_cli.simulator import Pair
from dibber_cli.timeline import trace

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "two_hosts"
BUILT = ROOT / "build" / "lib" / "examples" / "two_hosts"

# The languages of the program that listens and of the one that connects.
LANGUAGES = [("Python", "Python"), ("C", "C"), ("C", "Python"), ("Python", "C")]


def program(name, language):
    if language == "C":
        return [BUILT / name]
    return [sys.executable, "-P", EXAMPLES / f"{name}.py"]


def both(name, pair, port, languages=LANGUAGES[0]):
    """Run the example on both cards: what each printed."""
    words = (("listen", port), ("connect", f"localhost:{port}"))
    programs = [
        subprocess.Popen(
            [*program(name, language), way, str(where), uri],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env={"PYTHONPATH": str(EXAMPLES), "DIBBER_TOKEN": "word"},
        )
        for (way, where), uri, language in zip(words, pair.uris, languages)
    ]
    said = [one.communicate(timeout=240)[0] for one in programs]
    assert [one.returncode for one in programs] == [0, 0], said
    return said


@pytest.fixture
def pair():
    with Pair(profile.load("gen2x4")) as found:
        yield found


@pytest.mark.parametrize("languages", LANGUAGES, ids="-".join)
def test_a_column_is_put_into_the_other_hosts_matrix(pair, port, languages):
    listens, connects = both("put_strided", pair, port, languages)
    assert listens == "notice 7: column 5 ends with 63\n" and "on its way" in connects


@pytest.mark.parametrize("languages", LANGUAGES[:2], ids="-".join)
def test_a_ping_goes_to_and_fro(pair, port, languages):
    listens, _ = both("pingpong", pair, port, languages)
    found = re.match(r"([\d.]+) µs half a round trip, simulated time\n", listens)
    assert found and 0.5 < float(found[1]) < 5


@pytest.mark.parametrize("languages", [LANGUAGES[0], LANGUAGES[2]], ids="-".join)
def test_a_matrix_is_transposed_over_two_hosts(pair, port, languages):
    assert both("transpose", pair, port, languages) == [
        f"node {n} has its half of the transposed matrix\n" for n in range(2)
    ]


@pytest.mark.parametrize("languages", LANGUAGES[:2], ids="-".join)
def test_two_runs_take_the_same_simulated_time(port, tmp_path, languages):
    files = []
    for n in range(2):
        path = tmp_path / f"{n}.json"
        options = ["--timeline", str(path)]
        with Pair(profile.load("gen2x4"), options=options) as pair:
            both("transpose", pair, port, languages)
        files.append([e for e in trace.read(str(path)) if e.name in ("DEPOSIT", "wait")])
    assert len(files[0]) > 10 and files[0] == files[1]
