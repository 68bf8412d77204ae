"""Frames become words of XGMII: IEEE 802.3-2018, clauses 4 and 46."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import frame_layout, xgmii_layout
from dibber.link.ethernet.base_r.codec import (ERRORS, IDLE, IDLES, REMOTE_FAULT, START,
    TERMINATE)
from dibber.link.ethernet.base_r.crc import INITIAL, crc32_step

PREAMBLE = (int.from_bytes(bytes([START, *[0x55]*6, 0xd5]), "little"), 0x01)
# The shortest frame without FCS has 60 bytes: seven words, and four bytes of the last one.
PADDED_WORDS, PADDED_BYTES = 8, 4

def tail(size, frame, fcs):
    """The two words from the last one of a frame on, as [(data, control)]: `size` bytes of `frame`,
    1 to 8, the FCS, the end, idles.
    """
    chars  = [frame[8*n:8*n + 8] for n in range(size)] + [fcs[8*n:8*n + 8] for n in range(4)]
    chars += [Constant(TERMINATE, 8)] + [Constant(IDLE, 8)]*16
    control = 2**16 - (1 << size + 4)
    return [(Cat(*chars[8*n:8*n + 8]), control >> 8*n & 0xff) for n in range(2)]

class FrameSender(LiteXModule):
    """Send frames: preamble, padding to 60 bytes, FCS, and at least 12 bytes to the next frame.

    Each frame starts in lane 0. So a gap has 12 to 19 bytes, of which the end is the first one.

    Attributes
    ----------
    sink   : Endpoint(frame_layout), in    once a frame has begun, its words come without a hole.
             Else the frame leaves with an error, and its rest is dropped
    source : Endpoint(xgmii_layout), out   `valid` is always 1; `ready` is the pace
    quanta : Signal(16), in    with `pauses`
    pauses : Signal(), in      pulse: no frame begins for `quanta`, which may be 0
    local_fault  : Signal(), in   this end does not receive: the sender says so and sends no frame
    remote_fault : Signal(), in   the other end does not receive: the sender sends no frame
    underrun : Signal(), out   one cycle for each frame that had a hole

    Cycles: 1 from a frame's first word to its preamble; a word a cycle.
    """
    def __init__(self):
        self.sink   = sink   = stream.Endpoint(frame_layout())
        self.source = source = stream.Endpoint(xgmii_layout())
        self.quanta       = Signal(16)
        self.pauses       = Signal()
        self.local_fault  = Signal()
        self.remote_fault = Signal()
        self.underrun     = Signal()

        # # #

        # Pause ------------------------------------------------------------------------------------
        # IEEE 802.3-2018, 31B.2: a quantum is 512 bits, which are eight words.
        left = Signal(19)  # words
        self.sync += [
            If(source.ready & (left != 0), left.eq(left - 1)),
            If(self.pauses, left.eq(Cat(Constant(0, 3), self.quanta))),
        ]

        # The next word ----------------------------------------------------------------------------
        number  = Signal(4)   # words that were taken, at most PADDED_WORDS
        takes   = Signal()
        padding = Signal()    # the frame has ended, and it is shorter than 60 bytes
        is_last = Signal()    # the frame ends with this word, or before
        bytes_  = Signal(4)   # of the frame in this word
        at_pad  = Signal()    # this word has byte 60
        size    = Signal(4)   # bytes of this word that leave
        ends    = Signal()
        word    = Signal(64)
        crc     = Signal(32, reset=INITIAL)
        after   = Signal(32)
        held, held_size, held_ends = Signal(64), Signal(4), Signal()
        statements, value = crc32_step(crc, word, size)
        self.comb += [
            is_last.eq(padding | sink.last),
            bytes_.eq(Mux(padding, 0, Mux(sink.last, sink.bytes, 8))),
            at_pad.eq(number == PADDED_WORDS - 1),
            ends.eq(is_last & (number >= PADDED_WORDS - 1)),
            If(~ends,
                size.eq(8)
            ).Elif(at_pad & (bytes_ < PADDED_BYTES),
                size.eq(PADDED_BYTES)
            ).Else(
                size.eq(bytes_)
            ),
            Case(bytes_, {
                **{n: word.eq(sink.data & (2**(8*n) - 1)) for n in range(8)},
                "default": word.eq(sink.data)}),
            *statements,
            after.eq(value),
        ]
        self.sync += If(takes,
            held.eq(word),
            held_size.eq(size),
            held_ends.eq(ends),
            crc.eq(after),
            padding.eq(is_last & ~ends),
            If(number != PADDED_WORDS, number.eq(number + 1)),
        )

        # Words that leave -------------------------------------------------------------------------
        data, control = Signal(64, reset=IDLES[0]), Signal(8, reset=IDLES[1])
        rest, rest_control = Signal(64), Signal(8)  # behind the last word
        last_word = Signal(64)
        last_control = Signal(8)
        gap     = Signal(2)    # idle words that must come before a frame
        running = Signal()
        rests   = Signal()     # the second word of the end is next
        starts  = Signal()
        starves = Signal()
        drops   = Signal()
        step    = source.ready
        fcs     = ~crc
        self.comb += [
            source.valid.eq(1),
            source.data.eq(data),
            source.control.eq(control),
            starts.eq(~running & ~rests & ~drops & (gap == 0) & sink.valid & (left == 0) &
                ~self.local_fault & ~self.remote_fault),
            starves.eq(running & ~held_ends & ~padding & ~sink.valid),
            takes.eq(step & (starts | (running & ~held_ends & ~starves))),
            sink.ready.eq(drops | (step & (starts | (running & ~held_ends & ~padding)))),
            self.underrun.eq(step & starves),
            Case(held_size, {n: [
                last_word.eq(tail(n, held, fcs)[0][0]),
                last_control.eq(tail(n, held, fcs)[0][1]),
                rest.eq(tail(n, held, fcs)[1][0]),
                rest_control.eq(tail(n, held, fcs)[1][1]),
            ] for n in range(1, 9)}),
        ]
        self.sync += [
            If(sink.valid & sink.ready & sink.last, drops.eq(0)),
            If(step,
                data.eq(IDLES[0]),
                control.eq(IDLES[1]),
                If(rests,
                    data.eq(rest),
                    control.eq(rest_control),
                    rests.eq(0),
                    gap.eq(1)
                ).Elif(starves,
                    data.eq(ERRORS[0]),
                    control.eq(ERRORS[1]),
                    running.eq(0),
                    drops.eq(1),
                    gap.eq(2)
                ).Elif(running & held_ends,
                    data.eq(last_word),
                    control.eq(last_control),
                    running.eq(0),
                    # From four bytes on, the end is in the second word.
                    If(held_size >= 4, rests.eq(1)).Else(gap.eq(2))
                ).Elif(running,
                    data.eq(held),
                    control.eq(0)
                ).Elif(starts,
                    data.eq(PREAMBLE[0]),
                    control.eq(PREAMBLE[1]),
                    running.eq(1)
                ).Else(
                    If(self.local_fault, data.eq(REMOTE_FAULT[0]), control.eq(REMOTE_FAULT[1])),
                    If(gap != 0, gap.eq(gap - 1))
                ),
                # The frame's last word, with its FCS, was sent.
                If((rests | starves | (running & held_ends & (held_size < 4))),
                    number.eq(0),
                    crc.eq(INITIAL),
                    padding.eq(0)
                ),
            ),
        ]
