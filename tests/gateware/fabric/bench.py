"""A switch with a model of a card at each of its ports."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from dibber.fabric.switch.switch import Switch
from dibber.interface.description import SWITCH, SWITCH_COUNTER, C
from tests.gateware.models.compiled import CompiledSimulator, shared
from tests.gateware.models.far_end import FarEnd
from tests.gateware.models.link import prefix_words

CLOCK_HZ = 125e6


def routed(turns, words, bad=False):
    """A packet that takes this way, as FarEnd sends it."""
    return len(turns), prefix_words(turns) + list(words), bad


class Bench:
    """A switch of `ports` ports; `ends` are the models at them.

    `run` runs processes until all of them have ended. In them, `yield` is a cycle.
    """

    def __init__(self, random, ports=4, delay=4, identity=1, busy=1.0, ordered=False):
        self.dut = shared(Switch, ports, CLOCK_HZ)
        self.random, self.busy, self.identity = random, busy, identity
        self.ends = [FarEnd(0x5000 + n, random, delay, ordered) for n in range(ports)]

    @passive
    def _cable(self, n):
        end, tx, rx = self.ends[n], self.dut.ports[n].serial_tx, self.dut.ports[n].serial_rx
        before = {}
        while True:
            ready = int(self.busy >= 1.0 or self.random.random() < self.busy)
            yield tx.ready.eq(ready)
            yield
            sent = None
            if ready and (yield tx.valid):
                sent = (yield tx.data), (yield tx.k)
            word = end.step(sent)
            values = {rx.valid: int(word is not None)}
            if word is not None:
                values.update({rx.data: word[0], rx.k: word[1], rx.code_error: int(word[2])})
            for signal, value in values.items():
                if before.get(signal.duid) != value:
                    yield signal.eq(value)
                    before[signal.duid] = value

    @passive
    def _signals(self):
        yield self.dut.identity.eq(self.identity)
        before = None
        while True:
            now = sum(end.plugged << n for n, end in enumerate(self.ends))
            if now != before:
                yield self.dut.signals.eq(now)
                before = now
            yield

    def run(self, *processes):
        cables = [self._cable(n) for n in range(len(self.ends))]
        with CompiledSimulator(self.dut, [*cables, self._signals(), *processes]) as simulator:
            simulator.run()

    # Processes ------------------------------------------------------------------------------------

    def all_up(self, cycles=400):
        for _ in range(cycles):
            if all(end.up for end in self.ends if end.plugged):
                return
            yield
        raise AssertionError(f"up after {cycles} cycles: {[end.up for end in self.ends]}")

    def until(self, done, cycles):
        for _ in range(cycles):
            if done():
                return
            yield
        raise AssertionError(f"not finished after {cycles} cycles")

    def drained(self, cycles):
        """Until all packets have left their senders, and the switch holds none."""
        yield from self.until(lambda: all(end.idle() for end in self.ends if end.up), cycles)
        yield from pause(700)

    def write(self, name, value):
        port = self.dut.port
        yield port.adr.eq(SWITCH[name].offset // 4)
        yield port.dat_w.eq(value)
        yield port.be.eq(15)
        yield port.we.eq(1)
        yield
        yield port.we.eq(0)
        yield

    def read(self, name, index=0):
        port = self.dut.port
        yield port.adr.eq(SWITCH[name].offset // 4 + index)
        yield port.be.eq(15)
        yield port.re.eq(1)
        yield
        yield port.re.eq(0)
        yield
        yield
        return (yield port.dat_r)

    def count(self, n, name):
        """A counter of port `n`."""
        index = getattr(SWITCH_COUNTER, name)
        return (yield from self.read("COUNTERS", C.SWITCH_COUNTER_WORDS * n + index))

    def counts(self, name):
        """A counter of all ports."""
        values = []
        for n in range(len(self.ends)):
            values.append((yield from self.count(n, name)))
        return values


def pause(cycles):
    for _ in range(cycles):
        yield
