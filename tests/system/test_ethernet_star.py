"""Four cards around one Ethernet switch: they find each other, and each puts to all others."""

# SPDX-License-Identifier: BSD-2-Clause

import subprocess
import sys

import pytest
from dibber.interface.description import STATUS
from dibber_cli import paths

from tests.soak import ethernet_star
from tests.system.network import opened, put_blocks, put_word, register

PROFILE = "eth10g"
CARDS = 4
HALF = 1 << 14
OFF_US = 6000  # the cards have their maps before


@pytest.fixture(scope="module", autouse=True)
def built():
    """The simulated card over Ethernet."""
    script = paths.ROOT / "hw" / "sim" / "build.py"
    done = subprocess.run(
        [sys.executable, script, "--profile", PROFILE], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def test_all_cards_put_to_all_others_at_once_and_each_gets_its_share(seed):
    """A sample of the campaign of `make soak`."""
    report = ethernet_star.run(3, CARDS, seed)
    assert report["failed"] == [] and report["bytes_wrong"] == report["link_lost"] == 0
    # Short puts begin and end at different times, so the shares of a sample differ a little.
    assert report["jain"] > 0.9, report


def test_lost_and_overtaken_frames_between_four_cards_cost_time_and_no_byte(seed):
    report = ethernet_star.run(2, CARDS, seed, loss=0.02, late=0.02)
    assert report["failed"] == [] and report["bytes_wrong"] == 0


def lost(side):
    return side.card.info()["counters"]["link_lost"]


def talk(step):
    """A step that begins shortly before the cable is pulled."""

    def later(side):
        side.sleep(max(1, (OFF_US - 100) * 1000 - side.now()))
        return step(side)

    return later


@pytest.mark.fault
def test_two_cards_talk_while_the_port_of_a_third_begins_anew(seed):
    """Its cable is out for a moment, so its port loses all sessions. The others lose one each."""
    until = (OFF_US + 500) * 1000
    options = ("--at", f"{OFF_US} pull cable2", "--at", f"{OFF_US + 100} plug cable2")
    with opened(f"star:{CARDS}", seed, options, PROFILE) as network:
        maps = network.map()
        assert [found["hosts"] for found in maps] == [[0, 1, 2, 3]] * CARDS
        keys = network.together(register(2 * HALF))
        ended = network.on({n: talk(put_blocks(1 - n, keys[1 - n], 4096, until)) for n in (0, 1)})
        links_lost = network.together(lost)
        # The third is there again.
        word = bytes(range(8))
        assert network.on({2: put_word(0, keys[0], word)})[2][1] == STATUS.OK
    for statuses, longest, begin in ended.values():
        assert set(statuses) == {STATUS.OK} and begin < OFF_US * 1000
        # No put between the two waited for the third.
        assert longest < 100_000
    # Sessions of a port that end in the same cycle count once.
    assert links_lost == [1, 1, 1, 1]
