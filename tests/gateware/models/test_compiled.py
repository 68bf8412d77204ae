"""The compiled simulator shows in every cycle what Migen's own shows."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *
from migen import run_simulation as interpreted
from migen.fhdl.tools import list_signals

from dibber.link.port import LinkPort
from dibber.packet.layer import PacketLayer

from tests.gateware.models.compiled import run_simulation as compiled


class Everything(Module):
    """Statements of every kind that the compiler translates."""

    def __init__(self):
        self.a, self.b, self.n = Signal(8), Signal(8), Signal(2)
        self.signed = Signal((8, True))
        self.out = [Signal(16, name=f"out{n}") for n in range(6)]
        self.array = Array(Signal(8, name=f"array{n}") for n in range(3))
        low, high = Signal(5), Signal(11)
        memory = Memory(16, 4, init=[1, 2])
        port = memory.get_port(write_capable=True, we_granularity=8)
        look = memory.get_port(async_read=True)
        self.specials += memory, port, look
        out = self.out
        self.comb += [
            out[0].eq(self.a - self.b),
            out[0][3:5].eq(self.n),
            Cat(low, high).eq(Cat(self.a, self.b) ^ Replicate(self.n, 8)),
            If(self.a > self.b, out[1].eq(low + high))
            .Elif(self.n[1], out[1].eq(~self.a))
            .Else(out[1][1].eq(1)),
            Case(
                self.n,
                {
                    0: out[2].eq(7),
                    1: [],
                    "default": out[2].eq(Mux(self.a[0], self.b, self.signed >> 1)),
                },
            ),
            port.adr.eq(self.n),
            port.dat_w.eq(out[0]),
            port.we.eq(self.a[:2]),
            look.adr.eq(self.b),
            out[3].eq(Cat(port.dat_r[:8], look.dat_r[8:])),
        ]
        self.sync += [
            self.array[self.n].eq(self.a),
            self.array[self.b[:2]][2:6].eq(self.n + 9),
            self.signed.eq(self.signed - self.a),
            out[4].eq(self.array[self.a[:2]] + (self.signed < 0)),
            Case(
                self.signed, {-1: out[5].eq(1), 3: out[5].eq(3), "default": out[5].eq(out[5] + 1)}
            ),
        ]


def fields(*endpoints):
    """What the outside drives of streams into a design."""
    return [signal for e in endpoints for signal in e.flatten() if signal is not e.ready]


def trace(run, make, inputs, seed, cycles, share=1.0, times=1):
    """The value of every signal of the design after every cycle, under random inputs.

    share : of the inputs that change in a cycle
    times : how often it is simulated; the last time is returned
    """
    dut = make()
    driven = inputs(dut)
    design = dut.get_fragment()
    signals = sorted(list_signals(design), key=lambda signal: signal.duid)

    def stimulus(random, seen):
        for _ in range(cycles):
            for signal in driven:
                if random.random() < share:
                    yield signal.eq(random.getrandbits(len(signal)))
            yield
            values = []
            for signal in signals:
                values.append((yield signal))
            seen.append(values)

    for _ in range(times):
        seen = []
        run(design, stimulus(Random(seed), seen))
    return seen


@pytest.mark.parametrize(
    "make, inputs, cycles",
    [
        (Everything, lambda dut: [dut.a, dut.b, dut.n], 300),
        (
            lambda: PacketLayer(64),
            lambda dut: fields(*dut.sinks, dut.packets, dut.payload_in, dut.deposit_done),
            60,
        ),
        (LinkPort, lambda dut: fields(dut.serial_rx) + [dut.signal], 60),
    ],
    ids=["statements", "packet", "link"],
)
def test_every_signal_has_the_same_value_in_every_cycle(make, inputs, cycles, seed):
    assert trace(compiled, make, inputs, seed, cycles) == trace(
        interpreted, make, inputs, seed, cycles
    )


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_where_little_changes_and_in_every_run_of_a_design_it_is_the_same(share, seed):
    """Also where a generator assigns what the design itself does: the design has its say in the
    next cycle, or at once.
    """

    def inputs(dut):
        return [dut.a, dut.b, dut.n, dut.out[1], dut.out[4], dut.signed]

    want = trace(interpreted, Everything, inputs, seed, 400, share)
    assert trace(compiled, Everything, inputs, seed, 400, share, times=2) == want
