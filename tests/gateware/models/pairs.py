"""Blocks with words of 64 bits behind the real joiner and splitter, so that a test sees words."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.soc.interconnect import stream

from dibber.interface.description import CHANNEL
from dibber.layouts import word_layout
from dibber.packet.packet_receiver import PacketReceiver
from dibber.packet.packet_transmitter import PacketTransmitter
from dibber.packet.pairs import PairJoiner, PairSplitter

FIELDS = {"first", "last", "bad", "channel", "prefix", "valid", "ready"}


def joined(module, sink):
    """An Endpoint(word_layout()) whose words go to `sink` of `module`."""
    module.submodules += (joiner := PairJoiner())
    words = stream.Endpoint(word_layout())
    module.comb += [
        words.connect(joiner.sink),
        joiner.sink.half.eq(1),
        joiner.source.connect(sink),
    ]
    return words


def split(module, source):
    """An Endpoint(word_layout()) with the words of `source` of `module`. It has no prefix."""
    module.submodules += (splitter := PairSplitter())
    words = stream.Endpoint(word_layout())
    module.comb += [
        source.connect(splitter.sink),
        splitter.source.connect(words, keep=FIELDS),
        words.data.eq(splitter.source.data[:32]),
    ]
    return words


class WideReceiver(PacketReceiver):
    """A PacketReceiver that takes BULK in 64-bit words, with a sink of 32-bit words."""

    def __init__(self, data_width, address_bits=64):
        super().__init__(data_width, address_bits, 64)
        self.sinks[CHANNEL.BULK] = joined(self, self.sinks[CHANNEL.BULK])


class WideTransmitter(PacketTransmitter):
    """A PacketTransmitter that gives BULK in 64-bit words, with a source of 32-bit words."""

    def __init__(self, data_width):
        super().__init__(data_width, 0, 64)
        self.sources[CHANNEL.BULK] = split(self, self.sources[CHANNEL.BULK])


def wide_port(design, *args, **options):
    """design(*args, **options), a port with 64-bit words on BULK, with 32-bit words on all."""
    port = design(*args, bulk_width=64, **options)
    port.sinks[CHANNEL.BULK] = joined(port, port.sinks[CHANNEL.BULK])
    port.sources[CHANNEL.BULK] = split(port, port.sources[CHANNEL.BULK])
    return port


def pairs_of(words, random=None):
    """Words of 64 bits, as (data, half), with the same 32-bit words in them; with `random` some of
    them have only one.
    """
    pairs = []
    while words:
        count = 1 if random and random.random() < 0.3 else min(2, len(words))
        data = sum(word << 32 * n for n, word in enumerate(words[:count]))
        pairs.append((data, int(count == 1)))
        words = words[count:]
    return pairs
