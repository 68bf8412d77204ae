"""A crossbar against its model, in each cycle."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest
from migen import *

from dibber.fabric.switch.crossbar import Crossbar
from tests.gateware.models import switch as model
from tests.gateware.models.compiled import run_simulation, shared
from tests.gateware.models.link import prefix_word
from tests.gateware.models.switch import Word, order_word


class Source:
    """Packets for one input, with pauses: of any length, some bad, some with a wrong prefix."""

    def __init__(self, random, pause, longest):
        self.random, self.pause, self.longest = random, pause, longest
        self.words, self.word = [], None

    def offer(self):
        if self.word is None and self.random.random() >= self.pause:
            if not self.words:
                self.words = self.packet()
            self.word = self.words.pop(0)
        return self.word

    def packet(self):
        random = self.random
        prefix = random.randrange(1, 8)
        order = order_word(prefix, prefix_word(random.randrange(16), prefix - 1))
        if random.random() < 0.1:
            prefix = random.randrange(8)
            order = order_word(prefix, random.getrandbits(32))
        length = 1 + random.randrange(self.longest) * (random.random() < 0.95)
        data = [order] + [random.getrandbits(32) for _ in range(length - 1)]
        bad = random.random() < 0.1
        return [
            Word(word, n == 0, n == length - 1, bad and n == length - 1)
            for n, word in enumerate(data)
        ]


class Stalls:
    """Values that hold for some time: 1 in `share` of the time, some periods long."""

    def __init__(self, random, share, longest):
        self.random, self.share, self.longest = random, share, longest
        self.left, self.value = 0, 1

    def next(self):
        if not self.left:
            self.left = self.random.randrange(1, self.longest)
            self.value = int(self.random.random() < self.share)
        self.left -= 1
        return self.value


def compare(random, ports, cycles, pause, ready, down, tick, longest=20):
    """Run both on the same random inputs. Returns how often each thing happened."""
    dut, golden = shared(Crossbar, ports), model.Crossbar(ports)
    sources = [Source(random, pause, longest) for _ in range(ports)]
    readies = [Stalls(random, *ready) for _ in range(ports)]
    downs = [Stalls(random, *down) for _ in range(ports)]
    counts = {}

    def run():
        for now in range(cycles):
            offers = [source.offer() for source in sources]
            takes = [stalls.next() for stalls in readies]
            is_down = {n for n, stalls in enumerate(downs) if not stalls.next()}
            disabled = {n for n in range(ports) if random.random() < 0.5}
            ticks = random.random() < tick
            for sink, word in zip(dut.sinks, offers):
                yield sink.valid.eq(word is not None)
                if word:
                    for name in ("data", "first", "last", "bad"):
                        yield getattr(sink, name).eq(int(getattr(word, name)))
            for source, value in zip(dut.sources, takes):
                yield source.ready.eq(value)
            yield dut.down.eq(sum(1 << n for n in is_down))
            yield dut.disabled.eq(sum(1 << n for n in disabled))
            yield dut.tick.eq(int(ticks))
            yield
            for n, word in enumerate(golden.shown):
                source = dut.sources[n]
                assert (yield source.valid) == (word is not None), (now, n)
                if word:
                    for name in ("first", "last", "bad"):
                        assert (yield getattr(source, name)) == getattr(word, name), (now, n, name)
                    assert (yield source.data) == word.data, (now, n)
                    if word.first:
                        assert (yield source.prefix) == word.prefix, (now, n)
            for n, output in enumerate(golden.outputs):
                assert ((yield dut.stuck) >> n & 1) == output.stuck, (now, n)
            taken, events = golden.cycle(offers, takes, is_down, disabled, ticks)
            for n, sink in enumerate(dut.sinks):
                assert (yield sink.ready) & (offers[n] is not None) == (n in taken), (now, n)
                if n in taken:
                    sources[n].word = None
            for n, one in enumerate(dut.inputs):
                assert (yield one.passed) == (n in events.passed), (now, n)
                assert (yield one.bad) == (n in events.bad), (now, n)
                reason = None
                if (yield one.drop.strobe):
                    reason = yield one.drop.reason
                assert reason == dict(events.dropped).get(n), (now, n)
                if reason is not None:
                    counts[reason] = counts.get(reason, 0) + 1
            for n, output in enumerate(dut.outputs):
                assert (yield output.sent) == (n in events.sent), (now, n)
            counts["passed"] = counts.get("passed", 0) + len(events.passed)

    run_simulation(dut, [run()])
    return counts


CASES = {
    "full rate": dict(pause=0.0, ready=(1.0, 9), down=(1.0, 9), tick=0.0),
    "stalls": dict(pause=0.3, ready=(0.6, 9), down=(1.0, 9), tick=0.01),
    "ports that come and go": dict(pause=0.1, ready=(0.8, 9), down=(0.8, 90), tick=0.01),
    "blocked outputs": dict(pause=0.1, ready=(0.5, 150), down=(1.0, 9), tick=0.1),
    "senders that pause": dict(pause=0.8, ready=(0.9, 9), down=(1.0, 9), tick=0.1),
}


@pytest.mark.parametrize("case", CASES)
def test_the_crossbar_does_what_its_model_does_in_each_cycle(case, seed):
    counts = compare(Random(seed), 4, 2500, **CASES[case])
    assert counts["passed"] > 50, counts


@pytest.mark.parametrize("ports, cycles", [(2, 1500), (8, 500), (16, 250)])
def test_a_crossbar_of_each_size_does_what_its_model_does(ports, cycles, seed):
    case = dict(pause=0.1, ready=(0.7, 60), down=(0.95, 90), tick=0.1)
    counts = compare(Random(seed), ports, cycles, **case)
    assert counts["passed"] > 20, counts


def test_packets_are_dropped_for_each_reason(seed):
    case = dict(pause=0.3, ready=(0.6, 90), down=(0.8, 90), tick=0.3)
    counts = compare(Random(seed), 4, 3000, **case)
    assert all(counts.get(reason, 0) >= 3 for reason in range(6)), counts
