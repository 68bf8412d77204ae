"""The examples in two terminals: two programs that share nothing but TCP and their cards."""

# SPDX-License-Identifier: BSD-2-Clause

import re
import subprocess
import sys
from pathlib import Path

import pytest
from dibber_cli import profile
from dibber_cli.simulator import Pair

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "two_hosts"


def both(name, pair, port):
    """Run the example on both cards: what each printed."""
    words = (("listen", port), ("connect", f"localhost:{port}"))
    programs = [
        subprocess.Popen(
            [sys.executable, "-P", EXAMPLES / f"{name}.py", way, str(where), uri],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=EXAMPLES,
            env={"PYTHONPATH": str(EXAMPLES), "DIBBER_TOKEN": "word"},
        )
        for (way, where), uri in zip(words, pair.uris)
    ]
    said = [program.communicate(timeout=240)[0] for program in programs]
    assert [program.returncode for program in programs] == [0, 0], said
    return said


@pytest.fixture
def pair():
    with Pair(profile.load("gen2x4")) as found:
        yield found


def test_a_column_is_put_into_the_other_hosts_matrix(pair, port):
    listens, connects = both("put_strided", pair, port)
    assert listens == "notice 7: column 5 ends with 63\n" and "on its way" in connects


def test_a_ping_goes_to_and_fro(pair, port):
    listens, _ = both("pingpong", pair, port)
    found = re.match(r"([\d.]+) µs half a round trip, simulated time\n", listens)
    assert found and 0.5 < float(found[1]) < 5


def test_a_matrix_is_transposed_over_two_hosts(pair, port):
    assert both("transpose", pair, port) == [
        f"node {n} has its half of the transposed matrix\n" for n in range(2)
    ]
