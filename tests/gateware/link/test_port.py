# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Two link ports and a cable: training, flow control, rate, and what faults do."""

from random import Random

import pytest

from migen import *

from dibber.interface.description import LINK_STATE
from dibber.link import training
from dibber.link.port import LinkPort
from dibber.link.slack import SlackBuffer

from gateware.models.compiled import run_simulation
from gateware.models.cable import cable
from gateware.models.drive import finish, source

from gateware.link.test_framing import random_words, word_items


class Pair(Module):
    """Ports a and b; b's received packets and both counters are kept."""
    def __init__(self, random, delay=4, fault=None, rotate=0, busy=None):
        self.submodules.a = LinkPort()
        self.submodules.b = LinkPort()
        self.packets = [[], []]
        self.words   = [[], []]
        self.log     = []
        self.counts  = {name: dict.fromkeys(port.counters, 0) for name, port in (("a", self.a), ("b", self.b))}
        self.take    = [lambda: True, lambda: True]
        self.signal  = True
        fault = fault or (lambda data, k: (data, k, 0, 0))
        plugged = lambda fault: lambda *word: fault(*word) if self.signal else None
        self.processes = [
            cable(self.a.serial_tx, self.b.serial_rx, delay, rotate, plugged(fault), busy, self.log),
            cable(self.b.serial_tx, self.a.serial_rx, delay, 0, plugged(lambda *w: (*w, 0, 0)), busy),
            self._watch(), self._take(0), self._take(1), self._plug(),
        ]

    @passive
    def _plug(self):
        shown = None
        while True:
            if shown != self.signal:
                shown = self.signal
                yield self.a.signal.eq(int(shown))
                yield self.b.signal.eq(int(shown))
            yield

    @passive
    def _watch(self):
        while True:
            for name, port in (("a", self.a), ("b", self.b)):
                for counter, pulse in port.counters.items():
                    self.counts[name][counter] += yield pulse
            yield

    @passive
    def _take(self, channel):
        endpoint = self.b.sources[channel]
        while True:
            ready = int(self.take[channel]())
            yield endpoint.ready.eq(ready)
            yield
            if ready and (yield endpoint.valid):
                self.words[channel].append((yield endpoint.data))
                if (yield endpoint.last):
                    self.packets[channel].append((self.words[channel], bool((yield endpoint.bad))))
                    self.words[channel] = []

    def up(self):
        for _ in range(120):
            if (yield self.a.state) == LINK_STATE.UP and (yield self.b.state) == LINK_STATE.UP:
                return
            yield
        raise AssertionError("the link does not come up")

    def run(self, *more):
        run_simulation(self, [*self.processes, *more])


@pytest.mark.parametrize("rotate", [0, 3])
def test_the_link_comes_up_and_carries_packets_of_both_channels(rotate, seed):
    random = Random(seed)
    sent   = [[(random_words(random, 10), False) for _ in range(4)] for _ in range(2)]
    pair   = Pair(random, rotate=rotate, busy=lambda: random.random() < 0.9)
    pair.run(*[source(pair.a.sinks[c], word_items(sent[c]), random, 0.8) for c in range(2)],
             finish(lambda: [len(p) for p in pair.packets] == [4, 4], 500))
    assert pair.packets == sent
    assert not any(pair.counts["b"].values()) and not any(pair.counts["a"].values())


def test_stop_and_go_under_a_slow_sink_lose_nothing_at_40_words_each_way(seed):
    random = Random(seed)
    sent   = [(random_words(random, 2)*90, False) for _ in range(14)]
    pair   = Pair(random, delay=40)
    pair.take[1] = lambda: random.random() < 0.3
    levels = []

    @passive
    def watch():
        while True:
            levels.append((yield pair.b.slack1.fifo.level))
            yield

    pair.run(source(pair.a.sinks[1], word_items(sent), random), watch(),
             finish(lambda: len(pair.packets[1]) == 14, 6500))
    assert pair.packets[1] == sent
    # docs/design.md, section 4: both ways of the cable, and 24 words for the logic of both ends.
    assert 384 < max(levels) <= 384 + 2*40 + 24
    assert pair.counts["b"]["SLACK_OVERFLOW"] == 0
    assert pair.counts["b"]["STOPS_SENT"] == pair.counts["a"]["STOPS_RECEIVED"] >= 1
    assert pair.counts["a"]["STOPPED_CYCLES"] > 0


def test_a_cable_that_is_pulled_ends_the_packet_and_the_link_comes_back(seed, monkeypatch):
    monkeypatch.setattr(training, "SILENCE_WORDS", 256)
    random = Random(seed)
    pair   = Pair(random)

    def pull():
        yield from finish(lambda: len(pair.words[1]) > 30, 300)
        pair.signal = False
        for _ in range(20):
            yield
        assert (yield pair.a.state) == (yield pair.b.state) == LINK_STATE.DOWN
        pair.signal = True
        yield from pair.up()
        yield from finish(lambda: len(pair.packets[1]) == 2, 200)

    pair.run(source(pair.a.sinks[1], word_items([(list(range(100)), False), ([1, 2], False)]), random), pull())
    (cut, bad), (whole, good) = pair.packets[1]
    assert bad and cut == list(range(len(cut))) and (whole, good) == ([1, 2], False)
    assert pair.counts["a"]["LINK_LOST"] == pair.counts["b"]["LINK_LOST"] == 1


def test_silence_takes_the_link_down_on_both_ends(seed, monkeypatch):
    monkeypatch.setattr(training, "SILENCE_WORDS", 256)
    dead = []
    pair = Pair(Random(seed), fault=lambda data, k: (data, k, int(bool(dead)), 0))

    def silence():
        yield from pair.up()
        dead.append(True)
        for _ in range(200):
            yield
        assert (yield pair.b.state) == LINK_STATE.UP
        for _ in range(120):
            yield
        assert (yield pair.b.state) == LINK_STATE.DOWN and (yield pair.a.state) == LINK_STATE.ALIGN
        dead.clear()
        yield from pair.up()

    pair.run(silence())
    assert pair.counts["a"]["LINK_LOST"] == pair.counts["b"]["LINK_LOST"] == 1
    assert pair.counts["b"]["CODE_ERRORS"] > 200


def test_a_full_slack_buffer_drops_whole_packets_and_says_so(seed):
    """Without heed of STOP: words come on whatever the buffer says."""
    random, dut = Random(seed), SlackBuffer(256)
    packets, words, overflows = [], [], []

    def stimulus():
        for n in range(40):
            for i in range(20):
                yield dut.sink.valid.eq(1)
                yield dut.sink.data.eq(n << 8 | i)
                yield dut.sink.first.eq(int(i == 0))
                yield dut.sink.last.eq(int(i == 19))
                yield
        yield dut.sink.valid.eq(0)
        yield from finish(lambda: len(words) == 0 and len(packets) and packets[-1][0][0] >> 8 == 39, 1500)

    @passive
    def drain():
        cycle = 0
        while True:
            # Long pauses, so that whole packets find no room from their first word on.
            cycle += 1
            ready  = int(cycle//150 % 2 and random.random() < 0.9)
            yield dut.source.ready.eq(ready)
            yield
            overflows.append((yield dut.overflow))
            if ready and (yield dut.source.valid):
                words.append((yield dut.source.data))
                if (yield dut.source.last):
                    packets.append((list(words), (yield dut.source.bad)))
                    words.clear()

    run_simulation(dut, [stimulus(), drain()])
    good = [words for words, bad in packets if not bad]
    bad  = [words for words, bad in packets if bad]
    assert all(words == [words[0] & ~0xff | i for i in range(20)] for words in good)
    assert all(words[0] & 0xff == 0 and 1 < len(words) <= 20 for words in bad)
    assert sum(overflows) == 40 - len(good) > 4 and bad
