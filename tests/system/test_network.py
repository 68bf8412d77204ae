"""Real cards behind real switches, and other networks than a pair."""

# SPDX-License-Identifier: BSD-2-Clause

import shutil

import numpy as np
import pytest
from dibber.interface.description import STATUS
from dibber_cli import paths, profile
from dibber_cli.errors import SimulatorError
from dibber_cli.simulator import Network

from tests.system.network import opened, put_blocks, put_word, register, wait_notice

ROUNDS = 8


def latency(network, keys, source=0, target=1):
    """Nanoseconds from the call of a put of 8 bytes to its notice in the other program, at best."""
    found = []
    for number in range(ROUNDS):
        word = bytes([number + 1] * 8)
        answers = network.on({source: put_word(target, keys[target], word), target: wait_notice})
        begin, status = answers[source]
        assert status == STATUS.OK
        found.append((answers[target] - begin) / 1000)
        assert network.on({target: lambda side: bytes(side.memory[:8])})[target] == word
    return min(found)


def measured(shape, options=()):
    """Maps and latency of two cards at the ends of a topology."""
    with opened(shape, options=options) as network:
        maps = network.map()
        keys = network.together(register(4096))
        return maps, latency(network, keys)


def test_two_cards_find_each_other_through_a_switch_and_a_word_takes_260_ns_more(capsys):
    (direct, _), near = measured("pair")
    (through, other), far = measured("line:1")
    assert direct["switches"] == [] and direct["hosts"] == [0, 1]
    assert [entry["ports"] for entry in through["switches"]] == [4]
    assert through["hosts"] == other["hosts"] == [0, 1]
    assert through["routes"][0]["routes"][0] == [1] and other["routes"][0]["routes"][0] == [3]
    with capsys.disabled():
        print(f"\n8-byte put: {near:.0f} ns back to back, {far:.0f} ns through a switch")
    assert 160 < far - near <= 260


def test_a_run_through_a_switch_does_not_depend_on_the_number_of_threads():
    def run(threads):
        with opened("line:1", options=("--threads", threads, "--ber", "1e-6")) as network:
            network.map()
            keys = network.together(register(4096))
            taken = latency(network, keys)
        statistics = network.statistics
        return taken, statistics["cycles"], statistics["cards"], statistics["cables"]

    assert run(1) == run(2)


OFF_US, ON_US = 2000, 2600
HALF = 1 << 14


@pytest.mark.fault
@pytest.mark.parametrize(
    "away, back", [("off switch0", "on switch0"), ("pull cable1", "plug cable1")]
)
def test_puts_are_late_and_whole_while_a_switch_or_cable_is_away(away, back, seed):
    """Three cards put in a circle. The replay of the cards carries the puts over."""
    options = ("--at", f"{OFF_US} {away}", "--at", f"{ON_US} {back}")
    with opened("star:3", seed=seed, options=options) as network:
        network.map()
        keys = network.together(register(2 * HALF))

        def fill(side):
            random = np.random.default_rng((seed, side.node))
            side.memory[:HALF] = random.integers(0, 256, HALF, np.uint8)
            return bytes(side.memory[:HALF])

        sent = network.together(fill)
        until = (ON_US + 400) * 1000
        ended = network.together(
            *(put_blocks((n + 1) % 3, keys[(n + 1) % 3], 4096, until) for n in range(3))
        )
        came = network.together(lambda side: bytes(side.memory[HALF:]))
    assert [came[(n + 1) % 3] for n in range(3)] == sent
    for statuses, _, begin in ended:
        assert set(statuses) == {STATUS.OK} and begin < OFF_US * 1000
    gaps = [longest / 1000 for _, longest, _ in ended]
    # Whose way does not use cable1, which leads to card 1, is not held up.
    held = gaps if "switch" in away else gaps[:2]
    assert min(held) > ON_US - OFF_US
    assert "switch" in away or gaps[2] < 100


def test_a_simulator_without_the_switch_says_how_to_build_it(monkeypatch, tmp_path):
    alone = shutil.copy(paths.simulator(profile.load("gen2x4")), tmp_path)
    monkeypatch.setattr(paths, "simulator", lambda _: paths.Path(alone))
    with pytest.raises(
        SimulatorError, match=r"dibber-switch-4\.so is not built: run 'make switches"
    ):
        Network(profile.load("gen2x4"), "line:1")
