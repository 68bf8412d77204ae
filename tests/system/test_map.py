"""`dibber map` of a simulated pair."""

# SPDX-License-Identifier: BSD-2-Clause

import json
import subprocess

from dibber_cli import paths


def dibber(*words):
    return subprocess.run(
        [paths.ROOT / "build" / "venv" / "bin" / "dibber", *words],
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_the_pair_is_mapped_and_its_routes_are_entered():
    done = dibber("map", "--json")
    assert done.returncode == 0, done.stderr
    cards = json.loads(done.stdout)
    for own, card in enumerate(cards):
        assert (card["own"], card["hosts"], card["switches"]) == (own, [0, 1], [])
        assert card["uplinks"] == [{"kind": "host", "number": 1 - own}]
        assert [(r["node"], r["routes"], r["current"]) for r in card["routes"]] == [
            (1 - own, [[], None, None, None], 0)
        ]


def test_looking_enters_nothing_and_says_so_in_words():
    done = dibber("map", "--look")
    assert done.returncode == 0, done.stderr
    assert (
        "node 0 reaches node 1 by a direct cable, 1 scout\n" in done.stdout
        and "changes" not in done.stdout
    )
