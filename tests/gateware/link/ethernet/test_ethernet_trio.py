"""Three ports over Ethernet and a switch between them."""

# SPDX-License-Identifier: BSD-2-Clause

from collections import Counter
from random import Random

from migen import *

from dibber.link.ethernet.star import EthernetStar

from tests.gateware.link.ethernet.several import CHANNELS, OPTIONS, mac_of, routed
from tests.gateware.link.ethernet.wire import give_frames, mac_number, take_frames
from tests.gateware.link.items import collect
from tests.gateware.link.pair import pulse
from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import finish, growing, source
from tests.gateware.models.ethernet import BROADCAST
from tests.gateware.models.port_contract import pause


class Trio(Module):
    """Three ports, numbers 1, 6 and 12, and a switch between them that loses frames."""

    NUMBERS = (1, 6, 12)

    def __init__(self, random, loss=0.0):
        self.ports = [EthernetStar(2, **OPTIONS) for _ in self.NUMBERS]
        self.submodules += self.ports
        self.loss, self.random = loss, random
        self.sent = [[] for _ in self.ports]
        self.came = [[] for _ in self.ports]
        self.packets = [[[] for _ in range(CHANNELS)] for _ in self.ports]
        self.queues = [[[] for _ in range(CHANNELS)] for _ in self.ports]
        self.counts = [Counter() for _ in self.ports]

    @passive
    def _switch(self):
        done = [0] * 3
        while True:
            for n, sent in enumerate(self.sent):
                while done[n] < len(sent):
                    frame = sent[done[n]]
                    done[n] += 1
                    for other in range(3):
                        target = frame[:6] in (BROADCAST, mac_of(self.NUMBERS[other]))
                        if other != n and target and self.random.random() >= self.loss:
                            self.came[other].append(frame)
            yield

    @passive
    def _watch(self):
        for port, number in zip(self.ports, self.NUMBERS):
            yield port.mac.eq(mac_number(mac_of(number)))
            yield port.nonce.eq(number)
            yield port.number.eq(number)
            yield port.signal.eq(1)
        while True:
            for port, counts in zip(self.ports, self.counts):
                for name in ("LINK_LOST", "LINK_TRAINED"):
                    counts[name] += yield port.counters[name]
            yield

    @passive
    def _take(self, n, channel):
        endpoint = self.ports[n].sources[channel]
        while True:
            yield endpoint.ready.eq(self.random.random() < 0.8)
            yield
            yield from collect(endpoint, self.packets[n][channel])

    def all_up(self):
        slots = [getattr(port, f"slot{n}") for port in self.ports for n in (0, 1)]
        count = 0
        while count < len(slots):
            yield
            count = 0
            for slot in slots:
                count += yield slot.training.up

    def send(self, n, other, channel, words):
        turn = (self.NUMBERS[other] - self.NUMBERS[n]) % 16
        self.queues[n][channel] += routed(turn, words)

    def run(self, main):
        run_simulation(
            self,
            [
                main,
                self._switch(),
                self._watch(),
                *[take_frames(port.frame_tx, sent) for port, sent in zip(self.ports, self.sent)],
                *[give_frames(port.frame_rx, came) for port, came in zip(self.ports, self.came)],
                *[self._take(n, c) for n in range(3) for c in range(CHANNELS)],
                *[
                    source(port.sinks[c], growing(queue), self.random, 0.9)
                    for port, queues in zip(self.ports, self.queues)
                    for c, queue in enumerate(queues)
                ],
            ],
        )


def test_three_ports_send_to_each_other_through_a_switch_and_a_reset_of_one_spares_the_rest(seed):
    random = Random(seed)
    trio = Trio(random)
    sent = {}

    def load(pairs, count, base):
        for n, other in pairs:
            for c in range(CHANNELS):
                for number in range(count):
                    words = [n << 16 | base + number, *[number] * random.randrange(30)]
                    sent.setdefault((n, other, c), []).append((words, True))
                    trio.send(n, other, c, words)

    def came(n, other, c):
        packets = trio.packets[other][c]
        return [p for p in packets if isinstance(p, tuple) and p[0][0] >> 16 == n]

    pairs = [(n, other) for n in range(3) for other in range(3) if n != other]

    def main():
        yield from trio.all_up()
        load(pairs, 5, 0)
        yield from finish(lambda: all(came(*key) == sent[key] for key in sent), 12000)
        # The third is reset while the first two talk.
        load([(0, 1), (1, 0)], 8, 100)
        yield from pause(100)
        yield from pulse(trio.ports[2].retrain)
        two = [key for key in sent if 2 not in key[:2]]
        yield from finish(lambda: all(came(*key) == sent[key] for key in two), 12000)
        yield from trio.all_up()
        load(pairs, 2, 200)
        yield from finish(lambda: all(came(*key) == sent[key] for key in sent), 12000)

    trio.run(main())
    lost = [counts["LINK_LOST"] for counts in trio.counts]
    assert lost[0] == lost[1] == 1 and lost[2] >= 1


def test_three_ports_come_up_and_send_whole_packets_though_frames_are_lost(seed):
    random = Random(seed)
    trio = Trio(random, loss=0.1)
    pairs = [(n, other) for n in range(3) for other in range(3) if n != other]

    def main():
        yield from trio.all_up()
        for n, other in pairs:
            for number in range(12):
                trio.send(n, other, 2, [n << 16 | number, *[number] * random.randrange(60)])
        yield from pause(6000)

    trio.run(main())
    for n, other in pairs:
        found = [p for p in trio.packets[other][2] if isinstance(p, tuple)]
        numbers = [words[0] & 0xFFFF for words, good in found if words[0] >> 16 == n and good]
        assert numbers == sorted(set(numbers)) and len(numbers) > 4
        assert all(set(words[1:]) <= {words[0] & 0xFFFF} and good for words, good in found)


def test_units_whose_frames_were_all_lost_give_their_room_back(seed):
    """All frames are lost until each channel waits for credit of a peer that has room."""
    trio = Trio(Random(seed))
    numbers = range(30)

    def main():
        yield from trio.all_up()
        trio.loss = 1.0
        for c in range(CHANNELS):
            for number in numbers:
                trio.send(0, 1, c, [number, *[0] * 14])
        for _ in range(4000):
            yield
            if (yield trio.ports[0].stopped) == (1 << CHANNELS) - 1:
                break
        else:
            raise AssertionError("some channel never waits for credit")
        trio.loss = 0.0
        yield from finish(
            lambda: all(
                p and isinstance(p[-1], tuple) and p[-1][0][0] == numbers[-1]
                for p in trio.packets[1]
            ),
            20000,
        )

    trio.run(main())
    assert trio.counts[1]["LINK_LOST"] == 0
