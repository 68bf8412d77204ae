"""A card without work changes little state: what scans rests, and the control program waits."""

# SPDX-License-Identifier: BSD-2-Clause

import json
import subprocess

import pytest
from dibber_cli import paths

from tests.system.pair import Pair
from tests.system.test_changed_only import program

PROFILE = "gen2x4"
REST = 400_000  # ns, eight ticks of the control program's timer
MARGIN = 2_000  # cycles in which the programs of the test still move
# Variables of the card's Verilog that change in a cycle, on average.
MOST = 40


def rest(side):
    """Wait for nothing; the card's clock before and after, in cycles."""
    before = side.card.read_register("CYCLES_LOW")
    side.endpoint.wait(REST)
    return before, side.card.read_register("CYCLES_LOW")


@pytest.fixture(scope="module")
def changes(request, tmp_path_factory):
    """What dibber-replay --changes says of a card at rest."""
    seed = request.config.getoption("--seed")
    folder = tmp_path_factory.mktemp("pins")
    with Pair(PROFILE, seed, ["--record", str(folder), "--threads", "1"]) as pair:
        (before, after), _ = pair.together((rest,), (rest,))
    begin, end = before + MARGIN, after - MARGIN
    command = [program(PROFILE, "--replay"), "--changes", paths.PROFILES / f"{PROFILE}.toml"]
    command += [folder / "card0.pins", str(begin), str(end)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_few_variables_change_in_a_cycle_of_a_card_at_rest(changes):
    assert changes["cycles"] > 40_000
    shares = {name: count / changes["cycles"] for name, count in changes["changes"].items()}
    busiest = sorted(shares, key=shares.get, reverse=True)
    most = {name: round(shares[name], 3) for name in busiest[:40]}
    assert sum(shares.values()) < MOST, most
    # The comparison sees what changes: the clock counts in every cycle.
    assert max(shares.values()) > 0.999
