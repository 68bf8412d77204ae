# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Framing against the golden model, and against symbols that are not what they were."""

from random import Random

import pytest

from migen import *

from dibber.link.framing import LinkReceiver, LinkTransmitter
from dibber.link.symbols import FLOW_PERIOD_WORDS, FLOW_REPEAT_WORDS, FLOW_REPEATS

from gateware.models.compiled import run_simulation
from gateware.models.cable import cable, play
from gateware.models.drive import finish, source
from gateware.models.packet import deframe, flow_word, frame

IDLE = flow_word(0x80)


def word_items(packets):
    """(words, bad) packets as items for a word stream."""
    return [dict(data=word, first=int(i == 0), last=int(i == len(words) - 1), bad=int(bad and i == len(words) - 1))
            for words, bad in packets for i, word in enumerate(words)]


def random_words(random, longest=40):
    return [random.getrandbits(32) for _ in range(random.randrange(1, longest))]


# Transmitter --------------------------------------------------------------------------------------

class Sender:
    """A transmitter whose symbols are logged. `packets`: for each channel a list of (words, bad)."""
    def __init__(self, random, packets, busy=1.0, serial_busy=1.0):
        self.dut, self.log = LinkTransmitter(2), []
        rx = LinkReceiver(2)  # only for its sink: the cable needs an end
        self.processes = [
            self._start(),
            cable(self.dut.source, rx.sink, log=self.log, busy=lambda: random.random() < serial_busy),
            *[source(sink, word_items(p), random, busy) for sink, p in zip(self.dut.sinks, packets)]]

    def _start(self):
        yield self.dut.up.eq(1)
        yield self.dut.go.eq(3)
        yield self.dut.flow.eq(0x80)

    def run(self, *more):
        run_simulation(self.dut, [*self.processes, *more])

    def packets(self):
        return deframe(self.log)


def test_packets_are_framed_as_the_model_says(seed):
    random  = Random(seed)
    packets = [[(random_words(random, 12), False) for _ in range(6)],
               [(random_words(random), n % 3 == 1) for n in range(6)]]
    sender  = Sender(random, packets, busy=0.8, serial_busy=0.8)
    sender.run(finish(lambda: len(sender.packets()) == 12, 2000))
    for channel in (0, 1):
        assert [(words, good) for c, words, good in sender.packets() if c == channel] == \
            [(words, not bad) for words, bad in packets[channel]]


def test_flow_words_come_at_once_when_they_change_soon_again_and_every_256_words(seed):
    random = Random(seed)
    sender = Sender(random, [[], [(random_words(random, 2)*500, False)]])
    changed = []

    def change():
        for _ in range(150):
            yield
        yield sender.dut.flow.eq(0x82)
        changed.append(len(sender.log))
        for _ in range(600):
            yield

    sender.run(change())
    flows = [i for i, (data, k) in enumerate(sender.log) if k and data & 0xff == 0xbc]
    assert max(b - a for a, b in zip(flows, flows[1:])) == FLOW_PERIOD_WORDS
    told = [i for i, word in enumerate(sender.log) if word == flow_word(0x82)]
    assert told[0] - changed[0] <= 3
    assert told[FLOW_REPEATS] - told[0] <= FLOW_REPEATS*FLOW_REPEAT_WORDS


def test_control_goes_first_at_packet_boundaries(seed):
    random = Random(seed)
    sender = Sender(random, [[([n], False) for n in range(3)], [([n]*20, False) for n in range(3)]])
    sender.run(finish(lambda: len(sender.packets()) == 6, 300))
    assert [channel for channel, _, _ in sender.packets()] == [0, 0, 0, 1, 1, 1]


def test_stop_holds_a_channel_even_inside_a_packet(seed):
    sender = Sender(Random(seed), [[([7], False)], [(list(range(60)), False)]])

    def stop():
        yield from sender._start()
        yield sender.dut.go.eq(0b10)
        yield from finish(lambda: len(sender.log) > 20, 100)
        yield sender.dut.go.eq(0b00)
        yield
        yield
        at = len(sender.log)
        assert (yield sender.dut.waits)
        for _ in range(30):
            yield
        assert all(k for _, k in sender.log[at + 1:])
        yield sender.dut.go.eq(0b11)
        yield from finish(lambda: len(sender.packets()) == 2, 200)

    run_simulation(sender.dut, [*sender.processes[1:], stop()])
    assert sender.packets() == [(1, list(range(60)), True), (0, [7], True)]


def test_a_channel_that_is_stopped_holds_no_other(seed):
    sender = Sender(Random(seed), [[([n], False) for n in range(3)], [([8, 9], False)]])

    def stop():
        yield from sender._start()
        yield sender.dut.go.eq(0b01)
        yield from finish(lambda: len(sender.packets()) == 3, 100)
        assert (yield sender.dut.waits)
        yield sender.dut.go.eq(0b11)
        yield from finish(lambda: len(sender.packets()) == 4, 100)

    run_simulation(sender.dut, [*sender.processes[1:], stop()])
    assert [channel for channel, _, _ in sender.packets()] == [0, 0, 0, 1]


def test_a_packet_begun_when_the_link_is_lost_goes_nowhere_and_the_next_one_whole(seed):
    sender = Sender(Random(seed), [[], [(list(range(60)), False), ([5, 6], False)]])

    def lose():
        yield from finish(lambda: len(sender.log) > 30, 100)
        yield sender.dut.up.eq(0)
        for _ in range(100):
            yield
        yield sender.dut.up.eq(1)
        yield from finish(lambda: sender.log[-1] == (0xfd, 1), 100)

    sender.run(lose())
    assert sender.packets() == [(1, sender.packets()[0][1], False), (1, [5, 6], True)]


def test_a_beginning_inside_a_packet_ends_it_as_bad(seed):
    random = Random(seed)
    sender = Sender(random, [[], []])
    items  = word_items([([1, 2, 3], False), ([4, 5], False)])
    del items[2]  # the sender of 1, 2, 3 was reset before its last word
    run_simulation(sender.dut, [*sender.processes[:2], source(sender.dut.sinks[1], items, random),
                                finish(lambda: len(sender.packets()) == 2, 100)])
    assert sender.packets() == [(1, [1, 2], False), (1, [4, 5], True)]


# Receiver -----------------------------------------------------------------------------------------

def receive(symbols, rotate=0):
    """The packets that a receiver makes of symbols: (channel, words, good), and what it still holds."""
    dut, packets, words, counts = LinkReceiver(2), [], [[], []], [0, 0]

    @passive
    def watch():
        yield dut.up.eq(1)
        yield dut.hunt.eq(1)
        for n in range(8 + len(symbols)):
            if n == 6:
                yield dut.hunt.eq(0)
            counts[0] += yield dut.code_error
            counts[1] += yield dut.disparity_error
            for channel, endpoint in enumerate(dut.sources):
                if (yield endpoint.valid):
                    assert (yield endpoint.first) == (not words[channel])
                    assert (yield endpoint.channel) == channel
                    words[channel].append((yield endpoint.data))
                    if (yield endpoint.last):
                        packets.append((channel, words[channel], not (yield endpoint.bad)))
                        words[channel] = []
            yield

    symbols = [(*word, 0, 0)[:4] for word in [IDLE]*5 + symbols + [IDLE]*2]
    if rotate:
        flat    = [(d >> 8*n & 0xff, k >> n & 1, c >> n & 1, e >> n & 1) for d, k, c, e in symbols for n in range(4)]
        flat    = [(0, 0, 0, 0)]*rotate + flat[:-rotate]
        symbols = [tuple(sum(s[i] << (8*n if i == 0 else n) for n, s in enumerate(flat[at:at + 4])) for i in range(4))
                   for at in range(0, len(flat), 4)]

    def wait():
        for _ in range(len(symbols) + 4):
            yield

    run_simulation(dut, [play(dut.sink, symbols), watch(), wait()])
    return packets, words, counts


@pytest.mark.parametrize("rotate", range(4))
def test_words_are_found_in_any_lane(rotate, seed):
    random  = Random(seed)
    packets = [(random.randrange(2), random_words(random, 8), random.random() < 0.7) for _ in range(6)]
    symbols = []
    for channel, words, good in packets:
        framed   = frame(words, channel, bad=not good)
        at       = random.randrange(len(framed))
        symbols += framed[:at] + [IDLE]*random.randrange(3) + framed[at:]
    assert receive(symbols, rotate) == (packets, [[], []], [0, 0])


def test_an_erroneous_symbol_ends_its_packet_as_bad_and_is_counted():
    words  = [11, 12, 13, 14]
    framed = frame(words)
    for at in range(1, len(framed)):
        for lane, error in ((0, "code"), (3, "disparity")):
            flags   = (1 << lane, 0) if error == "code" else (0, 1 << lane)
            symbols = framed[:at] + [(*framed[at], *flags)] + framed[at + 1:] + frame([99])
            packets, _, counts = receive(symbols)
            assert packets == ([(1, words[:at - 1], False)] if at > 1 else []) + [(1, [99], True)]
            assert counts == [int(error == "code"), int(error == "disparity")]


def test_a_packet_without_its_start_is_not_one():
    start = frame([1, 2])[0]
    for broken in ((start[0] ^ 0x100, 1), (start[0] ^ 0x10000, 1), (start[0] ^ 0x01000000, 1), (start[0] | 0x200, 1),
                   (start[0], 0), (start[0], 3), (*start, 1, 0)):
        assert receive([broken] + frame([1, 2])[1:] + frame([3]))[0] == [(1, [3], True)]


def test_a_packet_without_its_end_ends_as_bad():
    assert receive(frame([1, 2])[:-1] + frame([3]))[0] == [(1, [1, 2], False), (1, [3], True)]
    for broken in ((0xfd | 0x100, 1), (0xfc, 1), (0xfe, 1), (0xfd, 9)):
        assert receive(frame([1, 2])[:-1] + [broken] + frame([3]))[0] == [(1, [1, 2], False), (1, [3], True)]


def test_a_flow_word_that_contradicts_itself_is_not_heard():
    dut, heard = LinkReceiver(2), []
    good       = [flow_word(flow)[0] for flow in (0x80, 0x81, 0x02)]
    words      = [word ^ flip for word in good for flip in (0, 0x100, 0x800000, 0x1000000)]

    def stimulus():
        for _ in range(len(words) + 4):
            if (yield dut.heard):
                heard.append((yield dut.flow))
            yield

    run_simulation(dut, [play(dut.sink, [(word, 1) for word in words]), stimulus()])
    assert heard == [0x80, 0x81, 0x02]


def test_losing_the_link_ends_a_packet_as_bad():
    dut, seen = LinkReceiver(2), []

    def stimulus():
        yield dut.up.eq(1)
        for n in range(12):
            if n == 8:
                yield dut.up.eq(0)
            if (yield dut.sources[1].valid):
                seen.append(((yield dut.sources[1].data), (yield dut.sources[1].last), (yield dut.sources[1].bad)))
            yield

    run_simulation(dut, [play(dut.sink, frame([1, 2, 3])[:-1] + [IDLE]*10), stimulus()])
    assert seen == [(1, 0, 0), (2, 0, 0), (3, 1, 1)]
