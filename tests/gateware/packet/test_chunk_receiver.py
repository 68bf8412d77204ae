"""Packets that come as chunks of the bonded link: what they do is what they do as words."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.packet.check import BLOCK_CRC, HEADER, HEADER_CRC, PAYLOAD, WordInspector
from dibber.packet.chunk_inspector import ChunkInspector

from tests.gateware.models.chunks import ChunkJoiner, ChunkReceiver
from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import finish, sink, source
from tests.gateware.models.packet import Packet, encode
from tests.gateware.packet import test_packet_receiver as receive
from tests.gateware.packet.test_row_unpacker import chunk_items, random_packet, spoil


@pytest.fixture(autouse=True)
def by_chunks(monkeypatch):
    monkeypatch.setattr(receive, "PacketReceiver", ChunkReceiver)


def test_good_packets_of_several_flows_come_out_in_order_on_both_lanes(seed):
    receive.test_good_packets_of_several_flows_come_out_in_order_on_both_lanes(256, seed)


def test_whatever_happens_to_packets_no_unchecked_byte_comes_out(seed):
    receive.test_whatever_happens_to_packets_no_unchecked_byte_comes_out(256, seed)


# Inspector ----------------------------------------------------------------------------------------

KINDS = ("kind", "position", "data", "match", "final", "first", "last", "bad")


class Words(Module):
    """What an inspector gives, and a sink of words in front of it."""

    def __init__(self, width):
        self.submodules.inspector = inspector = ChunkInspector(width)
        self.submodules.joiner = joiner = ChunkJoiner()
        self.comb += joiner.source.connect(inspector.sink)
        self.sink, self.source = joiner.sink, inspector.source


def wire_words(packets):
    """Stream items of [(words, bad)]."""
    return [
        dict(data=word, first=int(n == 0), last=int(last), bad=int(bad and last))
        for words, bad in packets
        for n, word in enumerate(words)
        for last in [n == len(words) - 1]
    ]


def told(word):
    """What the receivers read of a word; of one behind the last CRC, only the packet's end."""
    names = {
        HEADER: ("position", "data"),
        HEADER_CRC: ("match",),
        # A packet that ends with payload is cut off, whatever `final` says.
        PAYLOAD: ("data",) if word["last"] else ("data", "final"),
        BLOCK_CRC: ("match", "final"),
    }
    if word["kind"] not in names:
        return {"bad": word["bad"]} if word["last"] else None
    names = ("kind", "last", *names[word["kind"]], *(["bad"] if word["last"] else []))
    return {name: word[name] for name in names}


def test_a_packet_by_chunks_has_the_words_of_a_packet_by_words(seed):
    random, busy = Random(seed), 0.8
    packets = []
    for _ in range(30):
        words = random_packet(random)
        if random.random() < 0.4:
            words = spoil(random, words)
        if len(words) > 1:
            packets.append((words, random.random() < 0.1))
    seen = []
    for dut in (WordInspector(extended=True), Words(32)):
        got = []
        run_simulation(
            dut,
            [
                source(dut.sink, wire_words(packets), Random(seed), busy),
                sink(dut.source, KINDS, got, Random(seed), busy),
                finish(lambda: sum(word[-2] for word in got) == len(packets), 30000),
            ],
        )
        seen.append([told(dict(zip(KINDS, word))) for word in got])
    # Words behind the last CRC come alone or together.
    due, words = ([word for word in words if word] for words in seen)
    assert words == due


def test_the_longest_packet_takes_fewer_cycles_than_its_rows(seed):
    """132 rows of 4096 bytes come in 211 cycles: the lanes give a row in 5 of 8 cycles."""
    random, got, cycles, count = Random(seed), [], [], 4
    words = encode(Packet(1, 2, payload=random.randbytes(4096)))
    items = list(chunk_items(random, [(words, False)] * count))
    dut = ChunkInspector(256)
    run_simulation(
        dut,
        [
            source(dut.sink, items, random),
            sink(dut.source, ("last",), got, random, 1.0, cycles),
            finish(lambda: sum(last for (last,) in got) == count, 2000),
        ],
    )
    ends = [cycle for cycle, (last,) in zip(cycles, got) if last]
    assert max(b - a for a, b in zip(ends, ends[1:])) <= 160
