"""The debug module in front of a core that takes its time, as none does behind JTAG."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from dibber.debug.dm import ABSTRACTCS, COMMAND, DATA0, DMCONTROL, DMSTATUS, DebugModule
from dibber.debug.injector import CONTROL, EXECUTE, HALT, HALTED, RESUME

from tests.gateware.models.compiled import run_simulation

READ_T0 = 2 << 20 | 1 << 17 | 0x1005


@passive
def core(dut, slow, executed):
    """VexRiscv's debug bus: halts when asked to, executes in `slow` cycles, every result is
    0x123.
    """
    port, flags, wait = dut.core, 0, 0
    while True:
        address = yield port.adr
        ready = 1
        if (yield port.valid):
            word = yield port.dat_w
            if address == CONTROL:
                flags = (flags | (1 << HALTED if word & HALT else 0)) & ~(
                    1 << HALTED if word & RESUME else 0
                )
            elif address == EXECUTE:
                wait += 1
                ready = wait >= slow
        yield port.ready.eq(ready)
        yield port.dat_r.eq(flags if address == CONTROL else 0x123)
        yield
        if (yield port.valid) and (yield port.adr) == EXECUTE and ready:
            executed.append((yield port.dat_w))
            wait = 0


def write(dut, address, value):
    yield dut.dmi.adr.eq(address)
    yield dut.dmi.dat_w.eq(value)
    yield dut.dmi.we.eq(1)
    yield
    yield dut.dmi.we.eq(0)
    yield


def read(dut, address):
    yield dut.dmi.adr.eq(address)
    yield dut.dmi.re.eq(1)
    yield
    yield dut.dmi.re.eq(0)
    yield
    return (yield dut.dmi.dat_r)


def test_a_debugger_that_does_not_wait_is_told_and_the_command_ends_all_the_same():
    dut, executed = DebugModule(), []

    def debugger():
        yield from write(dut, DMCONTROL, 1)
        yield from write(dut, DMCONTROL, 1 << 31 | 1)
        for _ in range(400):
            yield
        assert (yield from read(dut, DMSTATUS)) >> 9 & 1
        yield from write(dut, DATA0, 0x77)
        yield from write(dut, COMMAND, READ_T0)
        assert (yield from read(dut, ABSTRACTCS)) == 1 << 12 | 1, "busy, no error yet"
        yield from write(dut, DATA0, 0x88)
        yield from write(dut, COMMAND, READ_T0 + 1)
        assert (yield from read(dut, ABSTRACTCS)) == 1 << 12 | 1 << 8 | 1
        for _ in range(200):
            yield
        assert (yield from read(dut, ABSTRACTCS)) == 1 << 8 | 1
        assert (yield from read(dut, DATA0)) == 0x123, "of the command that was not disturbed"
        yield from write(dut, ABSTRACTCS, 1 << 8)
        assert (yield from read(dut, ABSTRACTCS)) == 1

    run_simulation(dut, [debugger(), core(dut, 60, executed)])
    assert executed == [0x17, 5 << 15 | 0x13], "auipc x0, 0; addi x0, t0, 0"
