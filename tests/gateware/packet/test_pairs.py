"""Words of 64 bits on channel BULK: the same packets as with words of 32 bits."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from litex.soc.interconnect import stream

from dibber.layouts import word_layout
from dibber.packet.pairs import PairJoiner, PairSplitter

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import finish, sink, source
from tests.gateware.models.pairs import WideReceiver, WideTransmitter, pairs_of
from tests.gateware.packet import test_packet_receiver as receive
from tests.gateware.packet import test_packet_transmitter as transmit

WIDTHS = pytest.mark.parametrize("data_width", [64, 128, 256])


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setattr(receive, "PacketReceiver", WideReceiver)
    monkeypatch.setattr(transmit, "PacketTransmitter", WideTransmitter)


# Joiner and Splitter ------------------------------------------------------------------------------


def random_pairs(random, count=60):
    """Packets of one word on, as (words, pairs, bad)."""
    packets = []
    for _ in range(count):
        words = [random.getrandbits(32) for _ in range(random.randrange(1, 20))]
        packets.append((words, random.random() < 0.2))
    return packets


def items(packets, cut):
    """Words of 64 bits for a sink, of packets that `cut` makes into (data, half)."""
    return [
        dict(
            data=data,
            half=half,
            first=int(n == 0),
            last=int(n == len(pairs) - 1),
            bad=int(bad and n == len(pairs) - 1),
        )
        for words, bad in packets
        for pairs in [cut(words)]
        for n, (data, half) in enumerate(pairs)
    ]


FIELDS = ("data", "half", "first", "last", "bad")


def words_of(taken, dense):
    """(words, bad) of each packet in what was taken. `dense`: only a last word may be half."""
    packets, words = [], []
    for data, half, first, last, bad in taken:
        assert bool(first) == (not words) and (last or not bad)
        assert last or not (dense and half)
        words += [data & 0xFFFFFFFF] + ([] if half else [data >> 32])
        if last:
            packets.append((words, bool(bad)))
            words = []
    assert not words
    return packets


def test_the_joiner_fills_words_up_under_random_stalls(seed):
    random, taken = Random(seed), []

    def cut(words):
        # The last word goes alone, as a CRC does.
        return pairs_of(words[:-1], random) + [(words[-1], 1)]

    packets = random_pairs(random)
    dut = PairJoiner()
    run_simulation(
        dut,
        [
            source(dut.sink, items(packets, cut), random, 0.8),
            sink(dut.source, FIELDS, taken, random, 0.7),
            finish(lambda: sum(word[3] for word in taken) == len(packets), 4000),
        ],
    )
    assert words_of(taken, dense=True) == packets


def test_the_joiner_forgets_a_word_of_a_packet_whose_sender_was_reset(seed):
    random, taken = Random(seed), []
    dut = PairJoiner()
    offered = [
        dict(data=1, half=1, first=1, last=0, bad=0),
        dict(data=2, half=1, first=1, last=0, bad=0),  # another packet
        dict(data=3 | 4 << 32, half=0, first=0, last=0, bad=0),
        # Behind three words; its high half has no place, and the packet is bad.
        dict(data=5 | 6 << 32, half=0, first=0, last=1, bad=1),
    ]
    run_simulation(
        dut,
        [
            source(dut.sink, offered, random, 0.8),
            sink(dut.source, FIELDS, taken, random, 0.7),
            finish(lambda: len(taken) == 2, 200),
        ],
    )
    assert taken == [(2 | 3 << 32, 0, 1, 0, 0), (4 | 5 << 32, 0, 0, 1, 1)]


class Wishing(Module):
    """A splitter whose reader wants something else behind each word that it takes."""

    def __init__(self, wishes, count):
        self.submodules.splitter = splitter = PairSplitter()
        self.sink, self.source = splitter.sink, stream.Endpoint(word_layout(64))
        left = Signal(count, reset=wishes)
        self.comb += [
            splitter.pair.eq(left[0]),
            splitter.source.connect(self.source, omit={"data"}),
            # The high half of a single word means nothing.
            self.source.data[:32].eq(splitter.source.data[:32]),
            If(~self.source.half, self.source.data[32:].eq(splitter.source.data[32:])),
        ]
        self.sync += If(self.source.valid & self.source.ready, left.eq(left >> 1))


def test_the_splitter_gives_one_or_two_words_as_they_are_wanted(seed):
    random, taken = Random(seed), []
    packets = random_pairs(random)
    count = sum(len(words) for words, _ in packets)
    wishes = random.getrandbits(count)
    dut = Wishing(wishes, count)
    run_simulation(
        dut,
        [
            source(dut.sink, items(packets, lambda words: pairs_of(words, random)), random, 0.8),
            sink(dut.source, FIELDS, taken, random, 0.7),
            finish(lambda: sum(word[3] for word in taken) == len(packets), 6000),
        ],
    )
    assert words_of(taken, dense=False) == packets
    for n, (_, half, _, last, _) in enumerate(taken):
        assert half == 1 - (wishes >> n & 1) or (half and last)


def test_words_in_front_of_a_first_one_are_skipped(seed):
    random, taken = Random(seed), []
    dut = PairSplitter()
    rest = [dict(data=9, half=0, first=0, last=last, bad=0) for last in (0, 1)]
    packets = [([7], False)]
    run_simulation(
        dut,
        [
            source(dut.sink, rest + items(packets, pairs_of), random),
            sink(dut.source, FIELDS, taken, random),
            finish(lambda: bool(taken), 200),
        ],
    )
    assert words_of(taken, dense=True) == packets


# Transmitter --------------------------------------------------------------------------------------


@WIDTHS
def test_packets_leave_as_the_model_says(data_width, seed):
    transmit.test_packets_leave_as_the_model_says(data_width, seed)


def test_each_packet_takes_the_way_to_its_node(seed):
    transmit.test_each_packet_takes_the_way_to_its_node(seed)


# Receiver -----------------------------------------------------------------------------------------


@WIDTHS
def test_good_packets_of_several_flows_come_out_in_order_on_both_lanes(data_width, seed):
    receive.test_good_packets_of_several_flows_come_out_in_order_on_both_lanes(data_width, seed)


@WIDTHS
def test_whatever_happens_to_packets_no_unchecked_byte_comes_out(data_width, seed):
    receive.test_whatever_happens_to_packets_no_unchecked_byte_comes_out(data_width, seed)
