"""Words of XGMII become frames: IEEE 802.3-2018, clauses 4, 31B and 46."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import frame_layout, xgmii_layout
from dibber.link.ethernet.base_r.codec import SEQUENCE, START, TERMINATE
from dibber.link.ethernet.base_r.crc import INITIAL, RESIDUE, crc32_step
from dibber.link.ethernet.frames import big_endian

# IEEE 802.3-2018, table 31A-1 and 31B.1: MAC control, PAUSE, and the address of its frames.
CONTROL_TYPE  = 0x8808
PAUSE_CODE    = 0x0001
# Table 31A-1 and annex 31D: the same for each of eight priorities.
PRIORITY_CODE = 0x0101
PRIORITIES    = 8
PAUSE_ADDRESS = int.from_bytes(b"\x01\x80\xc2\0\0\1", "little")
SFD = 0xd5

# IEEE 802.3-2018, 46.3.4: so many columns of four bytes say a fault, or no longer say it.
FAULT_COLUMNS, CLEAR_WORDS = 4, 64

# Lanes --------------------------------------------------------------------------------------------

class LaneAligner(LiteXModule):
    """Move frames that start in lane 4 to lane 0.

    Attributes
    ----------
    sink, source : Endpoint(xgmii_layout)   without backpressure

    Cycles: 1 word.
    """
    def __init__(self):
        self.sink   = sink   = stream.Endpoint(xgmii_layout())
        self.source = source = stream.Endpoint(xgmii_layout())

        # # #

        data, control = Signal(64), Signal(8)  # of the word before
        moved = Signal()
        start = lambda n: sink.control[n] & (sink.data[8*n:8*n + 8] == START)
        self.comb += [
            source.valid.eq(sink.valid),
            If(moved,
                source.data.eq(Cat(data[32:], sink.data[:32])),
                source.control.eq(Cat(control[4:], sink.control[:4]))
            ).Else(
                source.data.eq(data),
                source.control.eq(control)
            ),
        ]
        self.sync += If(sink.valid,
            data.eq(sink.data),
            control.eq(sink.control),
            If(start(0), moved.eq(0)),
            If(start(4), moved.eq(1)),
        )

# Faults -------------------------------------------------------------------------------------------

class FaultReader(LiteXModule):
    """What the words say of the link: IEEE 802.3-2018, 46.3.4.

    Attributes
    ----------
    sink : Endpoint(xgmii_layout), in     without backpressure
    local_fault, remote_fault : Signal(), out
    """
    def __init__(self):
        self.sink = sink = stream.Endpoint(xgmii_layout())
        self.local_fault  = Signal()
        self.remote_fault = Signal()

        # # #

        def says(n):
            """The fault in the column of lane `n`; 0: none."""
            column = sink.data[8*n:8*n + 32]
            return Mux((sink.control[n:n + 4] == 1) & (column[:24] == SEQUENCE) &
                ((column[24:] == 1) | (column[24:] == 2)), column[24:26], 0)

        first, second = Signal(2), Signal(2)
        kind   = Signal(2)      # of the columns that are counted
        came   = Signal(2)      # of this word
        count  = Signal(3)
        total  = Signal(3)
        silent = Signal(max=CLEAR_WORDS)  # words without a fault
        fault  = Signal(2)
        self.comb += [
            first.eq(says(0)),
            second.eq(says(4)),
            came.eq(Mux(second != 0, second, first)),
            total.eq(Mux(came == kind, count, 0) + (first == came) + (second == came)),
            self.local_fault.eq(fault == 1),
            self.remote_fault.eq(fault == 2),
        ]
        self.sync += If(sink.valid,
            If(came != 0,
                silent.eq(0),
                kind.eq(came),
                If(total >= FAULT_COLUMNS,
                    count.eq(FAULT_COLUMNS),
                    fault.eq(came)
                ).Else(
                    count.eq(total)
                )
            ).Elif(silent == CLEAR_WORDS - 1,
                count.eq(0),
                fault.eq(0)
            ).Else(
                silent.eq(silent + 1)
            )
        )

# Frames -------------------------------------------------------------------------------------------

class FrameReader(LiteXModule):
    """Find frames, check and remove their FCS.

    A frame is bad if its FCS is wrong, if it has less than 64 bytes with it, or if another
    character than data comes before its end. Its words come all the same, and the last one says so.
    Less than eight bytes, of which four are the FCS, make no word.

    Parameters
    ----------
    by_priority : read frames of priority-based flow control, too

    Attributes
    ----------
    sink    : Endpoint(xgmii_layout), in   aligned; without backpressure
    source  : Endpoint(frame_layout), out  without backpressure
    address : Signal(48), in    own address, byte 0 of the wire in bits 7:0
    pauses  : Signal(), out     one cycle: a good PAUSE frame ended
    quanta  : Signal(16), out   of it
    priority_pauses : Signal(8), out   with `by_priority`, one cycle: such a good frame ended; the
                      priorities that it names
    priority_quanta : list of 8 Signal(16), out   of them

    Cycles: 2 words; a word a cycle.
    """
    def __init__(self, by_priority=False):
        self.sink    = sink   = stream.Endpoint(xgmii_layout())
        self.source  = source = stream.Endpoint(frame_layout())
        self.address = Signal(48)
        self.pauses  = Signal()
        self.quanta  = Signal(16)

        # # #

        inside = Signal()
        held   = Signal()      # a word waits, because the FCS may begin in it
        word   = Signal(64)
        fresh  = Signal(reset=1)  # no word of this frame has left
        rest   = Signal(4)     # bytes of a word behind the one that leaves; 0: none
        rest_error = Signal()
        count  = Signal(4)     # words of the frame, up to 8
        crc    = Signal(32)
        final  = Signal(32)    # with the bytes of this word
        bytes_ = Signal(4)     # of the frame in this word
        begins = Signal()
        length = Signal(3)     # bytes before the end in the last word
        ended  = Signal()      # the end is the first control character
        broken = Signal()
        good   = Signal()
        before = Signal(8)     # lanes: all below are data
        statements, value = crc32_step(crc, sink.data, bytes_)
        self.comb += [
            source.first.eq(fresh),
            begins.eq((sink.control == 1) & (sink.data[:8] == START) & (sink.data[56:] == SFD)),
            *[before[n].eq(sink.control[:n] == 0 if n else 1) for n in range(8)],
            *[If(before[n] & sink.control[n] & (sink.data[8*n:8*n + 8] == TERMINATE),
                ended.eq(1),
                length.eq(n)
            ) for n in range(8)],
            broken.eq((sink.control != 0) & ~ended),
            bytes_.eq(Mux(sink.control == 0, 8, length)),
            *statements,
            final.eq(value),
            # 64 bytes are eight words, and then the end.
            good.eq(ended & (final == RESIDUE) & (count == 8)),
        ]
        self.sync += [
            source.valid.eq(0),
            source.last.eq(0),
            source.error.eq(0),
            source.bytes.eq(8),
            If(source.valid, fresh.eq(source.last)),
            If(sink.valid,
                rest.eq(0),
                If(rest != 0,
                    source.valid.eq(1),
                    source.data.eq(word),
                    source.bytes.eq(rest),
                    source.last.eq(1),
                    source.error.eq(rest_error)
                ),
                If(~inside,
                    inside.eq(begins),
                    held.eq(0),
                    count.eq(0),
                    crc.eq(INITIAL)
                ).Elif(sink.control == 0,
                    held.eq(1),
                    word.eq(sink.data),
                    crc.eq(final),
                    If(count != 8, count.eq(count + 1)),
                    source.valid.eq(held),
                    source.data.eq(word)
                ).Else(
                    inside.eq(0),
                    source.valid.eq(held),
                    source.data.eq(word),
                    If(ended & (length > 4),
                        word.eq(sink.data),
                        If(held, rest.eq(length - 4)),
                        rest_error.eq(~good)
                    ).Else(
                        source.last.eq(1),
                        source.error.eq(~good),
                        If(ended, source.bytes.eq(length + 4))
                    )
                ),
            ),
        ]

        # Pause ------------------------------------------------------------------------------------
        to_us  = Signal()
        is_pause = Signal()
        at     = lambda n: sink.valid & inside & (count == n) & (sink.control == 0)
        self.sync += [
            If(at(0), to_us.eq(
                (sink.data[:48] == PAUSE_ADDRESS) | (sink.data[:48] == self.address))),
            If(at(1), is_pause.eq(to_us & (sink.data[32:48] == big_endian(CONTROL_TYPE)) &
                (sink.data[48:] == big_endian(PAUSE_CODE)))),
            If(at(2), self.quanta.eq(Cat(sink.data[8:16], sink.data[:8]))),
            self.pauses.eq(sink.valid & inside & good & is_pause),
        ]
        if by_priority:
            # A vector of 16 bits, of which 7:0 name priorities, then eight times of 16 bits.
            self.priority_pauses = Signal(PRIORITIES)
            self.priority_quanta = [Signal(16, name=f"quanta{n}") for n in range(PRIORITIES)]
            is_priority = Signal()
            named = Signal(PRIORITIES)
            self.sync += [
                If(at(1), is_priority.eq(to_us & (sink.data[32:48] == big_endian(CONTROL_TYPE)) &
                    (sink.data[48:] == big_endian(PRIORITY_CODE)))),
                If(at(2), named.eq(sink.data[8:16])),
                self.priority_pauses.eq(
                    Mux(sink.valid & inside & good & is_priority, named, 0)),
            ]
            for n, quanta in enumerate(self.priority_quanta):
                word, byte = divmod(18 + 2*n, 8)
                self.sync += If(at(word),
                    quanta.eq(Cat(sink.data[8*byte + 8:8*byte + 16], sink.data[8*byte:8*byte + 8])))
