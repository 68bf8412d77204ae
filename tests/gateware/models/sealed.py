"""A transmitter of lines with words behind it, so that a test of words reads it."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.soc.interconnect import stream

from dibber.layouts import word_layout
from dibber.link.row_packer import sealed_line_layout
from dibber.packet.packet_transmitter import PacketTransmitter


class WordsOfLines(Module):
    """The words of sealed lines, each CRC behind its line. A line without words is one bad word.

    `prefix` of the source is that of the packet's first line.
    """

    def __init__(self, channel):
        self.sink = sink = stream.Endpoint(sealed_line_layout())
        self.source = source = stream.Endpoint(word_layout())
        place, ends = Signal(4), Signal()
        self.comb += [
            ends.eq(place + 1 >= sink.words + sink.seal),
            source.valid.eq(sink.valid),
            source.channel.eq(channel),
            source.prefix.eq(sink.prefix),
            source.first.eq(sink.first & (place == 0)),
            source.last.eq(sink.last & ends),
            source.bad.eq(sink.bad & source.last),
            Case(place, {n: source.data.eq(sink.data[32 * n : 32 * n + 32]) for n in range(8)}),
            If(sink.seal & (place == sink.words), source.data.eq(sink.crc)),
            sink.ready.eq(source.ready & ends),
        ]
        self.sync += If(source.valid & source.ready, place.eq(Mux(ends, 0, place + 1)))


class LineTransmitter(PacketTransmitter):
    """A PacketTransmitter of lines with sources of words."""

    def __init__(self, data_width):
        super().__init__(data_width, bulk_width=256)
        for n, lines in enumerate(self.sources):
            self.submodules += (words := WordsOfLines(n))
            self.comb += lines.connect(words.sink)
            self.sources[n] = words.source
