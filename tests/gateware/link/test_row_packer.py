"""Lines become rows: all words of a packet, in order, with the CRCs between them."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.link.row_packer import RowPacker

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import finish


def random_packet(random):
    """[(words of the line, CRC or None)] of a packet; its last line always has a CRC."""
    lines = []
    for _ in range(random.choice((1, 1, 2, 3, 5))):
        words = random.choice((1, 2, 6, 7, 8, 9, 15, 16, 17, 64, random.randrange(1, 65)))
        part = [random.getrandbits(32) for _ in range(words)]
        lines += [[part[at : at + 8], None] for at in range(0, words, 8)]
        lines[-1][1] = random.getrandbits(32)
    return lines


def row_of(words, front):
    """(words in the next row, last) of a packet that has these left: docs/design/bonded-link.md."""
    if len(words) < 8:
        return words, True
    return words[: 7 if front else 8], False


@pytest.mark.parametrize("busy", [1.0, 0.625, 0.3])
def test_rows_have_all_words_in_order_and_gaps_only_for_control_words(busy, seed):
    random = Random(f"{seed} {busy}")
    packets = [random_packet(random) for _ in range(120)]
    dut, rows, lines, cycles = RowPacker(), [], sum(map(len, packets)), [0]
    offers = Random(f"offers {seed}")

    def give():
        for packet in packets:
            for number, (words, crc) in enumerate(packet):
                while offers.random() > (1 if busy == 1 else 0.8):
                    yield dut.sink.valid.eq(0)
                    yield
                high = offers.getrandbits(256) << 32 * len(words)
                value = sum(word << 32 * n for n, word in enumerate(words)) | high
                yield dut.sink.valid.eq(1)
                yield dut.sink.data.eq(value & 2**256 - 1)
                yield dut.sink.words.eq(len(words))
                yield dut.sink.seal.eq(crc is not None)
                yield dut.sink.crc.eq(crc if crc is not None else offers.getrandbits(32))
                yield dut.sink.last.eq(number == len(packet) - 1)
                yield
                while not (yield dut.sink.ready):
                    yield
        yield dut.sink.valid.eq(0)
        yield from finish(lambda: sum(last for *_, last in rows) == len(packets), 2000)

    @passive
    def take():
        first = True
        while True:
            # The first row of a packet has START. Any other may have RESUME.
            front = first or (busy < 1 and random.random() < 0.2)
            ready = int(random.random() <= busy)
            yield dut.front.eq(front)
            yield dut.source.ready.eq(ready)
            yield
            cycles[0] += 1
            if not (ready and (yield dut.source.valid)):
                continue
            last = yield dut.source.last
            assert (yield dut.source.first) == first
            rows.append((front, (yield dut.source.words), (yield dut.source.data), last))
            first = bool(last)

    run_simulation(dut, [give(), take()])
    got = iter(rows)
    for packet in packets:
        left = [word for words, crc in packet for word in words + [crc] * (crc is not None)]
        last = False
        while not last:
            front, count, data, said = next(got)
            words, last = row_of(left, front)
            left = left[len(words) :]
            behind = front or last
            assert (count, said) == (len(words), last)
            assert data == sum(word << 32 * (n + behind) for n, word in enumerate(words))
    assert next(got, None) is None
    if busy == 1.0:
        # A packet of n lines has n + 1 rows at most, and one more for eight CRCs.
        assert cycles[0] <= lines + 3 * len(packets)
