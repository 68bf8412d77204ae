"""`dibber map` says what it did not reach, and why."""

# SPDX-License-Identifier: BSD-2-Clause

from dibber_cli import map as network_map

FOUND = {
    "own": 3,
    "hosts": [0, 3, 5],
    "conflicts": [],
    "unreachable": [],
    "scouts": 40,
    "switches": [{}] * 9,
    "uplink": {"kind": "switch", "number": 3, "port": 0},
    "truncated": False,
}


def test_a_node_whose_ways_are_all_too_long_is_named():
    assert network_map.sentence(FOUND | {"unreachable": [5]}) == (
        "node 3 reaches node 0 by 9 switches, 40 scouts; no route to node 5: each way that cannot "
        "deadlock passes more than 7 switches"
    )


def test_a_map_without_an_end_says_what_may_lie_behind_it():
    text = network_map.sentence(FOUND | {"truncated": True})
    assert text.startswith("node 3 reaches node 0, node 5 by 9 switches, 40 scouts; there may be")
    assert "more than 7 others" in text


def test_a_whole_map_says_no_more_than_what_it_has():
    assert network_map.sentence(FOUND) == "node 3 reaches node 0, node 5 by 9 switches, 40 scouts"
