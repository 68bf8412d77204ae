"""`dibber selftest` on simulated cards: good ones pass, and what is at the end of the cable is
told.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json

import pytest
from dibber_cli import profile
from dibber_cli.main import main
from dibber_cli.selftest.commands import ITEMS, run
from dibber_cli.simulator import Pair

QUICK = [item for item in ITEMS if item[0] != "SRAM"]  # it takes most of the time


def test_two_good_cards_pass_every_item(capsys):
    assert main(["selftest", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["pass"] and len(result["cards"]) == 2
    for card in result["cards"]:
        assert card["cable"] == "direct"
        assert [(i["item"], i["verdict"]) for i in card["items"]] == [
            (name, "pass") for name, _ in ITEMS
        ]


@pytest.mark.parametrize(
    "name, fault, cable, said",
    [
        ("gen2x4", "unplugged", "none", "no cable"),
        ("gen2x4", "loopback", "loopback", "loopback to itself"),
        ("gen2x1", "loopback", "loopback", "loopback to itself"),
    ],
)
def test_one_card_says_what_its_cable_is_and_does_not_fail_for_it(name, fault, cable, said):
    with Pair(profile.load(name), participants=1, options=["--fault", fault]) as pair:
        (card,) = run(pair.uris[:1], 1, items=QUICK)
    assert not card.failed and card.cable == cable
    assert {i.item: i.detail for i in card.items if i.verdict != "pass"}.keys() == {
        "link",
        "DMA patterns",
    }
    assert next(i.detail for i in card.items if i.item == "link").startswith(said)


@pytest.mark.parametrize("fault", ["loopback", "inverted:0:1e9:1", "stop:0:1e6:1"])
def test_two_cards_that_do_not_reach_each_other_fail_at_the_link_alone(fault):
    with Pair(profile.load("gen2x4"), options=["--fault", fault]) as pair:
        cards = run(pair.uris, 1, items=QUICK)
    assert any(card.failed == ["link"] for card in cards) and all(
        card.failed in (["link"], []) for card in cards
    )


def test_a_cable_with_bit_errors_fails_no_deposit():
    """What is damaged is sent again: DMA patterns pass, and the loopback does not see the cable."""
    with Pair(profile.load("gen2x4"), options=["--ber", "1e-6"]) as pair:
        cards = run(pair.uris, 1, items=QUICK)
    assert not any(card.failed for card in cards)
