# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The tags of our read requests: free, in flight, or set aside because their time ran out."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

UNEXTENDED = 24  # tags for hosts that do not enable extended ones; of the 32 there are, the others are other readers'

# Tags ---------------------------------------------------------------------------------------------

class Tags(LiteXModule):
    """Hand tags out, take them back, and watch their age.

    A read that is not answered within `timeout` cycles expires. Its tag is then *in quarantine*: what
    still arrives for it is absorbed, and it is used again after its last completion, or `quarantine`
    cycles after its request. The default is the longest that PCIe leaves a device to answer unless
    software allows more: 50 ms (PCIe Base 3.0, 7.8.16), and a third on top.

    No tag is handed out in the first `timeout` cycles after reset, so that answers to what was asked
    before the reset find no reader.

    Parameters
    ----------
    tags       : 1 to 256, a power of two
    timeout    : cycles
    quarantine : cycles, more than timeout

    Attributes
    ----------
    extended : Signal(), in    tags from UNEXTENDED on may be used (PCIe: extended tag field enabled)
    source   : Endpoint([("tag", 8)]), out    next free tag; taking it starts its age
    busy     : Signal(tags), out    in flight or in quarantine
    expired  : Signal(tags), out    in quarantine
    release  : Signal(), in    `released` is answered; not in a cycle after the one that made it free
    released : Signal(8), in
    hold     : Signal(), in    nothing may expire in this cycle
    expire   : Signal(), out   one cycle: `expire_tag` goes into quarantine
    expire_tag : Signal(8), out

    Cycles: a tag a cycle. Ages are looked at once in `tags` cycles, which is what `timeout` may be late.
    """
    def __init__(self, tags, timeout, quarantine):
        self.extended   = Signal()
        self.source     = source = stream.Endpoint([("tag", 8)])
        self.busy       = busy    = Signal(tags)
        self.expired    = expired = Signal(tags)
        self.release    = Signal()
        self.released   = Signal(8)
        self.hold       = Signal()
        self.expire     = Signal()
        self.expire_tag = Signal(8)

        # # #

        # Time in rounds over all tags.
        timeout_rounds    = timeout//tags + 2
        quarantine_rounds = quarantine//tags + 2
        now     = Signal(bits_for(quarantine_rounds) + 1)
        scan    = Signal(max=max(tags, 2))
        settled = Signal()
        self.sync += If(now == timeout_rounds, settled.eq(1))

        # Free tags: those that every host takes, and those for hosts that enable extended tags.
        free   = Signal()   # a tag comes back
        which  = Signal(8)
        low    = min(tags, UNEXTENDED)
        groups = [(0, low)] + ([(low, tags - low)] if tags > low else [])
        fifos  = []
        for first, count in groups:
            fifo  = stream.SyncFIFO([("tag", 8)], max(count, 2))
            fill  = Signal(max=count + 1)
            fresh = Signal()
            self.submodules += fifo
            fifos.append(fifo)
            mine = (which >= low) if first else (which < low)
            self.comb += [
                fresh.eq(settled & (fill != count) & ~free),
                fifo.sink.valid.eq((free & mine) | fresh),
                fifo.sink.tag.eq(Mux(free, which, first + fill)),
            ]
            self.sync += If(fresh, fill.eq(fill + 1))
        if len(fifos) == 2:
            above = fifos[1].source
            self.comb += [
                If(self.extended & ~fifos[0].source.valid,
                    above.connect(source)
                ).Else(
                    fifos[0].source.connect(source)
                )
            ]
        else:
            self.comb += fifos[0].source.connect(source)

        # Ages. The stamp read belongs to the request in flight only if the tag was busy by then.
        stamps = Memory(len(now), max(tags, 2))
        stamp  = stamps.get_port(write_capable=True)
        look   = stamps.get_port(mode=READ_FIRST)
        self.specials += stamps, stamp, look
        seen      = Signal(max=max(tags, 2))
        seen_busy = Signal()
        age       = Signal(len(now))
        late      = Signal()  # quarantine is over
        advance   = Signal()
        array     = Array(busy[i] for i in range(tags))
        dead      = Array(expired[i] for i in range(tags))
        self.comb += [
            stamp.adr.eq(source.tag),
            stamp.dat_w.eq(now),
            stamp.we.eq(source.valid & source.ready),
            age.eq(now - look.dat_r),
            self.expire_tag.eq(seen),
            self.expire.eq(seen_busy & array[seen] & ~dead[seen] & (age >= timeout_rounds) & ~self.hold),
            late.eq(seen_busy & array[seen] & dead[seen] & (age >= quarantine_rounds) & ~self.release),
            advance.eq(~self.hold & ~self.release),
            look.adr.eq(Mux(advance, scan, seen)),
            free.eq(self.release | late),
            which.eq(Mux(self.release, self.released, seen)),
        ]
        self.sync += If(advance,
            scan.eq(scan + 1),
            seen.eq(scan),
            seen_busy.eq(array[scan]),
            If(scan == tags - 1,
                scan.eq(0),
                now.eq(now + 1)
            )
        )
        for i in range(tags):
            self.sync += [
                If(source.valid & source.ready & (source.tag == i),
                    busy[i].eq(1)
                ).Elif(free & (which == i),
                    busy[i].eq(0)
                ),
                If(free & (which == i),
                    expired[i].eq(0)
                ).Elif(self.expire & (seen == i),
                    expired[i].eq(1)
                )
            ]
