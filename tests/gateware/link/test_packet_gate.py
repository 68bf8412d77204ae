"""The gate in front of a bonded port's packers: in each time of UP, packets begin with `first`."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

from migen import *

from dibber.link.row_transmitter import PacketGate

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import source


def test_after_a_lost_link_or_a_reset_no_rest_of_a_packet_passes(seed):
    random, dut, items = Random(seed), PacketGate(), []
    for number in range(200):
        lines = random.randrange(1, 8)
        # A sender that was reset leaves its packet without a last line.
        sent = random.randrange(1, lines + 1) if random.random() < 0.2 else lines
        for n in range(sent):
            items.append(
                dict(data=number << 8 | n, words=8, first=int(n == 0), last=int(n == lines - 1))
            )
    whole = {item["data"] >> 8 for item in items if item["last"]}
    epochs = [[]]

    @passive
    def take():
        while True:
            yield dut.source.ready.eq(int(random.random() < 0.8))
            yield
            if (yield dut.source.valid) and (yield dut.source.ready):
                assert (yield dut.up)
                names = ("data", "words", "first", "last", "bad")
                line = []
                for name in names:
                    line.append((yield getattr(dut.source, name)))
                epochs[-1].append(line)

    @passive
    def toggle():
        while True:
            yield dut.up.eq(1)
            for _ in range(random.randrange(1, 30)):
                yield
            yield dut.up.eq(0)
            yield
            epochs.append([])
            for _ in range(random.choice((0, 0, 1, 5, 40))):
                yield

    def drain():
        for _ in range(4000):
            yield

    run_simulation(dut, [source(dut.sink, items, random, 0.5), take(), toggle(), drain()])
    passed, cut = [], 0
    for epoch in epochs:
        packet, due = None, 0
        for data, words, first, last, bad in epoch:
            if words == 0:
                # The sender was reset within this packet.
                assert packet is not None and packet not in whole and last and bad and not first
                packet, cut = None, cut + 1
                continue
            assert first == (packet is None) and not bad
            packet, due = (data >> 8, 0) if first else (packet, due + 1)
            assert data == packet << 8 | due
            if last:
                passed.append(packet)
                packet = None
    assert passed == sorted(set(passed)) and set(passed) <= whole
    assert len(passed) > 60 and cut > 5
    # The last packets have come to the gate's end.
    assert passed[-1] > 180
