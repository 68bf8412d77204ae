"""`dibber switch` and the drawings of `dibber map`, from maps that are written here."""

# SPDX-License-Identifier: BSD-2-Clause

import os
import stat
import xml.dom.minidom

import pytest
from dibber_cli import drawing, switch
from dibber_cli.errors import CommandError
from dibber_cli.main import main


def host(number):
    return {"kind": "host", "number": number}


def to(number, port):
    return {"kind": "switch", "number": number, "port": port}


NONE = {"kind": "none", "number": 0}

# Three switches in a ring with a host each; two cables join switches 0 and 1.
RING = {
    "own": 1,
    "hosts": [0, 1, 2],
    "uplinks": [to(1, 2)],
    "switches": [
        {"ports": 4, "level": 0, "peers": [host(0), to(1, 0), to(1, 1), to(2, 0)]},
        {"ports": 4, "level": 1, "peers": [to(0, 1), to(0, 2), host(1), to(2, 1)]},
        {"ports": 4, "level": 1, "peers": [to(0, 3), to(1, 3), host(2), NONE]},
    ],
}


def test_a_route_has_its_turns_modulo_16():
    assert switch.route_of(()) == 0
    assert switch.route_of((1, -1, 8)) == 3 | 1 << 4 | 15 << 8 | 8 << 12


def test_the_way_to_each_switch_is_the_shortest_and_does_not_pass_it():
    # From port 2 of switch 1: out at port 0, that is 2 below, to port 1 of switch 0.
    assert switch.ways(RING) == {1: ((), 2, 0), 0: ((2,), 1, 0), 2: ((1,), 1, 0)}
    assert switch.ways({**RING, "uplinks": [host(0)], "switches": []}) == {}


def test_the_tree_of_text_has_each_cable_and_draws_each_switch_once():
    assert drawing.lines(RING) == [
        "switch 0",
        "├─ port 0 ── node 0",
        "├─ port 1 ── switch 1 port 0",
        "│  ├─ port 1 ── switch 0 port 2",
        "│  ├─ port 2 ── node 1",
        "│  └─ port 3 ── switch 2 port 1",
        "│     ├─ port 0 ── switch 0 port 3",
        "│     └─ port 2 ── node 2",
        "├─ port 2 ── switch 1 port 1",
        "└─ port 3 ── switch 2 port 0",
    ]
    assert drawing.lines({**RING, "switches": []}) == []


def test_a_ring_is_a_line_of_its_nodes_and_a_graph_of_arrows():
    ring = {"nodes": 3, "order": [2, 1, None]}
    found = {"own": 1, "hosts": [1, 2], "uplinks": [to(0, 1)], "switches": [], "ring": ring}
    assert drawing.lines(found) == ["node 2 → node 1 → address 2, no answer → node 2"]
    edges = [line.strip() for line in drawing.dot(found).splitlines() if "->" in line]
    assert edges == ["a0 -> a1;", "a1 -> a2;", "a2 -> a0;"]


def test_the_graph_has_each_cable_once():
    edges = [line.strip() for line in drawing.dot(RING).splitlines() if "--" in line]
    assert edges == [
        "s0 -- n0 [taillabel=0];",
        "s0 -- s1 [taillabel=1, headlabel=0];",
        "s0 -- s1 [taillabel=2, headlabel=1];",
        "s0 -- s2 [taillabel=3, headlabel=0];",
        "s1 -- n1 [taillabel=2];",
        "s1 -- s2 [taillabel=3, headlabel=1];",
        "s2 -- n2 [taillabel=2];",
    ]
    pair = {"own": 0, "hosts": [0, 1], "uplinks": [host(1)], "switches": []}
    assert "n0 -- n1;" in drawing.dot(pair)


@pytest.fixture
def program(tmp_path, monkeypatch):
    """program(text): a shell script `dot` that stands alone on the path."""

    def put(text):
        file = tmp_path / "dot"
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)

    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    return put


def test_the_picture_is_what_graphviz_makes_of_the_graph(program):
    program("echo \"<svg xmlns='http://www.w3.org/2000/svg'><desc>$(grep -c -- --)</desc></svg>\"")
    picture = xml.dom.minidom.parseString(drawing.svg(RING))
    assert picture.documentElement.firstChild.firstChild.data == "7"


def test_graphviz_that_fails_or_is_absent_is_told(program, monkeypatch, tmp_path):
    program("echo no such layout >&2; exit 1")
    with pytest.raises(CommandError, match="failed: no such layout"):
        drawing.svg(RING)
    (tmp_path / "dot").unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CommandError, match="'dot' is not installed"):
        drawing.svg(RING)


@pytest.mark.parametrize("word", ["0", "0:", "x:1", "0:1:2", "0:100", "-1:0"])
def test_a_place_that_makes_no_sense_is_refused(word, capsys):
    with pytest.raises(SystemExit) as end:
        main(["switch", "port", word, "enable"])
    assert end.value.code == 2 and "SWITCH:PORT" in capsys.readouterr().err
