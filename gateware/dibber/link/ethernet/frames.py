"""What the two directions of a port over Ethernet share: constants, and units of a frame.

A *unit* is 8 bytes of a frame. Units are placed so that the header of 8 bytes is one unit, and the
payload starts with the next one. So the first unit begins before the frame does: by two bytes, or
by six if the frame has a VLAN tag.

    without a tag        │ · · d d d d d d │ s s s s s s T T │ header │ payload …
    with a VLAN tag      │ · · · · · · d d │ d d d d s s s s │ s s V V t t T T │ header │ payload …

d: destination address, s: source address, T: EtherType, V: EtherType of the tag, t: the tag.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C
from dibber.layouts import frame_layout, unit_layout

BROADCAST = (1 << 48) - 1

def big_endian(value):
    """A 16-bit constant as it stands in lanes whose byte 0 is lowest."""
    return (value & 0xff) << 8 | value >> 8

FRAME_TYPE, TAG_TYPE = big_endian(C.ETHERNET_TYPE), big_endian(C.ETHERNET_TAG)

def missing_bytes(tagged):
    """Bytes of the first unit that stand before the frame."""
    return 6 if tagged else 2

def header_index(tagged):
    """Number of the unit that is the header."""
    return 3 if tagged else 2

def payload_units(mtu):
    """Units of payload in a frame whose Ethernet payload has `mtu` bytes at most."""
    return (mtu - C.ETHERNET_UNIT_BYTES)//C.ETHERNET_UNIT_BYTES

def priorities_of(priority, channels):
    """Priorities of the channels' tags: `priority` is a number, or one for each channel."""
    values = (priority,)*channels if isinstance(priority, int) else tuple(priority)[:channels]
    assert len(values) == channels and all(0 <= value <= 7 for value in values)
    return values

# Words to Units -----------------------------------------------------------------------------------

class UnitAligner(LiteXModule):
    """Words of a MAC become units.

    Parameters
    ----------
    tagged : frames have a VLAN tag

    Attributes
    ----------
    sink   : Endpoint(frame_layout), in   without backpressure; `first` is not needed
    source : Endpoint(unit_layout), out   without backpressure

    Cycles: 1. Bytes behind the last unit that could be whole are padding, and do not come out.
    """
    def __init__(self, tagged=False):
        self.sink   = sink   = stream.Endpoint(frame_layout())
        self.source = source = stream.Endpoint(unit_layout())

        # # #

        missing = missing_bytes(tagged)
        kept    = Signal(8*missing)  # the end of the word before
        inside  = Signal()
        self.comb += sink.ready.eq(1)
        self.sync += [
            source.valid.eq(sink.valid),
            If(sink.valid,
                kept.eq(sink.data[64 - 8*missing:]),
                inside.eq(~sink.last),
                source.data.eq(Cat(kept, sink.data[:64 - 8*missing])),
                source.first.eq(~inside),
                source.last.eq(sink.last),
                source.whole.eq(~sink.last | (sink.bytes >= 8 - missing)),
                source.error.eq(sink.last & sink.error),
            ),
        ]

# Units to Words -----------------------------------------------------------------------------------

class UnitShifter(LiteXModule):
    """Units become words of a MAC. A frame of n units has n words.

    Attributes
    ----------
    sink   : Endpoint(unit_layout), in    `first` and `last` enclose a frame of two units or more
    source : Endpoint(frame_layout), out

    Cycles: 1; n + 1 for a frame of n units. If the units of a frame come without a gap, so do its
    words.
    """
    def __init__(self, tagged=False):
        self.sink   = sink   = stream.Endpoint(unit_layout())
        self.source = source = stream.Endpoint(frame_layout())

        # # #

        missing = missing_bytes(tagged)
        kept    = Signal(64 - 8*missing)  # the end of the unit before
        rest    = Signal()                # it is the end of the frame
        begins  = Signal()
        step    = Signal()
        self.comb += [
            step.eq(~source.valid | source.ready),
            sink.ready.eq(step & ~rest),
        ]
        self.sync += If(step,
            source.valid.eq(rest | (sink.valid & ~sink.first)),
            source.data.eq(Cat(kept, sink.data[:8*missing])),
            source.bytes.eq(Mux(rest, 8 - missing, 8)),
            source.first.eq(begins),
            source.last.eq(rest),
            rest.eq(0),
            If(rest | (sink.valid & ~sink.first), begins.eq(0)),
            If(sink.valid & ~rest,
                kept.eq(sink.data[8*missing:]),
                rest.eq(sink.last),
                If(sink.first, begins.eq(1)),
            ),
        )
