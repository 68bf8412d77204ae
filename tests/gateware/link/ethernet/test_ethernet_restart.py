"""A port over Ethernet comes back from its power-up with the nonce and the session of before."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.interface.ethernet import ETHERNET_KIND, ETHERNET_STATE
from dibber.link.ethernet.port import EthernetPort
from dibber.link.ethernet.star import EthernetStar

from tests.gateware.link.ethernet.wire import FramePair
from tests.gateware.link.items import word_items
from tests.gateware.link.pair import pulse
from tests.gateware.models.drive import finish, growing, source
from tests.gateware.models.ethernet import BROADCAST
from tests.gateware.models.port_contract import pause

OPTIONS = dict(mtu=1500, period=256, buffers=(64, 64, 512, 64), queues=(32, 32, 256, 32))
PORTS = {"star": lambda: EthernetStar(2, **OPTIONS), "port": lambda: EthernetPort(**OPTIONS)}
BULK, WORDS = 2, 400  # of a packet: 200 units


def says(frame):
    """Bits of a STATUS frame's state; None for DATA."""
    return frame[25] if frame[14] >> 5 == ETHERNET_KIND.STATUS else None


class Restart(FramePair):
    """Two ports with nonce 0. Frames of b, or of both, may be lost."""

    def __init__(self, random, ports):
        super().__init__(random, wire=self.carry, ports=lambda: ResetInserter()(ports()))
        self.loses = lambda frame, of_a: False
        self.queue, self.lost = [], []

    def carry(self, frame, there):
        if not self.loses(frame, there):
            return [frame]
        self.lost.append(frame)
        return []

    def start(self):
        yield self.a.nonce.eq(0)
        yield self.b.nonce.eq(0)
        yield from self.both_up()

    def both_up(self, cycles=20000):
        for _ in range(cycles):
            if (yield self.a.up) and (yield self.b.up):
                return
            yield
        raise AssertionError("not UP")

    def sends(self, count):
        """Packets come from a to b."""
        before = len(self.whole(BULK))
        number = len(self.queue)
        self.queue += [([number + n] * WORDS, False) for n in range(count)]
        yield from finish(lambda: len(self.whole(BULK)) >= before + count, 60 * WORDS * count)
        assert self.whole(BULK)[-1] == ([number + count - 1] * WORDS, True)

    def restart(self, port):
        """Reset a port between two of its frames."""
        idle = 0
        while idle < 8:
            valid = yield port.frame_tx.valid
            idle = 0 if valid else idle + 1
            yield
        yield from pulse(port.reset)

    def run(self, main):
        def items():
            for packet in growing(self.queue):
                yield from [None] if packet is None else word_items([packet])

        super().run(source(self.a.sinks[BULK], items(), self.random), main)


@pytest.mark.parametrize("which", ["a", "b"])
@pytest.mark.parametrize("kind", PORTS)
def test_two_ports_agree_again_though_the_first_frame_that_shows_a_restart_is_lost(
    seed, kind, which
):
    """Positions are past the largest credit. So traffic stands still if only one end is new."""
    pair = Restart(Random(seed), PORTS[kind])

    def shows(frame, of_a):
        """A frame of the restarted port that hears nobody, or its first one that hears."""
        if of_a != (which == "a") or any(says(lost) & 1 for lost in pair.lost):
            return False
        return says(frame) is not None and not says(frame) & ETHERNET_STATE.BEGUN

    def main():
        yield from pair.start()
        yield from pair.sends(22)
        yield from pause(300)
        pair.loses = shows
        yield from pair.restart(getattr(pair, which))
        yield from finish(lambda: pair.lost and says(pair.lost[-1]) & 1, 3000)
        yield from pause(12 * OPTIONS["period"])
        yield from pair.both_up()
        other = "b" if which == "a" else "a"
        assert pair.lost[-1][:6] != BROADCAST and pair.counts[other]["LINK_LOST"] >= 1
        yield from pair.sends(3)

    pair.run(main())


@pytest.mark.parametrize("kind", PORTS)
def test_restarts_of_both_ends_on_a_wire_that_loses_frames_leave_a_link_that_carries(seed, kind):
    random = Random(seed)
    pair = Restart(random, PORTS[kind])
    loss = lambda frame, of_a: random.random() < 0.3

    def main():
        yield from pair.start()
        for _ in range(8):
            pair.loses = loss
            yield from pair.restart(random.choice([pair.a, pair.b]))
            yield from pause(random.randrange(1200))
            pair.loses = lambda frame, of_a: False
            yield from pause(12 * OPTIONS["period"])
            yield from pair.both_up()
            yield from pair.sends(random.choice([1, 5]))

    pair.run(main())
