"""A port over Ethernet with several peers, which are the test's."""

# SPDX-License-Identifier: BSD-2-Clause

from collections import Counter
from random import Random

from migen import *

from dibber.interface.ethernet import ETHERNET_KIND, ETHERNET_STATE
from dibber.link.ethernet.star import EthernetStar

from tests.gateware.link.ethernet.wire import give_frames, mac_number, take_frames
from tests.gateware.link.items import collect, word_items
from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.ethernet import BROADCAST, decode, status_frame
from tests.gateware.models.port_contract import pause

PERIOD, CHANNELS, LIMIT = 256, 4, 8
BUFFERS = (64, 64, 128, 64)
OPTIONS = dict(mtu=72, period=PERIOD, buffers=BUFFERS, queues=(32, 32, 64, 32))


def mac_of(number):
    return b"\x02\0\0\0\0" + bytes([number])


def routed(turn, words, bad=False, hops=1):
    """A packet with prefix words, as words of a sink."""
    prefixes = [turn | (hops - 1 - n) << 8 for n in range(hops)]
    items = word_items([(prefixes + words, bad)])
    for item in items:
        item["prefix"] = hops if item["first"] else 0
    return items


# A Port and Peers of the Test ---------------------------------------------------------------------


class Peer:
    """A card whose frames the test makes. `credits`: what the port gave it in its session."""

    def __init__(self, number):
        self.number, self.mac, self.nonce = number, mac_of(number), 0xA000 + number
        self.session = 0
        self.theirs = None  # the port's session with it
        self.credits = [0] * CHANNELS
        self.frames = []  # that the port sent to it
        self.gives = (4096,) * CHANNELS  # units

    def hears(self, data):
        if data[:6] not in (self.mac, BROADCAST):
            return
        frame = decode(data, self.mac)
        if data[:6] == BROADCAST:
            return
        self.frames.append(frame)
        if frame.kind == ETHERNET_KIND.STATUS:
            self.theirs = frame.status["session"]
            self.credits = list(frame.status["credit"])
        else:
            self.credits[frame.credit[0]] = frame.credit[1]

    def status(self, mac, nonce, begun=True, heard=True, credits=None):
        known = (nonce, self.theirs, mac) if heard else None
        frame = status_frame(self.mac, self.nonce, self.session, known, credits or self.gives)
        frame.status["state"] |= self.number << 4 | (ETHERNET_STATE.BEGUN if begun else 0)
        return frame.encode()


class Several:
    """A port, number 3, whose peers are the test's."""

    NUMBER, NONCE = 3, 0xBEEF

    def __init__(self, numbers, random=None, peers=3, take=1.0, **options):
        self.port = EthernetStar(peers, **OPTIONS, **options)
        self.peers = [Peer(number) for number in numbers]
        self.random, self.share = random or Random(1), take
        self.give, self.sent = [], []
        self.packets = [[] for _ in range(CHANNELS)]
        self.takes = [True] * CHANNELS
        self.counts = Counter()
        self.alive = set()  # peers that send STATUS frames by themselves

    @passive
    def _watch(self):
        heard = 0
        while True:
            for counters in (self.port.counters, self.port.frame_counters):
                for name, pulse_ in counters.items():
                    self.counts[name] += yield pulse_
            while heard < len(self.sent):
                for peer in self.peers:
                    peer.hears(self.sent[heard])
                heard += 1
            yield

    @passive
    def _keep_alive(self):
        while True:
            yield from pause(8 * PERIOD)
            self.give += [peer.status(mac_of(3), self.NONCE) for peer in self.alive]

    @passive
    def _take(self, channel):
        endpoint = self.port.sources[channel]
        while True:
            yield endpoint.ready.eq(self.takes[channel] and self.random.random() < self.share)
            yield
            yield from collect(endpoint, self.packets[channel])

    def run(self, main, *more):
        def setup():
            yield self.port.mac.eq(mac_number(mac_of(3)))
            yield self.port.nonce.eq(self.NONCE)
            yield self.port.number.eq(self.NUMBER)
            yield self.port.signal.eq(1)
            yield from main

        run_simulation(
            self.port,
            [
                setup(),
                self._watch(),
                self._keep_alive(),
                take_frames(self.port.frame_tx, self.sent),
                give_frames(self.port.frame_rx, self.give),
                *[self._take(n) for n in range(CHANNELS)],
                *more,
            ],
        )

    def say(self, peer, **fields):
        self.give.append(peer.status(mac_of(3), self.NONCE, **fields))
        yield from pause(80)

    def up(self, *peers):
        """These peers, or all, come UP and stay so."""
        for peer in peers or self.peers:
            yield from self.say(peer, heard=False, begun=False)
            yield from self.say(peer, begun=False)
            yield from self.say(peer)
            self.alive.add(peer)
        for peer in peers or self.peers:
            said = [f for f in peer.frames if f.kind == ETHERNET_KIND.STATUS][-1]
            assert said.status["state"] & ETHERNET_STATE.BEGUN

    def count_up(self):
        count = 0
        for slot in self.slots():
            count += yield slot.training.up
        return count

    def slots(self):
        return [getattr(self.port, f"slot{n}") for n in range(3)]

    def data(self, peer):
        return [frame for frame in peer.frames if frame.kind == ETHERNET_KIND.DATA]
