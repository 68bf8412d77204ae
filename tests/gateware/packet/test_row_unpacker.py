"""Rows become lines again: those of the model, for whole packets and for wrong ones."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.interface.description import PACKET_FLAG
from dibber.packet.line_crc import LineCRC
from dibber.link.row_packer import RowPacker
from dibber.packet.row_unpacker import LineInspector

from tests.gateware.models import rows
from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import finish, sink, source
from tests.gateware.models.packet import LEVELS, Packet, PacketError, decode, encode, random_walk

LENGTHS = (0, 0, 1, 4, 8, 28, 31, 32, 33, 252, 255, 256, 257, 288, 512, 515, 1024)


def random_packet(random):
    """The words of a good packet, with any extension and payload."""
    levels = random.choice((0, 0, 0, random.randrange(LEVELS)))
    return encode(
        Packet(
            random.getrandbits(16),
            random.getrandbits(16),
            flags=random.choice((0, PACKET_FLAG.LAST)),
            psn=random.getrandbits(16),
            key=random.getrandbits(32),
            payload=random.randbytes(random.choice(LENGTHS)),
            notice=random.choice((None, None, (random.getrandbits(32), 5, 1))),
            **random_walk(random, levels),
        )
    )


def spoil(random, words):
    """Another packet: with wrong bits, cut off, or with words behind its end."""
    words, kind = list(words), random.randrange(4)
    if kind == 0:
        for _ in range(random.choice((1, 1, 3))):
            words[random.randrange(len(words))] ^= 1 << random.randrange(32)
    elif kind == 1:
        words = words[: random.randrange(len(words))]
    elif kind == 2:
        words += [random.getrandbits(32) for _ in range(random.randrange(1, 20))]
    else:
        words = [random.getrandbits(32) for _ in range(random.randrange(1, 60))]
        words[5:6] = [random.getrandbits(9) << 16] * (len(words) > 5)
    return words


def chunk_items(random, packets):
    """Stream items of [(words, bad)]; what stands above the words of a chunk may be anything."""
    for words, bad in packets:
        chunks = rows.chunks_of(random, words)
        for number, chunk in enumerate(chunks):
            last = number == len(chunks) - 1
            value = sum(word << 32 * n for n, word in enumerate(chunk))
            value |= random.getrandbits(256) << 32 * len(chunk)
            yield dict(
                data=value & 2**256 - 1,
                words=len(chunk),
                first=int(number == 0),
                last=int(last),
                bad=int(bad) if last else random.getrandbits(1),
            )


FIELDS = ("first", "last", "data", "words", "kind", "seal", "final", "cut", "bad", "match")


def checked(got, packets):
    """Compare lines with those of the model."""
    got = iter(got)
    for words, bad in packets:
        due = rows.inspected(words)
        for number, (kind, line, seal, final, cut, match) in enumerate(due):
            last = number == len(due) - 1
            value = dict(zip(FIELDS, next(got)))
            shown = (value["kind"], value["words"], value["seal"], value["final"], value["cut"])
            assert shown == (kind, len(line), seal, final, cut), (number, len(words))
            assert value["data"] == sum(word << 32 * n for n, word in enumerate(line))
            assert (value["first"], value["last"]) == (number == 0, last)
            assert not (seal and not cut) or value["match"] == match
            assert not last or value["bad"] == bad
    assert next(got, None) is None


@pytest.mark.parametrize("busy", [1.0, 0.625, 0.3])
def test_rows_become_the_lines_of_the_model_however_wrong_the_packets_are(busy, seed):
    random = Random(f"{seed} {busy}")
    packets = []
    for _ in range(150):
        words, spoilt = random_packet(random), random.random() < 0.5
        packets.append((spoil(random, words) if spoilt else words, random.random() < 0.1))
    due = sum(len(rows.inspected(words)) for words, _ in packets)
    dut, got, cycles = LineInspector(), [], []
    items = list(chunk_items(random, packets))

    def check():
        yield from finish(lambda: len(got) >= due, 40000)
        for _ in range(20):
            yield

    run_simulation(
        dut,
        [
            source(dut.sink, items, random, busy),
            sink(dut.source, FIELDS, got, Random(f"taken {seed}"), busy, cycles),
            check(),
        ],
    )
    checked(got, packets)
    if busy == 1.0:
        # A chunk or a line a cycle; a packet's end may wait for a line more than there are chunks.
        assert cycles[-1] <= max(len(items), due) + 2 * len(packets) + 6


def test_the_lines_of_a_packet_tell_what_the_whole_packet_tells(seed):
    """Of each packet that is wrong on the wire, the lines have the golden model's verdict."""
    random, seen = Random(seed), set()
    for _ in range(400):
        words = random_packet(random)
        words = spoil(random, words) if random.random() < 0.8 else words
        found = rows.verdict(rows.inspected(words))
        try:
            decode(words)
            expected = None
        except PacketError as error:
            expected = str(error)
        # Fields that contradict each other are judged behind the lines.
        if expected == "PACKET_TRUNCATED" and found is None:
            continue
        if found != expected:
            # A contradiction is found at the header, before the fault of a block.
            assert expected == "PACKET_TRUNCATED" and found == "PAYLOAD_CRC_ERROR"
        seen.add(found)
    assert seen == {None, "PACKET_TRUNCATED", "HEADER_CRC_ERROR", "PAYLOAD_CRC_ERROR"}


class Wire(Module):
    """From the lines of a sender to those of a receiver, without a link."""

    def __init__(self):
        self.submodules.crc = crc = LineCRC(256)
        self.submodules.packer = packer = RowPacker()
        self.submodules.inspector = inspector = LineInspector()
        self.resume = Signal()  # the row has a RESUME
        row, chunk = packer.source, inspector.sink
        self.comb += [
            crc.source.connect(packer.sink),
            packer.front.eq(row.first | self.resume),
            chunk.valid.eq(row.valid),
            row.ready.eq(chunk.ready),
            chunk.first.eq(row.first),
            chunk.last.eq(row.last),
            chunk.words.eq(row.words),
            chunk.data.eq(Mux(packer.front | row.last, row.data[32:], row.data)),
        ]


def test_the_lines_of_a_sender_come_back_with_matching_crcs(seed):
    random = Random(seed)
    packets = [random_packet(random) for _ in range(80)]
    dut, got = Wire(), []
    due = [rows.inspected(words) for words in packets]
    items = [
        dict(
            data=sum(word << 32 * n for n, word in enumerate(line)),
            words=len(line),
            seal=int(seal),
            last=int(number == len(lines) - 1),
        )
        for lines in due
        for number, (_, line, seal, *_) in enumerate(lines)
    ]

    @passive
    def resume():
        while True:
            # It may change in each cycle, because a row leaves in the cycle in which it is taken.
            yield dut.resume.eq(random.random() < 0.2)
            yield

    run_simulation(
        dut,
        [
            source(dut.crc.sink, items, random, 0.9),
            sink(dut.inspector.source, FIELDS, got, random, 0.8),
            resume(),
            finish(lambda: len(got) == len(items), 20000),
        ],
    )
    checked(got, [(words, False) for words in packets])
    assert all(rows.verdict(lines) is None for lines in due)
