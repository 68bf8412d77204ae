"""A card without options is the netlist that it was; and what tells one netlist from another."""

# SPDX-License-Identifier: BSD-2-Clause

import copy
import json

import pytest
import same


@pytest.mark.parametrize("width", same.WIDTHS)
def test_the_core_without_options_has_the_netlist_that_it_had(width):
    wrong = same.compare(width, json.loads(same.KEPT.read_text())[str(width)])
    assert wrong is None, wrong


# Text ---------------------------------------------------------------------------------------------


def test_a_text_has_no_names_no_comments_and_no_attributes():
    assert same.normalized("assign b = (a & b); // why\n") == "assign n0=(n1&n0);"
    first = (
        '(* src = "x" *) wire [3:0] sum = 4\'d7; always @(*) begin if (sum[2]) $display("a"); end'
    )
    again = first.replace("sum", "total").replace("(* src", " /* a\n b */ (* ram_style")
    assert same.normalized(first) == same.normalized(again)
    assert "always @(*)begin if (n0[2])" in same.normalized(first)


def test_a_text_keeps_pins_numbers_and_operators():
    line = "box one(.clk(a), .d(b[3]));"
    for other in (
        "box one(.clk(b), .d(b[3]));",
        "box one(.c(a), .d(b[3]));",
        line.replace("3", "2"),
    ):
        assert same.normalized(line) != same.normalized(other)


# Netlist ------------------------------------------------------------------------------------------


def cell(kind, inputs, output, **parameters):
    return {
        "type": kind,
        "parameters": parameters,
        "port_directions": {**dict.fromkeys(inputs, "input"), "Y": "output"},
        "connections": {**inputs, "Y": output},
    }


def module():
    """y = register of (a & b) ^ the register; and a cell that no output depends on."""
    return {
        "ports": {
            "a": {"direction": "input", "bits": [2]},
            "b": {"direction": "input", "bits": [3]},
            "y": {"direction": "output", "bits": [6]},
        },
        "cells": {
            "and": cell("$and", {"A": [2], "B": [3]}, [4], WIDTH="1"),
            "xor": cell("$xor", {"A": [4], "B": [6]}, [5]),
            "register": cell("$dff", {"D": [5]}, [6]),
            "unused": cell("$or", {"A": [2], "B": [3]}, [9]),
        },
    }


def renamed(module):
    """The same cells with other names and nets, in another order."""
    cells = {}
    for name, one in reversed(module["cells"].items()):
        connections = {pin: [bit + 40 for bit in bits] for pin, bits in one["connections"].items()}
        cells[f"new_{name}"] = {**one, "connections": connections}
    ports = {
        name: {**port, "bits": [bit + 40 for bit in port["bits"]]}
        for name, port in module["ports"].items()
    }
    return {"ports": ports, "cells": cells}


def test_a_listing_depends_on_no_name_and_on_no_order():
    assert same.listing(module()) == same.listing(renamed(module()))


@pytest.mark.parametrize(
    "change",
    [
        lambda cells: cells["and"].update(type="$or"),
        lambda cells: cells["and"]["parameters"].update(WIDTH="2"),
        lambda cells: cells["and"]["connections"].update(A=[3], B=[2]),
        lambda cells: cells["xor"]["connections"].update(B=[4]),
        lambda cells: cells["xor"]["connections"].update(B=["1"]),
        lambda cells: cells["xor"]["connections"].update(B=[77]),
        lambda cells: cells["register"]["connections"].update(D=[4]),
        lambda cells: cells["register"]["connections"].update(D=[9]),
    ],
    ids="kind parameter swapped source constant undriven bypass other".split(),
)
def test_each_change_of_a_cell_that_counts_changes_the_listing(change):
    changed = copy.deepcopy(module())
    change(changed["cells"])
    assert same.listing(changed) != same.listing(module())


def test_a_net_with_two_drivers_is_refused():
    twice = module()
    twice["cells"]["unused"]["connections"]["Y"] = [5]
    with pytest.raises(ValueError, match="drive one net"):
        same.listing(twice)


# What It Says -------------------------------------------------------------------------------------


class Found:
    """In place of a core that was made."""

    text = "new"

    def __init__(self, width):
        pass

    def netlist(self):
        return "is"


def test_another_netlist_is_reported_with_the_command_that_accepts_it(monkeypatch):
    monkeypatch.setattr(same, "Same", Found)
    wrong = same.compare(64, {"text": "old", "netlist": "was"})
    assert "at 64 bits" in wrong and "is, and" in wrong and "was" in wrong
    assert f"run `{same.ACCEPT}` and commit same.json" in wrong


def test_a_new_text_of_the_same_netlist_is_no_change(monkeypatch, capsys):
    monkeypatch.setattr(same, "Same", Found)
    assert same.compare(64, {"text": "old", "netlist": "is"}) is None
    assert same.ACCEPT in capsys.readouterr().err
