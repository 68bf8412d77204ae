"""Routes in front of packets, and what switches make of them."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random


from migen import *

from dibber.interface.description import C
from dibber.packet.route import Router

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.link import crc8, prefix_word, route_word


def switches(words):
    """The turns that switches took, and what was left of the packet: (turns, words). Each checks
    its own word.
    """
    words, turns = list(words), []
    while True:
        turn, behind, zero, crc = words[0].to_bytes(4, "little")
        assert zero == 0 and crc == crc8([turn, behind, 0])
        turns.append(turn)
        words.pop(0)
        if behind == 0:
            return turns, words


class Bench:
    """A router to which packets of words are played under stalls; table entries are written
    meanwhile.

    Of a packet for which no entry is written it is told beforehand only while the last word before
    it is there.
    """

    def __init__(self, random, packets, writes=(), given=lambda n: None):
        self.dut, self.random = Router(), random
        self.packets, self.writes, self.given = packets, dict(writes), given
        self.out, self.prefixes = [], []
        run_simulation(self.dut, [self._play(), self._take()])

    def _play(self):
        sink, write = self.dut.sink, self.dut.write
        for n, words in enumerate(self.packets):
            for node, route in self.writes.get(n, {}).items():
                yield write.node.eq(node)
                yield write.route.eq(route)
                yield write.strobe.eq(1)
                yield
            yield write.strobe.eq(0)
            if n in self.writes or n == 0:
                yield from self._tell(n)
                yield
            for i, word in enumerate(words):
                while self.random.random() < 0.2:
                    yield sink.valid.eq(0)
                    yield
                yield sink.valid.eq(1)
                yield sink.data.eq(word)
                yield sink.first.eq(i == 0)
                yield sink.last.eq(i == len(words) - 1)
                if i == len(words) - 1 and n + 1 < len(self.packets):
                    yield from self._tell(n + 1)
                yield
                while not (yield sink.ready):
                    # A route may change at any time; the packet that has begun goes its own way.
                    if i == 0 and self.begun:
                        yield write.node.eq(words[0] % C.NODES)
                        yield write.route.eq(route_word([9]))
                        yield write.strobe.eq(1)
                    yield
                yield write.strobe.eq(0)
                yield sink.valid.eq(0)

    def _tell(self, n):
        given = self.given(n)
        yield self.dut.node.eq(self.packets[n][0] % C.NODES)
        yield self.dut.given.eq(given is not None)
        yield self.dut.route.eq(given or 0)

    begun = False

    def _take(self):
        source, packet = self.dut.source, []
        while len(self.out) < len(self.packets):
            yield source.ready.eq(self.random.random() < 0.6)
            yield
            if (yield source.valid) and (yield source.ready):
                assert (yield source.first) == (not packet)
                if not packet:
                    self.prefixes.append((yield source.prefix))
                packet.append((yield source.data))
                self.begun = not (yield source.last)
                if (yield source.last):
                    self.out.append(packet)
                    packet = []


def packet_to(random, node):
    bits = (C.NODES - 1).bit_length()
    return [random.getrandbits(32 - bits) << bits | node] + [
        random.getrandbits(32) for _ in range(random.randrange(7))
    ]


def test_a_packet_to_a_neighbour_passes_as_it_is(seed):
    random = Random(seed)
    packets = [packet_to(random, random.randrange(C.NODES)) for _ in range(30)]
    bench = Bench(random, packets)
    assert bench.out == packets and set(bench.prefixes) == {0}


def test_every_switch_finds_its_turn_and_takes_it_off(seed):
    random = Random(seed)
    turns = {
        n: [random.randrange(16) for _ in range(n % (C.ROUTE_HOPS + 1))] for n in range(C.NODES)
    }
    table = {node: route_word(route) for node, route in turns.items()}
    nodes = [n % C.NODES for n in range(3 * C.NODES)]
    random.shuffle(nodes)
    packets, writes = [], {}
    for n, node in enumerate(nodes):
        packets.append(packet_to(random, node))
        # The entry that the bench spoils under way is put right in time.
        writes[n] = table if n == 0 else {node: table[node]}
    bench = Bench(random, packets, writes)
    assert bench.prefixes == [len(turns[node]) for node in nodes]
    for node, sent, words in zip(nodes, packets, bench.out, strict=True):
        expected = turns[node]
        assert (switches(words) if expected else ([], words)) == (expected, sent)


def test_a_scout_takes_the_route_that_it_is_given(seed):
    random = Random(seed)
    turns = [[random.randrange(16) for _ in range(random.randrange(1, 8))] for _ in range(20)]
    packets = [packet_to(random, 15) for _ in turns]
    bench = Bench(
        random,
        packets,
        {0: {15: route_word([1, 2, 3])}},
        lambda n: route_word(turns[n]) if n % 2 else None,
    )
    for n, (expected, sent, words) in enumerate(zip(turns, packets, bench.out, strict=True)):
        if n % 2:
            assert switches(words) == (expected, sent)


def test_packets_of_one_word_right_behind_one_another_go_each_its_way(seed):
    # Such are those whose flow is reset when they begin.
    random = Random(seed)
    turns = [[random.randrange(16) for _ in range(random.randrange(3))] for _ in range(60)]
    packets = [packet_to(random, 15)[: random.choice((1, 1, 2))] for _ in turns]
    bench = Bench(random, packets, given=lambda n: route_word(turns[n]))
    assert bench.prefixes == [len(expected) for expected in turns]
    for expected, sent, words in zip(turns, packets, bench.out, strict=True):
        assert (switches(words) if expected else ([], words)) == (expected, sent)


def test_the_models_prefix_word_is_the_documents():
    assert prefix_word(3, 2).to_bytes(4, "little") == bytes([3, 2, 0, crc8([3, 2, 0])])
