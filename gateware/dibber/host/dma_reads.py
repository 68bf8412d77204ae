"""Reads of host memory by descriptors of Corundum's DMA interface."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.host.descriptors import ERROR_POISONED, Pending, completion_status, descriptor_layout, status_layout
from dibber.layouts import FLAW_POISON, raw_completion_layout, read_layout

# DMA Reads ----------------------------------------------------------------------------------------

class DMAReads(LiteXModule):
    """Order the DMA engine to read, and make a completion of what it has stored in the RAM.

    The lines of the RAM and the tags of the descriptors are rings, as in DMAWrites. A completion
    leaves when its status comes, in any order; it has all bytes of its read.

    The engines' tags are 8 bits of a read. A tag may be used anew while the DMA engine still owes
    the status of its former read, which was given up. `owners` has the descriptor of each tag's
    latest read, so such a status makes no completion.

    A read whose data are poisoned gets a completion with this flaw, and then one with all bytes.
    `CompletionChecker` fails the read at the first one. The second one tells it that the host owes
    nothing more, so the tag is free at once.

    Parameters
    ----------
    data_width  : 64 or 128
    lines       : of the RAM, a power of two
    depth       : reads under way, a power of two
    max_request : bytes of the longest read

    Attributes
    ----------
    reads       : Endpoint(read_layout), in
    completions : Endpoint(raw_completion_layout), out    valid only
    adr, dat    : Signal, of ArrivalRAM
    id          : Signal(16), in                          requester ID of the completions
    descriptors : Endpoint(descriptor_layout), out
    status      : Endpoint(status_layout), in             valid only
    enable, discard, dropped, stray : as DMAWrites has them

    Cycles: 1 from read to descriptor, a read a cycle; 5 from a status to the first line of its
    completion, a line a cycle.
    """
    def __init__(self, data_width, lines, depth=128, max_request=512):
        line_bytes = data_width//8
        byte_bits  = log2_int(line_bytes)
        most_lines = max_request//line_bytes + 1
        index_bits = log2_int(depth)
        self.reads       = reads = stream.Endpoint(read_layout())
        self.completions = completions = stream.Endpoint(raw_completion_layout(data_width))
        self.adr         = Signal(max=lines)
        self.dat         = Signal(data_width)
        self.id          = Signal(16)
        self.pipe        = pipe = stream.PipeValid(descriptor_layout())
        self.descriptors = pipe.source
        self.status      = status = stream.Endpoint(status_layout())
        self.enable      = Signal(reset=1)
        self.discard     = Signal()
        self.dropped     = Signal()
        self.pending     = pending = Pending(depth, status)
        self.stray       = pending.stray

        # # #

        # Descriptors ------------------------------------------------------------------------------

        head, tail = (Signal(index_bits + 1, name=name) for name in ("read_head", "read_tail"))
        used     = Signal(max=lines + 1)
        produce  = Signal(max=lines)
        size     = Signal(max=most_lines + 1)  # lines of this read
        has_room = Signal()
        opened   = Signal(reset=1)
        pushes   = Signal()
        drops    = Signal()
        frees    = Signal()
        sizes    = Memory(bits_for(most_lines), depth, name="read_sizes")
        keep, size_of = sizes.get_port(write_capable=True), sizes.get_port(async_read=True)
        self.specials += sizes, keep, size_of
        busy     = Signal(depth)  # reads whose lines are in use
        self.sync += [
            # `used` and `head` are those of the cycle before, in which a read may have begun.
            has_room.eq((used < lines - 2*most_lines) & ((head - tail)[:index_bits + 1] < depth - 2)),
            opened.eq(self.enable),
        ]
        self.comb += [
            size.eq((reads.address[:byte_bits] + reads.length + (line_bytes - 1)) >> byte_bits),
            pushes.eq(reads.valid & opened & has_room & pipe.sink.ready),
            drops.eq(reads.valid & ~opened & self.discard),
            reads.ready.eq((opened & has_room & pipe.sink.ready) | (~opened & self.discard)),
            pipe.sink.valid.eq(reads.valid & opened & has_room),
            pipe.sink.dma_addr.eq(reads.address),
            pipe.sink.ram_addr.eq(Cat(reads.address[:byte_bits], produce)),
            pipe.sink.len.eq(reads.length),
            pipe.sink.tag.eq(head[:index_bits]),
            pending.start.eq(pushes),
            pending.index.eq(head),
            keep.adr.eq(head),
            keep.we.eq(pushes),
            keep.dat_w.eq(size),
            size_of.adr.eq(tail),
            frees.eq((tail != head) & ~(busy >> tail[:index_bits])[0]),
        ]
        self.sync += [
            If(pushes, head.eq(head + 1), produce.eq(produce + size)),
            tail.eq(tail + frees),
            used.eq(used + Mux(pushes, size, 0) - Mux(frees, size_of.dat_r, 0)),
            self.dropped.eq(drops),
        ]

        # What is known of each read ---------------------------------------------------------------

        layout = [("tag", 8), ("lower", 7), ("length", 13), ("begin", log2_int(lines))]
        asked  = Memory(len(Record(layout)), depth, name="read_asked")
        owners = Memory(index_bits, 256, name="read_owners")
        ask, asked_of = asked.get_port(write_capable=True), asked.get_port(async_read=True)
        own, owner_of = owners.get_port(write_capable=True), owners.get_port(async_read=True)
        self.specials += asked, ask, asked_of, owners, own, owner_of
        self.comb += [
            ask.adr.eq(head),
            ask.we.eq(pushes),
            ask.dat_w.eq(Cat(reads.tag, reads.address[:7], reads.length, produce)),
            own.adr.eq(reads.tag),
            own.we.eq(pushes),
            own.dat_w.eq(head),
        ]

        # Ended reads ------------------------------------------------------------------------------

        # A status waits here while the lines of others leave.
        ended_layout = [("index", index_bits), ("error", 4)]
        self.ended   = ended = stream.SyncFIFO(ended_layout, depth)
        self.job     = job   = stream.PipeValid(ended_layout + layout + [("end", bits_for(most_lines))])
        found = Record(layout)
        self.comb += [
            ended.sink.valid.eq(pending.ended),
            ended.sink.index.eq(status.tag),
            ended.sink.error.eq(status.error),
            asked_of.adr.eq(ended.source.index),
            found.raw_bits().eq(asked_of.dat_r),
            ended.source.connect(job.sink),
            *[getattr(job.sink, name).eq(getattr(found, name)) for name, _ in layout],
            job.sink.end.eq((found.lower[:byte_bits] + found.length - 1) >> byte_bits),
        ]

        # Completions ------------------------------------------------------------------------------

        read    = job.source
        line    = Signal(max=most_lines + 1)
        flagged = Signal()  # the completion with the flaw has left
        stale   = Signal()  # a later read has this tag
        poison  = Signal()  # this beat tells of poisoned data
        refusal = Signal()
        closes  = Signal()  # nothing more leaves for this read
        out     = stream.Endpoint(raw_completion_layout(data_width))
        behind  = stream.Endpoint(raw_completion_layout(data_width))
        self.comb += [
            owner_of.adr.eq(read.tag),
            stale.eq(owner_of.dat_r != read.index),
            poison.eq((read.error == ERROR_POISONED) & ~flagged),
            refusal.eq((read.error != 0) & (read.error != ERROR_POISONED)),
            closes.eq(stale | refusal | (~poison & (line == read.end))),
            read.ready.eq(closes),
            self.adr.eq(read.begin + line),
            out.valid.eq(read.valid & ~stale),
            out.last.eq(poison | refusal | (line == read.end)),
            out.tag.eq(read.tag),
            out.lower.eq(read.lower),
            out.count.eq(read.length),
            out.requester.eq(self.id),
            If(poison | refusal,
                out.status.eq(completion_status(read.error)),
            ).Else(
                out.bytes.eq(read.length),
            ),
            If(poison, out.flaw.eq(FLAW_POISON)),
        ]
        self.sync += [
            If(read.valid,
                If(closes,
                    line.eq(0),
                    flagged.eq(0),
                ).Elif(poison,
                    flagged.eq(1)
                ).Else(
                    line.eq(line + 1)
                )
            ),
            [If(read.valid & closes & (read.index == n), busy[n].eq(0)) for n in range(depth)],
            [If(pushes & (head[:index_bits] == n), busy[n].eq(1)) for n in range(depth)],
            # The RAM needs two cycles, and so do the fields beside its line.
            out.connect(behind, omit={"ready"}),
            behind.connect(completions, omit={"ready", "dat"}),
        ]
        self.comb += completions.dat.eq(self.dat)
