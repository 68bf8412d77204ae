"""Two cards with a pair of rings, and the four lanes between them."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import partial

from migen import *

from dibber.fabric.ring.pair import RingPairPort
from tests.gateware.link.pair import Pair
from tests.gateware.models.cable import cable
from tests.gateware.models.compiled import run_simulation, shared

# Buffers so small that a stalled channel fills them. Two channels, because four nodes are slow.
SMALL = dict(
    packet_words=(160,) * 2,
    send_words=(256,) * 2,
    receive_words=(512,) * 2,
    bypass_words=256,
    fold_cycles=256,
    hold_cycles=128,
)


class TwoCards(Module):
    def __init__(self):
        self.submodules.a = TwoLaneCard(**SMALL)
        self.submodules.b = TwoLaneCard(**SMALL)


class TwoLaneCard(RingPairPort):
    """Ring 0's pins where a Pair expects those of a port, and one signal for both cables."""

    def __init__(self, **options):
        super().__init__(**options)
        following, previous = self.cables
        self.serial_tx = following.serial_tx
        self.serial_rx = previous.serial_rx
        self.signal = Signal()
        self.cut = [Signal(), Signal()]  # what comes by a cable
        self.comb += [
            cable_.signal.eq(self.signal & ~cut) for cable_, cut in zip(self.cables, self.cut)
        ]


class Cards(Pair):
    """Cards a and b. `cut` is a set of (ring, receiving card) whose lane is dead.

    Example: {(0, "b"), (1, "a")} is the cable between NEXT of a and PREVIOUS of b.
    """

    def __init__(self, random, fault=None, delay=4):
        self.design = shared(TwoCards)
        super().__init__(
            random, delay=delay, fault=fault, ports=iter([self.design.a, self.design.b]).__next__
        )
        self.cut = set()
        a, b = self.a, self.b
        lanes = [
            (0, "b", a.cables[0].serial_tx, b.cables[1].serial_rx),
            (0, "a", b.cables[0].serial_tx, a.cables[1].serial_rx),
            (1, "b", a.cables[1].serial_tx, b.cables[0].serial_rx),
            (1, "a", b.cables[1].serial_tx, a.cables[0].serial_rx),
        ]
        self.processes[:2] = [
            cable(tx, rx, delay, fault=partial(self._carry, ring, end))
            for ring, end, tx, rx in lanes
        ]
        self.processes.append(self._cut())

    def _carry(self, ring, end, data, k):
        if not self.signal or (ring, end) in self.cut:
            return None
        if end == "b":
            return self.fault(data, k)
        return data, k, 0, 0

    @passive
    def _cut(self):
        shown = None
        while True:
            if shown != self.cut:
                shown = set(self.cut)
                for name, port in (("a", self.a), ("b", self.b)):
                    # Ring 0 comes by PREVIOUS, ring 1 by NEXT.
                    for ring in (0, 1):
                        yield port.cut[1 - ring].eq(int((ring, name) in shown))
            yield

    def run(self, *more):
        run_simulation(self.design, [*self.processes, *more])
