"""`dibber link` on two link testers, simulated, each behind a pseudo-terminal.

    python tests/boards/test_tester_cable.py FOLDER LinkTester|RingTester

writes that tester's Verilog into the folder, with the ports of wire.py's card.
"""

# SPDX-License-Identifier: BSD-2-Clause

import functools
import json
import pathlib
import sys

import pytest

from tests.boards import wire

BUILDS = wire.ROOT / "build" / "tests"


def generate(folder, design):
    """A process of its own calls this, as that of wire.py."""
    sys.path[:0] = [str(wire.ROOT), str(wire.ROOT / "gateware")]
    import boards.bridged
    import boards.linktest

    boards.bridged.BridgedCard = getattr(boards.linktest, design)
    wire.generate(folder)


@functools.cache
def program(design):
    """The path of the program that simulates two testers and their cable."""
    from tests.gateware.mcp.card import run, verilated

    folder = BUILDS / {"LinkTester": "link_tester", "RingTester": "ring_tester"}[design]
    folder.mkdir(parents=True, exist_ok=True)
    stamp, now = folder / "sources", wire.fingerprint()
    if not stamp.exists() or stamp.read_text() != now:
        run(sys.executable, __file__, folder, design)
        stamp.write_text(now)
    return verilated(
        folder,
        wire.TOP,
        folder / f"{wire.TOP}.f",
        wire.BENCH,
        "-O1",
        (wire.ROOT / "hw" / "sim" / "flash").iterdir(),
    )


@pytest.fixture
def testers(request):
    running = wire.Wire(program(getattr(request, "param", "LinkTester")), 2)
    yield running.uris
    running.close()


def dibber(*words):
    from dibber_cli.main import main

    return main([str(word) for word in words])


def test_bit_errors_are_counted_both_ways_without_a_control_program(testers, capsys):
    assert dibber("link", "prbs", "--json", *testers) == 0
    cards = json.loads(capsys.readouterr().out)["cards"]
    assert [(card["locked"], card["errors"]) for card in cards] == [(True, 0)] * 2 and all(
        card["bits"] for card in cards
    )


@pytest.mark.parametrize("loopback", ["near", "far"])
def test_a_tester_has_the_loopbacks_of_a_card(testers, loopback, capsys):
    assert dibber("link", "prbs", "--json", "--loopback", loopback, *testers) == 0
    assert json.loads(capsys.readouterr().out)["cards"][0]["bits"]


def test_one_tester_alone_hears_itself(testers, capsys):
    assert dibber("link", "prbs", "--loopback", "near", testers[0]) == 0


def test_the_cable_is_judged_and_that_there_are_no_packets_is_said(testers, capsys):
    assert dibber("link", "test", *testers) == 0
    said = capsys.readouterr().out
    assert "round trip" in said and "PRBS31 at card 1" in said and "STOP/GO" not in said
    assert "Good: 0 m, no bit error in" in said and said.rstrip().endswith(
        "are the whole card's to tell."
    )


@pytest.mark.parametrize("testers", ["RingTester"], indirect=True)
def test_two_ring_testers_are_a_ring_of_two_whose_way_round_and_bits_are_measured(testers, capsys):
    assert dibber("link", "test", *testers) == 0
    said = capsys.readouterr().out
    assert "card 1" in said and "up, a ring of 2 nodes" in said and "way round" in said
    assert "Good: 0 m, no bit error in" in said
    assert dibber("link", "prbs", "--json", *testers) == 0
    cards = json.loads(capsys.readouterr().out)["cards"]
    assert [(card["locked"], card["errors"]) for card in cards] == [(True, 0)] * 2


# The file is there, but no image: that it is not for a link tester is said first.
@pytest.mark.parametrize(
    "words",
    [
        ["fw", "load", __file__],
        ["fw", "trace"],
        ["fw", "top", "--once"],
        ["fw", "coredump", "core"],
        ["reset", "--image", __file__],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_what_wants_a_control_program_says_that_there_is_none(testers, words, capsys):
    assert dibber(*words, testers[0]) == 1
    said = capsys.readouterr()
    assert (
        "is a link tester, and has no control program" in said.err
        and "'dibber link test'" in said.err
        and not said.out
    )


def test_the_selftest_of_a_tester_names_what_tests_it(testers, monkeypatch, capsys):
    monkeypatch.setattr("dibber_cli.paths.FIRMWARE", pathlib.Path(__file__))
    assert dibber("selftest", "--json", testers[0]) == 1
    items = json.loads(capsys.readouterr().out)["cards"][0]["items"]
    assert [(item["item"], item["verdict"]) for item in items] == [("identity", "FAIL")]
    assert "a link tester: 'dibber link test'" in items[0]["detail"]


if __name__ == "__main__":
    generate(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2])
