"""A load that hardware holds until an event, and a debugger that comes meanwhile. The bench has no
events, so only a debugger ends the load.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from dibber.interface.description import MCP, C

from tests.gateware.debug.debugger import ACTIVE, DMCONTROL, DPC, Debugger

T0, A0 = 5, 10
HELD = MCP["EVENTS_HELD"].offset
PROGRAM = [
    0x8000_0337,  # lui t1, 0x80000
    0x0012_8293,  # loop: addi t0, t0, 1
    HELD << 20 | 0x0003_2503,  # lw a0, HELD(t1)
    0x0005_0593,  # mv a1, a0
    0xFF5F_F06F,  # j loop
]
LOAD = 8  # address of that load
ALONE = 0x8000  # cycles without a debugger: 2,000 turns of the loop if no load were held
FEW = 200  # turns while a debugger comes and asks for a halt


@pytest.fixture
def waiting(bench):
    """A debugger, still away, at a processor whose load is held."""
    debugger = Debugger(bench)
    for n, word in enumerate(PROGRAM):
        debugger.ask("w", 4 * n, word)
    debugger.ask("h", 0)
    debugger.ask("n", ALONE)
    yield debugger
    debugger.close()


def come_and_halt(debugger):
    """The program's count."""
    debugger.write(DMCONTROL, ACTIVE)
    debugger.halt()
    return debugger.gpr(T0)


def test_a_program_waits_in_its_load_until_a_debugger_comes(waiting):
    assert 0 < come_and_halt(waiting) < FEW
    assert waiting.gpr(A0) == 0


def test_no_load_is_held_while_a_debugger_is_there(waiting):
    before = come_and_halt(waiting)
    waiting.register(DPC, 4)
    waiting.resume()
    waiting.ask("n", ALONE)
    waiting.halt()
    assert waiting.gpr(T0) - before > 5 * FEW


def test_a_debugger_steps_over_the_load_and_reads_the_register_itself(waiting):
    come_and_halt(waiting)
    waiting.register(DPC, LOAD)
    waiting.step()
    assert waiting.register(DPC) == LOAD + 4
    assert waiting.memory(C.MCP_REGISTER_BASE + HELD) == 0


def test_loads_are_held_again_when_the_debugger_has_gone(waiting):
    come_and_halt(waiting)
    waiting.register(DPC, 4)
    before = waiting.gpr(T0)
    waiting.resume()
    waiting.write(DMCONTROL, 0)
    waiting.ask("n", ALONE)
    assert come_and_halt(waiting) - before < 2 * FEW
