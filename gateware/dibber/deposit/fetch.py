"""Fetch of a command from its slot: the lines that are needed, the urgent ones first."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.interface.description import C, COMMAND, WALK
from dibber.layouts import slot_port

# Lines --------------------------------------------------------------------------------------------

def lines_of(spans, data_width):
    """The lines of a slot that `spans` touch, in their order; a span is (first byte, end), end
    exclusive.
    """
    width = data_width//8
    return list(
        dict.fromkeys(line for begin, end in spans for line in range(begin//width, -(-end//width))))

def flat_source_spans():
    """The parts of a command that an engine needs if the source has no levels; the key comes first.
    """
    walk = COMMAND["source"].offset
    return [
        (walk + WALK["key"].offset, walk + WALK["key"].offset + WALK["key"].size),
        (walk, walk + WALK["stride"].offset),
        (COMMAND["flags"].offset, COMMAND["levels"].offset + 1)]

def flat_source_lines(data_width):
    return lines_of(flat_source_spans(), data_width)

# Fetch --------------------------------------------------------------------------------------------

class Fetch(LiteXModule):
    """Read some lines of a slot, in a given order.

    Parameters
    ----------
    data_width : bits of a line
    spans      : list of (first byte, end) of the wanted parts, end exclusive; the lines of the
                 first span are read first
    enough     : number of leading spans after which the fetch may end early
    least      : cycles from `first` to `done` at least: what is looked up by the first span takes so
                 long. Wide lines are few, and would come sooner

    Attributes
    ----------
    port   : slot_port(data_width)
    start  : Signal(), in    one cycle
    slot   : Signal, in      slot number, counted over all sets; stable during the fetch
    first  : Signal(), out   one cycle: the lines of the first span are valid
    all    : Signal(), in    in a cycle with `last`: end the fetch here
    last   : Signal(), out   the last line of the `enough` spans is on the port
    glance : Signal, in      one bit for each line of the `enough` spans: another reader has this
             line on the port, store it here too. Not during a fetch
    done   : Signal(), out   one cycle: all lines are valid

    Cycles: 3 + lines (those of the `enough` spans, or all) from `start` to `done`, if the port is
    always ready.
    """
    def __init__(self, data_width, spans, enough=None, least=0):
        width        = data_width//8
        order        = lines_of(spans, data_width)
        enough_lines = len(lines_of(spans[:enough], data_width)) if enough else 0
        (first_byte, end_byte), count = spans[0], len(order)

        self.port   = port = slot_port(data_width)
        self.start  = Signal()
        self.slot   = Signal(max=C.SLOT_SETS*C.SLOTS)
        self.first  = Signal()
        self.all    = Signal()
        self.last   = Signal()
        self.done   = Signal()
        self.glance = Signal(max(enough_lines, 1))
        self._width = width
        self._lines = {line: Signal(data_width, name=f"line{line}") for line in order}

        # # #

        busy          = Signal()
        next_asked    = Signal(max=max(count, 2))
        next_answered = Signal(max=max(count, 2))
        accepted      = Signal()
        coming        = Signal(2)
        per_slot      = log2_int(C.SLOT_BYTES//width)
        line          = Signal(per_slot)
        ends          = Signal()
        ends_late     = ends
        first_lines   = -(-end_byte//width) - first_byte//width
        for _ in range(least - ((enough_lines or count) - first_lines)):
            later = Signal()
            self.sync += later.eq(ends_late)
            ends_late = later
        self.comb += [
            Case(next_asked, {n: line.eq(number) for n, number in enumerate(order)}),
            port.valid.eq(busy),
            port.adr.eq(Cat(line, self.slot)),
            accepted.eq(port.valid & port.ready),
            self.last.eq(coming[1] & (next_answered == enough_lines - 1) if enough_lines else 0),
            ends.eq((coming[1] & (next_answered == count - 1)) | (self.last & self.all)),
        ]
        self.sync += [
            coming.eq(Cat(accepted, coming[0])),
            If(self.start, busy.eq(1)),
            If(accepted,
                next_asked.eq(next_asked + 1),
                If(next_asked == count - 1,
                    next_asked.eq(0),
                    busy.eq(0)
                )
            ),
            self.first.eq(
                coming[1] & (next_answered == -(-end_byte//width) - first_byte//width - 1)),
            self.done.eq(ends_late),
            If(coming[1],
                next_answered.eq(next_answered + 1),
                Case(
                    next_answered,
                    {n: self._lines[number].eq(port.dat_r) for n, number in enumerate(order)})
            ),
            *[
                If(self.glance[n], self._lines[number].eq(port.dat_r))
                for n, number in enumerate(order[:enough_lines])],
            # Answers still in flight after an early end are ignored.
            If(ends,
                busy.eq(0),
                next_asked.eq(0),
                next_answered.eq(0),
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
        """`size` bytes from `offset`, out of the line that is on the port now; one line must hold
        them.
        """
        lane = offset % self._width
        return self.port.dat_r[8*lane:8*(lane + size)]
