"""The longest path of a netlist, by a model that is worked out by hand here."""

# SPDX-License-Identifier: BSD-2-Clause

import paths
import pytest


def cell(kind, ins, outs):
    return {
        "type": kind,
        "connections": {pin: [bit] for pin, bit in (ins | outs).items()},
        "port_directions": {pin: "input" for pin in ins} | {pin: "output" for pin in outs},
    }


def ff(d, q):
    return cell("TRELLIS_FF", {"CLK": 1, "DI": d}, {"Q": q})


def test_the_later_of_two_ways_counts_and_a_constant_is_none():
    netlist = paths.Netlist(
        {
            "cells": {
                "a_TRELLIS_FF_Q": ff("x", 10),
                "one": cell("LUT4", {"A": 10, "B": "0"}, {"Z": 11}),
                "two": cell("LUT4", {"A": 11, "B": 10}, {"Z": 12}),
                "b_TRELLIS_FF_Q": ff(12, 13),
                "c_TRELLIS_FF_Q_3": ff(10, 14),
            }
        }
    )
    single, feeds_three = 0.4 + 0.1, 0.4 + 0.1 * 3**0.5
    assert netlist.ends["b"][0] == pytest.approx(0.31 + feeds_three + 0.14 + single + 0.14 + single)
    assert netlist.ends["c"][0] == pytest.approx(0.31 + feeds_three)
    assert "a" not in netlist.ends
    assert [name for _, name, _ in netlist.way(12)] == ["a_TRELLIS_FF_Q", "one", "two"]
    first, second = paths.report(netlist, 2, trace=False)
    assert first.endswith("b.DI, 2 cells from a") and second.endswith("c.DI, 0 cells from a")


def test_a_carry_chain_costs_little_and_a_lut_memory_is_read_through_but_written_at_the_clock():
    netlist = paths.Netlist(
        {
            "cells": {
                "a_TRELLIS_FF_Q": ff("x", 10),
                "carry0": cell("CCU2C", {"A0": 10}, {"COUT": 11}),
                "carry1": cell("CCU2C", {"CIN": 11}, {"COUT": 12}),
                "m_TRELLIS_DPR16X4": cell(
                    "TRELLIS_DPR16X4", {"RAD0": 12, "DI0": 20, "WCK": 1}, {"DO0": 13}
                ),
                "b_TRELLIS_FF_Q": ff(13, 14),
                "late": cell("LUT4", {"A": 13}, {"Z": 20}),
            }
        }
    )
    net = 0.4 + 0.1
    read = 0.31 + net + 0.28 + 0.02 + net + 0.14
    assert netlist.ends["b"][0] == pytest.approx(read + 0.4 + 0.1 * 2**0.5)
    # What is written comes out at the next clock: no loop, and an end of its own.
    assert netlist.ends["m"][0] == pytest.approx(read + 0.4 + 0.1 * 2**0.5 + 0.14 + net)
