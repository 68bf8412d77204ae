"""Two bonded ports and four lanes between them, each way."""

# SPDX-License-Identifier: BSD-2-Clause

from collections import deque

from migen import *

from litex.soc.interconnect import stream

from dibber.layouts import chunk_layout, word_layout
from dibber.link.bonded_port import BondedPort

from tests.gateware.models.compiled import run_simulation, shared

from tests.gateware.link.pair import Pair, pause

LANES = 4


class LinesOfWords(Module):
    """What a test sends by words, as lines for a bonded port: eight words, and the last one less.

    Words are taken only while the port takes lines. So a test sees the port's stalls.
    """

    def __init__(self, line):
        self.sink = sink = stream.Endpoint(word_layout())
        full, count, begins = Signal(), Signal(4), Signal()
        data, bad, first, last = Signal(256), Signal(), Signal(), Signal()
        self.comb += [
            # The sender was reset, and a part of its old packet is held here.
            begins.eq(sink.valid & sink.first & (count != 0) & ~full),
            sink.ready.eq(~full & ~begins & line.ready),
            line.valid.eq(full),
            line.data.eq(data),
            line.words.eq(count),
            line.bad.eq(bad),
            line.prefix.eq(0),
            line.first.eq(full & first),
            line.last.eq(last),
        ]
        self.sync += [
            If(full & line.ready, full.eq(0), count.eq(0), data.eq(0)),
            If(
                sink.valid & sink.ready,
                count.eq(count + 1),
                Case(count, {n: data[32 * n : 32 * n + 32].eq(sink.data) for n in range(8)}),
                If(count == 0, first.eq(sink.first)),
                last.eq(sink.last),
                bad.eq(sink.bad & sink.last),
                full.eq(sink.last | (count == 7)),
            ),
            If(begins, full.eq(1), last.eq(1), bad.eq(1)),
        ]


class WordsOfChunks(Module):
    """The chunks of a bonded port by words. The last word waits for the chunk behind it."""

    def __init__(self, chunk, channel):
        self.source = source = stream.Endpoint(word_layout())
        held, index = stream.Endpoint(chunk.description), Signal(4)
        at_end, end_follows, taken = Signal(), Signal(), Signal()
        self.comb += [
            at_end.eq(index + 1 == held.words),
            end_follows.eq(chunk.valid & ~chunk.first & (chunk.words == 0)),
            source.valid.eq(held.valid & (~at_end | held.last | chunk.valid)),
            source.channel.eq(channel),
            Case(index, {n: source.data.eq(held.data[32 * n : 32 * n + 32]) for n in range(8)}),
            source.first.eq(held.first & (index == 0)),
            source.last.eq(at_end & (held.last | end_follows)),
            source.bad.eq(source.last & Mux(held.last, held.bad, chunk.bad)),
            taken.eq(source.valid & source.ready),
            chunk.ready.eq(~held.valid | (taken & at_end)),
        ]
        self.sync += [
            If(taken, index.eq(index + 1)),
            If(
                chunk.ready,
                index.eq(0),
                held.valid.eq(chunk.valid & (chunk.words != 0)),
                *[
                    getattr(held, name).eq(getattr(chunk, name))
                    for name in ("data", "words", "first", "last", "bad")
                ],
            ),
        ]


class WordPort(Module):
    """A bonded port whose packets are words, as the contract of ports has them."""

    def __init__(self, sunk=(), **options):
        self.submodules.port = port = BondedPort(period=64, sunk=sunk, **options)
        inputs = [LinesOfWords(line) for line in port.sinks]
        chunks = list(port.sources)
        # A chunk a cycle must be taken, but words leave one a cycle.
        for n in sunk:
            fifo = stream.SyncFIFO(chunk_layout(), 128)
            self.submodules += fifo
            self.comb += chunks[n].connect(fifo.sink)
            chunks[n] = fifo.source
        outputs = [WordsOfChunks(chunk, n) for n, chunk in enumerate(chunks)]
        self.submodules += inputs + outputs
        self.sinks = [lines.sink for lines in inputs]
        self.sources = [words.source for words in outputs]
        for name in (
            "signal test retrain state reason up stopped nonce peer peer_known ping round_trip "
            "slack_high counters tx lanes locked deskew"
        ).split():
            setattr(self, name, getattr(port, name))


class TwoPorts(Module):
    def __init__(self, kind, **options):
        self.submodules.a = kind(**options)
        self.submodules.b = kind(**options)


class BondedPair(Pair):
    """As Pair, with lanes in place of the cable. `kind` is the class of both ports.

    skew  : for each lane, cycles by which it is later than the others, from a to b
    fault : (lane, header, data) -> the block that arrives from a at b, or None
    """

    def __init__(self, random, delay=4, skew=(0, 0, 0, 0), fault=None, kind=WordPort, **options):
        self.design = shared(TwoPorts, kind, **options)
        self.a, self.b = self.design.a, self.design.b
        self.random = random
        channels = range(len(self.a.sinks))
        self.packets = [[] for _ in channels]
        self.counts = {
            name: dict.fromkeys(port.counters, 0) for name, port in (("a", self.a), ("b", self.b))
        }
        self.take = [lambda: True for _ in channels]
        self.signal = True
        self.fault = fault or (lambda lane, header, data: (header, data))
        there = lambda *block: self.fault(*block)
        back = lambda lane, header, data: (header, data)
        self.processes = [
            self._lanes(self.a, self.b, [delay + late for late in skew], there),
            self._lanes(self.b, self.a, [delay] * LANES, back),
            self._drive(),
            self._watch(),
            *[self._take(n) for n in channels],
        ]

    @passive
    def _lanes(self, sender, receiver, delays, fault):
        """Rows leave in 5 of 8 cycles; their blocks arrive, each lane with its own delay."""
        cycle, wires = 0, [deque() for _ in range(LANES)]
        tx = sender.tx
        while True:
            ready = int(cycle * 5 % 8 < 5)
            yield tx.ready.eq(ready)
            yield
            cycle += 1
            if ready and (yield tx.valid):
                header, data = (yield tx.header), (yield tx.data)
                for n, wire in enumerate(wires):
                    block = (header >> 2 * n & 3, data >> 64 * n & 2**64 - 1)
                    wire.append((cycle + delays[n], self.signal and fault(n, *block)))
            yield receiver.locked.eq(2**LANES - 1 if self.signal else 0)
            for n, wire in enumerate(wires):
                block = wire.popleft()[1] if wire and wire[0][0] <= cycle else None
                yield receiver.lanes[n].valid.eq(int(bool(block) and self.signal))
                if block:
                    yield receiver.lanes[n].header.eq(block[0])
                    yield receiver.lanes[n].data.eq(block[1])

    def run(self, *more):
        run_simulation(self.design, [*self.processes, *more])

    def state(self, a, b, cycles=1200):
        """Until both ports are in these states; a search may last two periods of markers.

        What a test did to the lanes in this cycle shows in the state two cycles later.
        """
        yield from pause(3)
        yield from super().state(a, b, cycles)
