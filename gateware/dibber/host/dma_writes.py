"""Writes to host memory by descriptors of Corundum's DMA interface."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.host.descriptors import Pending, descriptor_layout, status_layout
from dibber.layouts import write_layout

# DMA Writes ---------------------------------------------------------------------------------------

class DMAWrites(LiteXModule):
    """Store each write in a RAM, and order the DMA engine to write it to host memory.

    The RAM and the tags are rings: lines and tags are given out in order, and come back in order.
    Statuses may come in any order. A mark is given when its write and all earlier ones have ended.

        head : next tag · mark : oldest write without a mark · tail : oldest write in the RAM

    Posts go first, as in TLPTransmitter. All descriptors leave on one stream, because the DMA
    engine keeps the order of one stream only.

    While `enable` is 0 no write begins. With `discard`, writes that may not begin are dropped, and
    all marks are given: the engines must not wait for a host that takes nothing. A descriptor that
    has left cannot be called back; its lines stay in the RAM until its status comes.

    Parameters
    ----------
    data_width  : 64 or 128
    lines       : of the RAM, a power of two
    depth       : writes under way, a power of two
    max_payload : bytes of the longest write

    Attributes
    ----------
    writes, posts : Endpoint(write_layout), in
    marked      : Signal(), out   a write with `mark` is on its way to host memory, and so are all
                  earlier ones
    we, adr, dat : Signal, out    to DepartureRAM
    descriptors : Endpoint(descriptor_layout), out
    status      : Endpoint(status_layout), in    valid only
    enable      : Signal(), in
    discard     : Signal(), in
    hold        : Signal(), in    give no marks; ignored with `discard`
    drops, dropped : Signal(), out   one cycle for each dropped write; `dropped` is one cycle later
    failed      : Signal(), out   one cycle: a write ended with an error
    stray       : Signal(), out   one cycle: a status without a write
    empty       : Signal(), out   no write is under way
    ask         : Signal(), in    one cycle; from the next one on `landed` counts
    landed      : Signal(), out   the posts that were offered or under way at `ask` have ended; or
                  `enable` is 0, because loads must not wait for a host that takes nothing

    Cycles: 1 from the last line of a write to its descriptor, a line a cycle; 2 from a status to
    its mark, a mark a cycle.
    """
    def __init__(self, data_width, lines, depth=64, max_payload=256):
        line_bytes = data_width//8
        byte_bits  = log2_int(line_bytes)
        most_lines = max_payload//line_bytes + 1
        index_bits = log2_int(depth)
        self.writes  = stream.Endpoint(write_layout(data_width))
        self.posts   = stream.Endpoint(write_layout(data_width))
        self.marked  = Signal()
        self.we      = Signal()
        self.adr     = Signal(max=lines)
        self.dat     = Signal(data_width)
        self.pipe    = pipe = stream.PipeValid(descriptor_layout())
        self.descriptors = pipe.source
        self.status  = status = stream.Endpoint(status_layout())
        self.enable  = Signal(reset=1)
        self.discard = Signal()
        self.hold    = Signal()
        self.drops   = Signal()
        self.dropped = Signal()
        self.failed  = Signal()
        self.empty   = Signal()
        self.ask     = Signal()
        self.landed  = Signal()
        self.pending = pending = Pending(depth, status)
        self.stray   = pending.stray

        # # #

        # Choice -----------------------------------------------------------------------------------

        line    = stream.Endpoint(write_layout(data_width))
        locked  = Signal()  # between the first and the last line of a write
        held    = Signal()
        is_post = Signal()
        self.comb += [
            is_post.eq(Mux(locked, held, self.posts.valid)),
            If(is_post, self.posts.connect(line)).Else(self.writes.connect(line)),
        ]

        # Rings ------------------------------------------------------------------------------------

        # One bit more than an index tells a full ring from an empty one.
        head, mark, tail = (Signal(index_bits + 1, name=name) for name in ("head", "mark", "tail"))
        used     = Signal(max=lines + 1)  # lines in the RAM
        produce  = Signal(max=lines)      # the next line's place
        has_room = Signal()               # for the longest write, and for its tag
        opened   = Signal(reset=1)        # writes may begin
        may_drop = Signal()               # all marks are given, so the dropped write's is the next
        self.sync += [
            # `used` and `head` are those of the cycle before: one line and one tag may be missing.
            has_room.eq((used < lines - most_lines - 1) & ((head - tail)[:index_bits + 1] < depth - 2)),
            opened.eq(self.enable),
        ]
        self.comb += may_drop.eq(self.discard & ~opened & (mark == head))

        # Lines ------------------------------------------------------------------------------------

        dropping = Signal()  # the write that is locked is dropped
        passes   = Signal()
        drops    = Signal()
        taken    = Signal()  # the line goes to the RAM
        begun    = Signal(max=lines)           # the first line's place
        count    = Signal(max=most_lines + 1)  # lines of this write before this one
        start    = Signal(max=lines)
        pushes   = Signal()
        self.comb += [
            # A write that has begun waits for nothing: only its descriptor will fill `pipe`.
            passes.eq(Mux(locked, ~dropping, opened & has_room & pipe.sink.ready)),
            drops.eq(Mux(locked, dropping, may_drop)),
            taken.eq(line.valid & passes),
            line.ready.eq(passes | drops),
            start.eq(Mux(locked, begun, produce)),
            self.we.eq(taken),
            self.adr.eq(produce),
            self.dat.eq(line.dat),
            pushes.eq(taken & line.last),
            self.drops.eq(line.valid & drops & line.last),
            pipe.sink.valid.eq(pushes),
            pipe.sink.dma_addr.eq(line.address),
            pipe.sink.ram_addr.eq(Cat(line.address[:byte_bits], start)),
            pipe.sink.len.eq(line.length),
            pipe.sink.tag.eq(head[:index_bits]),
            pending.start.eq(pushes),
            pending.index.eq(head),
        ]
        self.sync += [
            If(line.valid & line.ready,
                locked.eq(~line.last),
                held.eq(is_post),
                dropping.eq(drops),
                count.eq(count + 1),
                If(~locked, begun.eq(produce)),
                If(line.last, count.eq(0)),
            ),
            If(taken, produce.eq(produce + 1)),
            If(pushes, head.eq(head + 1)),
            self.dropped.eq(self.drops),
        ]

        # Ends -------------------------------------------------------------------------------------

        kinds  = Memory(2, depth, name="write_kinds")   # mark, post
        sizes  = Memory(bits_for(most_lines), depth, name="write_sizes")
        note, kind_of = kinds.get_port(write_capable=True), kinds.get_port(async_read=True)
        keep, size_of = sizes.get_port(write_capable=True), sizes.get_port(async_read=True)
        self.specials += kinds, note, kind_of, sizes, keep, size_of
        marks   = Signal()  # the oldest write without a mark has ended
        frees   = Signal()
        waiting = Signal(index_bits + 1)  # posts without a mark
        self.comb += [
            note.adr.eq(head),
            note.we.eq(pushes),
            note.dat_w.eq(Cat(line.mark, is_post)),
            keep.adr.eq(head),
            keep.we.eq(pushes),
            keep.dat_w.eq(count + 1),
            kind_of.adr.eq(mark),
            size_of.adr.eq(tail),
            marks.eq((mark != head) & ((~(pending.owed >> mark[:index_bits])[0] & ~self.hold) | self.discard)),
            frees.eq((tail != mark) & ~(pending.owed >> tail[:index_bits])[0]),
            self.empty.eq(tail == head),
            self.failed.eq(pending.ended & (status.error != 0)),
        ]
        self.sync += [
            mark.eq(mark + marks),
            tail.eq(tail + frees),
            used.eq(used + taken - Mux(frees, size_of.dat_r, 0)),
            waiting.eq(waiting + (pushes & is_post) - (marks & kind_of.dat_r[1])),
            self.marked.eq((marks & kind_of.dat_r[0]) | (self.drops & line.mark)),
        ]

        # Loads ------------------------------------------------------------------------------------

        target = Signal(index_bits + 1)  # posts with lower tags must have ended
        self.fsm = fsm = FSM(reset_state="LANDED")
        fsm.act("LANDED",
            self.landed.eq(1),
            NextValue(target, head),
            If(self.ask & self.posts.valid,
                NextState("OFFERED")
            ).Elif(self.ask & (waiting != 0),
                NextState("ENDING")
            )
        )
        fsm.act("OFFERED",
            NextValue(target, head + 1),
            If(~self.posts.valid | (self.posts.ready & self.posts.last), NextState("ENDING")),
            If(~opened, NextState("LANDED"))
        )
        fsm.act("ENDING",
            If((mark == target) | ~opened, NextState("LANDED"))
        )
