"""`dibber map` says what it did not reach, and why."""

# SPDX-License-Identifier: BSD-2-Clause

import shutil

from dibber_cli import drawing
from dibber_cli import map as network_map

FOUND = {
    "own": 3,
    "hosts": [0, 3, 5],
    "conflicts": [],
    "unreachable": [],
    "scouts": 40,
    "switches": [{}] * 9,
    "uplinks": [{"kind": "switch", "number": 3, "port": 0}],
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


# Two links ----------------------------------------------------------------------------------------


def at(node, link):
    return {"kind": "host", "number": node, "link": link}


NOBODY = {"kind": "none", "number": 0}
# Nodes 0 and 1 have two links; node 2 has one. Link 1 of node 1 has no cable.
STAR = FOUND | {
    "own": 0,
    "hosts": [0, 1, 2],
    "scouts": 12,
    "uplinks": [
        {"kind": "switch", "number": 0, "port": 0},
        {"kind": "switch", "number": 0, "port": 2},
    ],
    "switches": [
        {
            "ports": 4,
            "level": 0,
            "peers": [at(0, 0), at(1, 0), at(0, 1), {"kind": "host", "number": 2}],
        }
    ],
    "routes": [
        {"node": 1, "routes": [[1], [-1], None, None], "links": [0, 1, None, None]}
        | {"current": 0, "changes": 0}
    ],
}
# Node 1 in the middle of a row.
ROW = FOUND | {"own": 1, "hosts": [0, 1, 2], "switches": [], "uplinks": [at(0, 1), at(2, 0)]}


def test_a_card_with_two_links_says_where_each_one_leads():
    assert network_map.sentence(STAR) == (
        "node 0 reaches node 1, node 2 by 1 switch, link 0 to switch 0 port 0, link 1 to switch 0 "
        "port 2, 12 scouts"
    )
    assert "by link 0 to node 0 link 1, link 1 to node 2 link 0, 40" in network_map.sentence(ROW)
    alone = ROW | {"uplinks": [NOBODY, NOBODY], "hosts": [1]}
    assert network_map.sentence(alone) == "node 1: nobody answers at the cables' other ends"


def test_a_drawing_names_the_links_of_a_node_with_two():
    assert drawing.lines(STAR) == [
        "switch 0",
        "├─ port 0 ── node 0 link 0",
        "├─ port 1 ── node 1 link 0",
        "├─ port 2 ── node 0 link 1",
        "└─ port 3 ── node 2",
    ]
    assert drawing.lines(ROW) == [
        "node 1",
        "├─ link 0 ── node 0 link 1",
        "└─ link 1 ── node 2 link 0",
    ]
    text = drawing.dot(STAR)
    assert '  s0 -- n0 [taillabel=2, headlabel="link 1"];' in text
    assert "  s0 -- n2 [taillabel=3];" in text
    assert '  n1 -- n0 [taillabel="link 0", headlabel="link 1"];' in drawing.dot(ROW)
    if shutil.which("dot"):
        assert "link 1" in drawing.svg(STAR)


def test_switches_that_no_cable_joins_are_two_trees():
    one, other = ({"ports": 4, "level": 0, "peers": [at(0, n), at(1, n)]} for n in range(2))
    assert drawing.lines(STAR | {"switches": [one, other]}) == [
        "switch 0",
        "├─ port 0 ── node 0 link 0",
        "└─ port 1 ── node 1 link 0",
        "switch 1",
        "├─ port 0 ── node 0 link 1",
        "└─ port 1 ── node 1 link 1",
    ]


def test_a_route_names_its_link_on_a_card_with_two(capsys):
    network_map.show("uri", STAR)
    assert "link 0: +1  link 1: -1" in capsys.readouterr().out


def test_what_a_card_knows_is_shown_without_a_map(capsys):
    """As `dibber map --look URI`, which sends no scout."""
    known = {"own": 0, "link": "UP", "control_program": "READY", "routes": STAR["routes"]}
    network_map.show("uri", known)
    network_map.show("uri", known | {"routes": []})
    text = capsys.readouterr().out
    assert "knows 1 route\n" in text and "link 1: -1" in text and "knows no routes" in text
