"""Two link ports and a cable between them."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from dibber.interface.description import LINK_STATE
from dibber.link.port import LinkPort

from tests.gateware.models.cable import cable
from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import source

from tests.gateware.link.items import collect, word_items

CHANNELS = 4


class Pair(Module):
    """Ports a and b, of which a sends.

    packets : what came out of b's channels, (words, good) each; last the words of a begun packet
    log     : words that a sent
    take    : for each channel, () -> whether b's packet layer takes a word
    signal  : what both transceivers see; without it nothing is carried
    fault   : (data, k) -> what becomes of a word from a to b
    """

    def __init__(self, random, delay=4, fault=None, rotate=0, busy=None, ports=LinkPort):
        self.submodules.a = ports()
        self.submodules.b = ports()
        self.random = random
        channels = range(len(self.a.sinks))
        self.packets = [[] for _ in channels]
        self.log = []
        self.counts = {
            name: dict.fromkeys(port.counters, 0) for name, port in (("a", self.a), ("b", self.b))
        }
        self.take = [lambda: True for _ in channels]
        self.signal = True
        self.fault = fault or (lambda data, k: (data, k, 0, 0))
        there = lambda *word: self.fault(*word) if self.signal else None
        back = lambda *word: (*word, 0, 0) if self.signal else None
        self.processes = [
            cable(self.a.serial_tx, self.b.serial_rx, delay, rotate, there, busy, self.log),
            cable(self.b.serial_tx, self.a.serial_rx, delay, 0, back, busy),
            self._drive(),
            self._watch(),
            *[self._take(n) for n in channels],
        ]

    @passive
    def _drive(self):
        for port, nonce in ((self.a, 0xAAAA), (self.b, 0xBBBB)):
            yield port.nonce.eq(nonce)
        shown = None
        while True:
            if shown != self.signal:
                shown = self.signal
                yield self.a.signal.eq(int(shown))
                yield self.b.signal.eq(int(shown))
            yield

    @passive
    def _watch(self):
        while True:
            for name, port in (("a", self.a), ("b", self.b)):
                for counter, pulse in port.counters.items():
                    self.counts[name][counter] += yield pulse
            yield

    @passive
    def _take(self, channel):
        endpoint = self.b.sources[channel]
        while True:
            yield endpoint.ready.eq(int(self.take[channel]()))
            yield
            yield from collect(endpoint, self.packets[channel])

    def whole(self, channel):
        """The packets of a channel that came to an end."""
        return [packet for packet in self.packets[channel] if isinstance(packet, tuple)]

    def words(self, channel):
        """How many words of a channel came."""
        return sum(
            len(packet[0] if isinstance(packet, tuple) else packet)
            for packet in self.packets[channel]
        )

    def send(self, packets, busy=1.0):
        """Processes that send {channel: list of (words, bad)}."""
        return [
            source(self.a.sinks[n], word_items(queue), self.random, busy)
            for n, queue in packets.items()
        ]

    def state(self, a, b, cycles=200):
        """Until both ports are in these states."""
        for _ in range(cycles):
            if ((yield self.a.state), (yield self.b.state)) == (a, b):
                return
            yield
        raise AssertionError(f"states {(yield self.a.state)} and {(yield self.b.state)}")

    def up(self):
        yield from self.state(LINK_STATE.UP, LINK_STATE.UP)

    def run(self, *more):
        run_simulation(self, [*self.processes, *more])


def pause(cycles):
    for _ in range(cycles):
        yield


def pulse(signal):
    yield signal.eq(1)
    yield
    yield signal.eq(0)
    yield
