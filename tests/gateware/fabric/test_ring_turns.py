"""A route's turn on a ring: so many nodes onward, whatever the addresses are."""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from dibber.fabric.ring.send import nodes_onward
from tests.gateware.models.compiled import run_simulation
from litex.gen import *
from migen import *


def onward(turn, size):
    """The model: nodes onward, or None for a turn that leads to no node."""
    if turn < size:
        return turn
    return size - (16 - turn) if 16 - turn < size else None


class Turns(LiteXModule):
    def __init__(self):
        self.turn, self.size = Signal(4), Signal(5)
        statements, self.nodes = nodes_onward(self.turn, self.size)
        self.comb += statements


@pytest.mark.parametrize("size", range(2, 17))
def test_each_turn_of_each_ring_leads_to_the_node_of_the_model_or_to_none(size):
    dut = Turns()

    def stimulus():
        yield dut.size.eq(size)
        for turn in range(16):
            yield dut.turn.eq(turn)
            yield
            yield
            found = yield dut.nodes
            assert (found if found < size else None) == onward(turn, size), turn

    run_simulation(dut, stimulus())
