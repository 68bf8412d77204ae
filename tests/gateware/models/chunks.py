"""A receiver of chunks behind a joiner of words, so that a test gives it words."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.soc.interconnect import stream

from dibber.layouts import chunk_layout, word_layout
from dibber.packet.packet_receiver import PacketReceiver

FULL = 7  # words of a chunk that is not the last one of its packet


class ChunkJoiner(Module):
    """Gather words into chunks of 7, as rows with a RESUME have them; the last one has 1 to 7.

    A word with `first` begins a new chunk, whatever is held.
    """

    def __init__(self):
        self.sink = sink = stream.Endpoint(word_layout())
        self.source = source = stream.Endpoint(chunk_layout())
        held = [Signal(32) for _ in range(FULL - 1)]
        level, begun, full = Signal(3), Signal(), Signal()
        at = Signal(3)
        self.comb += [
            at.eq(Mux(sink.first, 0, level)),
            full.eq(sink.last | (at == FULL - 1)),
            source.valid.eq(sink.valid & full),
            source.first.eq(sink.first | ~begun),
            source.last.eq(sink.last),
            source.bad.eq(sink.bad),
            source.words.eq(at + 1),
            *[
                source.data[32 * n : 32 * (n + 1)].eq(
                    Mux(at == n, sink.data, held[n] if n < FULL - 1 else 0)
                )
                for n in range(FULL)
            ],
            sink.ready.eq(~full | source.ready),
        ]
        self.sync += If(
            sink.valid & sink.ready,
            level.eq(Mux(full, 0, at + 1)),
            begun.eq((full | (begun & ~sink.first)) & ~sink.last),
            *[If(at == n, word.eq(sink.data)) for n, word in enumerate(held)],
        )


class ChunkReceiver(PacketReceiver):
    """A PacketReceiver of chunks with sinks of words."""

    def __init__(self, data_width, address_bits=64):
        super().__init__(data_width, address_bits, 256)
        for n, chunks in enumerate(self.sinks):
            self.submodules += (joiner := ChunkJoiner())
            self.comb += joiner.source.connect(chunks)
            self.sinks[n] = joiner.sink
