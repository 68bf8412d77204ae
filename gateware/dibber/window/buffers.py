"""Eight stream buffers of 64 bytes, which collect stores by their address."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.common.one_hot import number_of
from dibber.host.tlp import line_layout
from dibber.window.layouts import BUFFERS, LINE_BYTES, closed_layout, line_address_bits

class FirstOf(LiteXModule):
    """`one`: one-hot, the lowest 1 of `bits`; 0 if there is none."""
    def __init__(self, count):
        self.bits = bits = Signal(count)
        self.one  = one  = Signal(count)

        # # #

        self.comb += one.eq(bits & (~bits + 1))

class StreamBuffers(LiteXModule):
    """Collect stores to one line of 64 bytes, until the line is full or its buffer must close.

    A buffer is free, it collects, or it is closed. A store goes into the buffer that collects its
    line, else into a free one. If there is neither, a collecting buffer closes, and the store
    waits. Closed buffers leave in the order in which they closed, one closes in a cycle. A closed
    buffer takes no store. So of two stores to one byte, the later one leaves later or replaces the
    earlier one.

    Parameters
    ----------
    data_width : bits of a store, at most
    buffers    : a power of two

    Attributes
    ----------
    sink   : Endpoint(line_layout), in    stores, as lines of the data path; `be` may have holes
    hold   : Signal(8), in      cycles from the first store of a buffer until it closes
    close  : Signal(), in       one cycle: all buffers that collect now will close
    source : Endpoint(closed_layout), out     the oldest closed buffer; it is free when it is taken
    mask   : Signal(64), out    of that buffer: its bytes that were stored
    at     : Signal, in         a line of the data path within it
    dat    : Signal(2*data_width), out    that line and the next one, of that buffer
    used   : Signal(buffers), out     not free
    freed  : Signal(buffers), out     one cycle: this buffer is taken

    Cycles: 1 from a store that fills its buffer to `source`, if no other buffer is closed.
    """
    def __init__(self, data_width, buffers=BUFFERS):
        width      = data_width//8
        parts      = LINE_BYTES//width
        part_bits  = log2_int(parts)
        number     = log2_int(buffers)
        self.sink   = sink   = stream.Endpoint(line_layout(data_width, line_address_bits() + part_bits))
        self.hold   = hold   = Signal(8)
        self.close  = close  = Signal()
        self.source = source = stream.Endpoint(closed_layout())
        self.mask   = mask   = Signal(LINE_BYTES)
        self.at     = at     = Signal(part_bits)
        self.dat    = dat    = Signal(2*data_width)
        self.used   = used   = Signal(buffers)
        self.freed  = freed  = Signal(buffers)

        # # #

        # State ------------------------------------------------------------------------------------

        collects = [Signal(name=f"collects{n}") for n in range(buffers)]
        closed   = [Signal(name=f"closed{n}") for n in range(buffers)]
        lines    = [Signal(line_address_bits(), name=f"line{n}") for n in range(buffers)]
        due      = [Signal(name=f"due{n}") for n in range(buffers)]   # it must close
        left     = [Signal(8, name=f"left{n}") for n in range(buffers)]  # cycles until it must
        self.comb += used.eq(Cat(*[a | b for a, b in zip(collects, closed)]))

        # Place of the Store -----------------------------------------------------------------------

        line   = sink.adr[part_bits:]
        part   = sink.adr[:part_bits]
        hits   = [Signal(name=f"hit{n}") for n in range(buffers)]
        opens  = [Signal(name=f"opens{n}") for n in range(buffers)]
        hit    = Signal()
        self.free = free = FirstOf(buffers)
        place  = Signal(number)
        stores = Signal()
        self.comb += [
            *[one.eq(collects[n] & (lines[n] == line)) for n, one in enumerate(hits)],
            free.bits.eq(~used),
            hit.eq(Cat(*hits) != 0),
            *[one.eq(free.one[n] & ~hit) for n, one in enumerate(opens)],
            place.eq(number_of([a | b for a, b in zip(hits, opens)])),
            sink.ready.eq(hit | (used != 2**buffers - 1)),
            stores.eq(sink.valid & sink.ready),
        ]

        # Bytes ------------------------------------------------------------------------------------

        masks = Memory(LINE_BYTES, buffers, name="window_masks")
        bytes_ = Memory(data_width, buffers*parts, name="window_bytes")
        mask_was   = masks.get_port(async_read=True)
        mask_write = masks.get_port(write_capable=True)
        mask_read  = masks.get_port(async_read=True)
        write      = bytes_.get_port(write_capable=True, we_granularity=8)
        reads      = [bytes_.get_port(async_read=True) for _ in range(2)]
        self.specials += masks, bytes_, mask_was, mask_write, mask_read, write, *reads
        mask_now = Signal(LINE_BYTES)
        self.comb += [
            mask_was.adr.eq(place),
            mask_now.eq(Mux(hit, mask_was.dat_r, 0) |
                (sink.be << Cat(Constant(0, log2_int(width)), part))),
            mask_write.adr.eq(place),
            mask_write.dat_w.eq(mask_now),
            mask_write.we.eq(stores),
            write.adr.eq(Cat(part, place)),
            write.dat_w.eq(sink.dat),
            write.we.eq(Mux(stores, sink.be, 0)),
        ]

        # Close ------------------------------------------------------------------------------------

        # A full buffer closes first, because it would take no other store. The buffer that must make
        # room for another line is the next one in turn that collects; buffers are opened in turn if
        # the traffic is even. It closes while the one before it is sent, so none is waited for.
        fills   = Signal()
        turn    = Signal(number)
        wanted  = Signal()
        shut    = Signal(buffers)
        self.victim = victim = FirstOf(buffers)   # counted from `turn` on
        self.over   = over   = FirstOf(buffers)   # must close
        closes = Signal(buffers)
        number_closed = Signal(number)
        self.comb += [
            over.bits.eq(Cat(*due) & Cat(*collects)),
            Case(turn, {n: victim.bits.eq(Cat(*collects[n:], *collects[:n])) for n in range(buffers)}),
            fills.eq(stores & (mask_now == 2**LINE_BYTES - 1)),
            shut.eq(Cat(*closed)),
            wanted.eq(sink.valid & ~sink.ready & ((shut & (shut - 1)) == 0)),
            If(fills,
                closes.eq(1 << place)
            ).Elif(over.bits != 0,
                closes.eq(over.one)
            ).Elif(wanted,
                number_closed.eq(turn + number_of(victim.one)),
                closes.eq(1 << number_closed)
            ),
        ]
        self.sync += If(wanted & (closes != 0), turn.eq(turn + 1))

        # The order of closing. There is room for all buffers.
        self.order = order = stream.SyncFIFO([("buffer", number)], buffers)
        self.comb += [
            order.sink.valid.eq(closes != 0),
            order.sink.buffer.eq(number_of(closes)),
            source.valid.eq(order.source.valid),
            source.buffer.eq(order.source.buffer),
            source.line.eq(Array(lines)[order.source.buffer]),
            source.last.eq(1),
            order.source.ready.eq(source.ready),
            freed.eq(Mux(source.valid & source.ready, 1 << source.buffer, 0)),
            mask_read.adr.eq(source.buffer),
            mask.eq(mask_read.dat_r),
            reads[0].adr.eq(Cat(at, source.buffer)),
            reads[1].adr.eq(Cat((at + 1)[:part_bits], source.buffer)),
            dat.eq(Cat(reads[0].dat_r, reads[1].dat_r)),
        ]

        for n in range(buffers):
            self.sync += [
                If(freed[n], closed[n].eq(0)),
                If(left[n] != 0, left[n].eq(left[n] - 1)).Else(due[n].eq(1)),
                If(close, due[n].eq(1)),
                If(stores & opens[n],
                    collects[n].eq(1),
                    lines[n].eq(line),
                    left[n].eq(hold),
                    due[n].eq(0),
                ),
                If(closes[n],
                    collects[n].eq(0),
                    closed[n].eq(1),
                ),
            ]
