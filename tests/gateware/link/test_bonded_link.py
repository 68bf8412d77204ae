"""Packets between two cards' packet layers over four lanes: CRCs, port, lanes, port, inspector."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.interface.description import CHANNEL
from dibber.link.bonded_port import BondedPort
from dibber.packet.line_crc import LineCRC
from dibber.packet.row_unpacker import LineInspector

from tests.gateware.models import rows
from tests.gateware.models.drive import finish, sink, source
from tests.gateware.models.packet import Packet, encode

from tests.gateware.link.bonded_pair import BondedPair

CHANNELS = 4
FIELDS = ("data", "words", "kind", "seal", "final", "cut", "match", "bad", "last")
SLACK = (256,) * CHANNELS


class LinePort(Module):
    """A bonded port with the CRCs of its packets: lines go in, and inspected lines come out."""

    def __init__(self, period=64, **options):
        self.submodules.port = port = BondedPort(period=period, slack_rows=SLACK, **options)
        crcs = [LineCRC(256) for _ in range(CHANNELS)]
        inspectors = [LineInspector() for _ in range(CHANNELS)]
        self.submodules += crcs + inspectors
        self.comb += [crc.source.connect(line) for crc, line in zip(crcs, port.sinks)]
        self.comb += [
            chunk.connect(inspector.sink) for chunk, inspector in zip(port.sources, inspectors)
        ]
        self.sinks = [crc.sink for crc in crcs]
        self.sources = [inspector.source for inspector in inspectors]
        for name in "signal state up nonce counters tx lanes locked deskew".split():
            setattr(self, name, getattr(port, name))


class Link(BondedPair):
    """Sends packets and collects what comes, in lines. `taken`: share of cycles in which a channel
    is taken.
    """

    def __init__(self, random, taken=1.0, **options):
        super().__init__(random, kind=LinePort, **options)
        self.lines = [[] for _ in range(CHANNELS)]
        self.cycles = [[] for _ in range(CHANNELS)]
        self.processes = self.processes[:4] + [
            sink(self.b.sources[n], FIELDS, self.lines[n], Random(n), taken, self.cycles[n])
            for n in range(CHANNELS)
        ]

    def send(self, packets, busy=1.0):
        """Processes that send {channel: list of the words of a packet}."""
        return [
            source(self.a.sinks[n], self._items(queue), self.random, busy)
            for n, queue in packets.items()
        ]

    def _items(self, queue):
        for words in queue:
            lines = rows.inspected(words)
            for number, (_, line, seal, *_) in enumerate(lines):
                yield dict(
                    data=sum(word << 32 * n for n, word in enumerate(line)),
                    words=len(line),
                    seal=int(seal),
                    first=int(number == 0),
                    last=int(number == len(lines) - 1),
                )

    def received(self, channel):
        """(words without CRCs, whether it is good) of each packet that has ended."""
        packet = []
        for values in self.lines[channel]:
            line = dict(zip(FIELDS, values))
            words = [line["data"] >> 32 * n & 0xFFFFFFFF for n in range(line["words"])]
            kept = (line["kind"], words, line["seal"], line["final"], line["cut"], line["match"])
            packet.append(kept)
            if line["last"]:
                good = rows.verdict(packet) is None and not line["bad"]
                yield [word for kept in packet for word in kept[1]], good
                packet = []


def numbered(random, number, length):
    """A packet with its number in its key."""
    return Packet(1, 2, key=number, psn=number, payload=random.randbytes(length))


def body(words):
    """The words of a packet without its CRCs."""
    return [word for _, line, *_ in rows.inspected(words) for word in line]


def queues(random, count):
    lengths = (0, 0, 8, 8, 64, 256, 700)
    return {
        n: [encode(numbered(random, number, random.choice(lengths))) for number in range(count)]
        for n in range(CHANNELS)
    }


def test_packets_of_all_channels_come_whole_through_skewed_lanes(seed):
    random = Random(seed)
    link = Link(random, 0.9, skew=[random.randrange(48) for _ in range(4)])
    sent = queues(random, 12)

    def check():
        last = [sum(len(rows.inspected(words)) for words in sent[n]) for n in range(CHANNELS)]
        yield from finish(lambda: [*map(len, link.lines)] == last, 6000)

    link.run(*link.send(sent, 0.9), check())
    for n in range(CHANNELS):
        assert list(link.received(n)) == [(body(words), True) for words in sent[n]]
    assert link.counts["b"]["CODE_ERRORS"] == 0


def test_bit_errors_on_the_lanes_make_no_packet_good_that_was_not_sent_and_none_double(seed):
    random, errors = Random(seed), [0]
    live = [False]

    def fault(lane, header, data):
        """A wrong bit in one of 200 blocks, also in headers and in markers."""
        if live[0] and random.random() < 1 / 200:
            errors[0] += 1
            place = random.randrange(66)
            return (header ^ 1 << place, data) if place < 2 else (header, data ^ 1 << place - 2)
        return header, data

    link = Link(random, skew=[random.randrange(40) for _ in range(4)], fault=fault)
    sent = queues(random, 40)

    def main():
        yield from link.up()
        live[0] = True
        before = -1
        # Until nothing comes for as long as a link may need to come up again.
        while sum(map(len, link.lines)) != before:
            before = sum(map(len, link.lines))
            for _ in range(600):
                yield
        live[0] = False

    link.run(*link.send(sent), main())
    good = 0
    for n in range(CHANNELS):
        whole = [words for words, is_good in link.received(n) if is_good]
        numbers = [words[3] for words in whole]
        assert all(words == body(sent[n][words[3]]) for words in whole)
        assert numbers == sorted(set(numbers))
        good += len(whole)
    assert errors[0] > 10 and link.counts["b"]["CODE_ERRORS"] > 0
    # A wrong row ends the packets of all channels that are begun: four at most.
    assert good >= 4 * 40 - 5 * errors[0] and good > 40


@pytest.mark.parametrize("length, share", [(4096, 96.5), (8, 12.4)])
def test_the_payload_has_its_share_of_the_rows(length, share, seed, figure):
    random, count = Random(seed), 4 if length == 4096 else 60
    link = Link(random)
    sent = [encode(numbered(random, number, length)) for number in range(count)]
    total = sum(len(rows.inspected(words)) for words in sent)

    def check():
        yield from finish(lambda: len(link.lines[CHANNEL.BULK]) == total, 6000)

    link.run(*link.send({CHANNEL.BULK: sent}), check())
    assert [good for _, good in link.received(CHANNEL.BULK)] == [True] * count
    # From the first line of the second packet on; the lanes take a row in 5 of 8 cycles. Here one
    # row in 64 has markers, but one in 16384 of a card.
    cycles = link.cycles[CHANNEL.BULK]
    each = total // count
    took = (cycles[total - each] - cycles[each]) * 5 / 8 * 63 / 64
    measured = (count - 2) * length / (32 * took)
    assert figure(
        f"bonded-link-share-{length}", round(100 * measured, 2), "% of the rows", at_least=share
    )
