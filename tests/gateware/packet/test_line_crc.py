"""CRCs of packets that come as lines: those of the words, at each width."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.packet.line_crc import LineCRC

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import finish
from tests.gateware.models.packet import crc32c

BLOCK = 256


def parts_of(random):
    """(header with extension, blocks) of a packet, as bytes; the last block may be shorter."""
    header = random.randbytes(4 * random.choice((6, 6, 7, 9, 10, 14, 18)))
    words = random.choice((0, 1, 2, 7, 8, 9, 63, 64, 65, 128, 129, 1024))
    payload = random.randbytes(4 * words)
    return header, [payload[at : at + BLOCK] for at in range(0, len(payload), BLOCK)]


def lines_of(parts, width):
    """(bytes, whether the part ends, whether the packet ends) of each line, and the CRCs."""
    header, blocks = parts
    size, lines = width // 8, []
    for part in (header, *blocks):
        lines += [
            [part[at : at + size], at + size >= len(part), False]
            for at in range(0, len(part), size)
        ]
    lines[-1][2] = True
    first = crc32c(header)
    return lines, [first] + [crc32c(block, first ^ n) for n, block in enumerate(blocks)]


@pytest.mark.parametrize("busy", [1.0, 0.6])
@pytest.mark.parametrize("width", [64, 128, 256])
def test_lines_get_the_crcs_of_their_words(width, busy, seed):
    random = Random(f"{seed} {width} {busy}")
    packets = [lines_of(parts_of(random), width) for _ in range(30)]
    sent = [line for lines, _ in packets for line in lines]
    due = [crc for _, crcs in packets for crc in crcs]
    dut, got, crcs, cycles = LineCRC(width), [], [], [0]

    def give():
        for data, seal, last in sent:
            while random.random() > busy:
                yield dut.sink.valid.eq(0)
                yield
            yield dut.sink.valid.eq(1)
            # What stands above the words that count may be anything.
            high = random.getrandbits(width) << 8 * len(data)
            value = (int.from_bytes(data, "little") | high) & 2**width - 1
            yield dut.sink.data.eq(value)
            yield dut.sink.words.eq(len(data) // 4)
            yield dut.sink.seal.eq(seal)
            yield dut.sink.last.eq(last)
            yield
            while not (yield dut.sink.ready):
                yield
        yield dut.sink.valid.eq(0)
        yield from finish(lambda: len(got) == len(sent), 1000)

    @passive
    def take():
        while True:
            ready = int(random.random() <= busy)
            yield dut.source.ready.eq(ready)
            yield
            cycles[0] += len(got) < len(sent)
            if ready and (yield dut.source.valid):
                size = 4 * (yield dut.source.words)
                value = (yield dut.source.data) & 2 ** (8 * size) - 1
                line = [value.to_bytes(size, "little")]
                got.append([*line, bool((yield dut.source.seal)), bool((yield dut.source.last))])
                if got[-1][1]:
                    crcs.append((yield dut.source.crc))

    run_simulation(dut, [give(), take()])
    assert got == sent
    assert crcs == due
    if busy == 1.0:
        # A line a cycle, and 4 cycles from the first line to its place at the source.
        assert cycles[0] == len(sent) + 4
