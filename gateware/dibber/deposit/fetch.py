"""Reading those members of a slot that an engine needs."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.interface.description import C, COMMAND, WALK
from dibber.layouts import slot_port

# Lines --------------------------------------------------------------------------------------------

def lines_of(spans, data_width):
    """The lines of spans (first byte, behind the last byte) of a slot, in their order."""
    width = data_width//8
    return list(dict.fromkeys(line for begin, end in spans for line in range(begin//width, -(-end//width))))

def flat_source_spans():
    """What an engine needs of a command whose source has no levels, the key first."""
    walk = COMMAND["source"].offset
    return [(walk + WALK["key"].offset, walk + WALK["key"].offset + WALK["key"].size), (walk, walk + WALK["stride"].offset),
        (COMMAND["flags"].offset, COMMAND["levels"].offset + 1)]

def flat_source_lines(data_width):
    return lines_of(flat_source_spans(), data_width)

# Fetch --------------------------------------------------------------------------------------------

class Fetch(LiteXModule):
    """Read some lines of a slot, in an order of choice.

    Parameters
    ----------
    data_width : bits of a line
    spans      : list of (first byte, behind the last byte) of the slot that are wanted; the lines
                 of the first span come first
    enough     : how many of the spans may be all

    Attributes
    ----------
    port   : slot_port(data_width)
    start  : Signal(), in    one cycle
    slot   : Signal, in      slot number, counted over all sets; stable while the fetch goes on
    first  : Signal(), out   one cycle: the lines of the first span are there
    all    : Signal(), in    in a cycle with `last`: what was asked for so far is enough
    last   : Signal(), out   the last line of `enough` spans is on the port
    glance : Signal, in      a bit for each line of `enough` spans: it is on the port for another
             reader, and wanted. Not while the fetch
                             goes on
    done   : Signal(), out   one cycle: all are there

    Cycles: lines, those of `enough` spans or all, + 3 from `start` to `done`, with a port that is
    always ready.
    """
    def __init__(self, data_width, spans, enough=None):
        width    = data_width//8
        order    = lines_of(spans, data_width)
        few      = len(lines_of(spans[:enough], data_width)) if enough else 0
        (begin, end), count = spans[0], len(order)

        self.port   = port = slot_port(data_width)
        self.start  = Signal()
        self.slot   = Signal(max=C.SLOT_SETS*C.SLOTS)
        self.first  = Signal()
        self.all    = Signal()
        self.last   = Signal()
        self.done   = Signal()
        self.glance = Signal(max(few, 1))
        self._width = width
        self._lines = {line: Signal(data_width, name=f"line{line}") for line in order}

        # # #

        busy     = Signal()
        asked    = Signal(max=max(count, 2))
        answered = Signal(max=max(count, 2))
        accepted = Signal()
        coming   = Signal(2)
        per_slot = log2_int(C.SLOT_BYTES//width)
        line     = Signal(per_slot)
        ends     = Signal()
        self.comb += [
            Case(asked, {n: line.eq(number) for n, number in enumerate(order)}),
            port.valid.eq(busy),
            port.adr.eq(Cat(line, self.slot)),
            accepted.eq(port.valid & port.ready),
            self.last.eq(coming[1] & (answered == few - 1) if few else 0),
            ends.eq((coming[1] & (answered == count - 1)) | (self.last & self.all)),
        ]
        self.sync += [
            coming.eq(Cat(accepted, coming[0])),
            If(self.start, busy.eq(1)),
            If(accepted,
                asked.eq(asked + 1),
                If(asked == count - 1,
                    asked.eq(0),
                    busy.eq(0)
                )
            ),
            self.first.eq(coming[1] & (answered == -(-end//width) - begin//width - 1)),
            self.done.eq(ends),
            If(coming[1],
                answered.eq(answered + 1),
                Case(answered, {n: self._lines[number].eq(port.dat_r) for n, number in enumerate(order)})
            ),
            *[If(self.glance[n], self._lines[number].eq(port.dat_r)) for n, number in enumerate(order[:few])],
            # What is still to come of the others is not looked at.
            If(ends,
                busy.eq(0),
                asked.eq(0),
                answered.eq(0),
                coming.eq(0),
            )
        ]

    def bytes(self, offset, size):
        """`size` bytes of the slot from `offset` on, little-endian."""
        parts = []
        while size:
            line, lane = divmod(offset, self._width)
            part       = min(size, self._width - lane)
            parts.append(self._lines[line][8*lane:8*(lane + part)])
            offset += part
            size   -= part
        return Cat(*parts)

    def coming(self, offset, size):
        """The same of the line that is on the port, in which all of them are."""
        lane = offset % self._width
        return self.port.dat_r[8*lane:8*(lane + size)]
