"""The tags of our read requests: free, in flight, or set aside because their time ran out."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

# tags for hosts that do not enable extended ones; of the 32 there are, the others are other
# readers'
UNEXTENDED = 21

# Tags ---------------------------------------------------------------------------------------------

class Tags(LiteXModule):
    """Hand tags out, take them back, and watch their age.

    A read that is not answered within `timeout` cycles expires. Its tag is then *in quarantine*:
    what still arrives for it is absorbed, and it is used again after its last completion, or
    `quarantine` cycles after its request. The default is the longest that PCIe leaves a device to
    answer unless software allows more: 50 ms (PCIe Base 3.0, 7.8.16), and a third on top.

    No tag is handed out in the first `timeout` cycles after reset, so that answers to what was
    asked before the reset find no reader.

    Parameters
    ----------
    tags       : 1 to 256, a power of two
    timeout    : cycles
    quarantine : cycles, more than timeout
    base       : tags that a host without extended ones lets be used

    Attributes
    ----------
    extended : Signal(), in    tags from `base` on may be used (PCIe: extended tag field enabled)
    source   : Endpoint([("tag", 8)]), out    next free tag; taking it starts its age
    answered : Signal(8), in   the tag of a completion
    known    : Signal(), out   that tag is in flight or in quarantine
    live     : Signal(), out   it is in flight
    release  : Signal(), in    the completion is the last one of its read: the tag, if known, is
               free again.
                               Nothing expires in this cycle
    fail     : Signal(), in    the read has failed, but the host may still send for it: the tag, if
               live, goes into
                               quarantine. Nothing expires in this cycle. Not together with
                               `release`
    expired  : Signal(tags), out   in quarantine
    exhausted : Signal(), out  all tags that may be used are in quarantine
    expire   : Signal(), out   one cycle: `expire_tag` goes into quarantine
    expire_tag : Signal(8), out

    Cycles: a tag a cycle. `known` and `live` are of the same cycle, and a released tag is unknown
    in the next. An age is looked at in 3 cycles, and one more for each release that it meets; all
    of them in a *round*. An expiry is at most 3 rounds late.
    """
    def __init__(self, tags, timeout, quarantine, base=UNEXTENDED):
        self.extended   = Signal()
        self.source     = source = stream.Endpoint([("tag", 8)])
        self.answered   = Signal(8)
        self.known      = Signal()
        self.live       = Signal()
        self.release    = Signal()
        self.fail       = Signal()
        self.exhausted  = Signal()
        self.expired    = expired = Signal(tags)
        self.expire     = Signal()
        self.expire_tag = Signal(8)

        # # #

        # Time in rounds over all tags.
        timeout_rounds    = timeout//(3*tags) + 2
        quarantine_rounds = quarantine//(3*tags) + 2
        now     = Signal(bits_for(quarantine_rounds) + 1)
        scan    = Signal(max=max(tags, 2))
        settled = Signal()
        self.sync += If(now == timeout_rounds, settled.eq(1))

        # State. A tag comes back in the cycle after it was found to be free, so that finding out
        # and coming back, which reaches every tag, are apart; in this cycle it is not in use any
        # more.
        busy    = Signal(tags)
        free    = Signal()   # it comes back
        which   = Signal(8)
        late    = Signal()   # quarantine is over
        flying  = Array(busy[i] for i in range(tags))
        dead    = Array(expired[i] for i in range(tags))
        in_use  = lambda tag: flying[tag] & ~(free & (which == tag))
        failing = Signal()   # the tag that is looked at goes into quarantine
        self.comb += [
            self.known.eq(in_use(self.answered) & (self.answered < tags)),
            self.live.eq(self.known & ~dead[self.answered]),
        ]
        self.sync += [
            free.eq((self.release & self.known) | late),
            which.eq(Mux(self.release, self.answered, scan)),
        ]
        for i in range(tags):
            self.sync += [
                If(source.valid & source.ready & (source.tag == i),
                    busy[i].eq(1)
                ),
                If((self.expire & (scan == i)) | (self.fail & self.live & (self.answered == i)),
                    expired[i].eq(1)
                ),
                If(free & (which == i),
                    busy[i].eq(0),
                    expired[i].eq(0)
                )
            ]

        # Free tags: those that every host takes, and those for hosts that enable extended tags.
        low    = min(tags, base)
        every  = 2**tags - 1
        self.sync += self.exhausted.eq(Mux(self.extended, expired == every, expired[:low] == 2**low - 1))
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

        # Ages, one tag after the other. The stamp read belongs to a request in flight only if the
        # tag was busy by then and has not come back since.
        stamps = Memory(len(now), max(tags, 2))
        stamp  = stamps.get_port(write_capable=True)
        look   = stamps.get_port(mode=READ_FIRST)
        self.specials += stamps, stamp, look
        age     = Signal(len(now))
        watched = Signal()
        gone    = Signal()  # into quarantine
        due     = Signal()  # its time is over
        over    = Signal()  # and that of its quarantine
        self.comb += [
            stamp.adr.eq(source.tag),
            stamp.dat_w.eq(now),
            stamp.we.eq(source.valid & source.ready),
            look.adr.eq(scan),
            age.eq(now - look.dat_r),
            self.expire_tag.eq(scan),
        ]
        # A tag that fails while it is looked at is looked at again a round later, as one in
        # quarantine.
        self.comb += failing.eq(self.fail & self.live & (self.answered == scan))
        self.sync += If((free & (which == scan)) | failing, watched.eq(0))
        self.fsm = fsm = FSM(reset_state="LOOK")
        fsm.act("LOOK",
            NextValue(watched, in_use(scan) & ~failing),
            NextValue(gone, dead[scan]),
            NextState("COMPARE")
        )
        fsm.act("COMPARE",
            NextValue(due, age >= timeout_rounds),
            NextValue(over, age >= quarantine_rounds),
            NextState("JUDGE")
        )
        fsm.act("JUDGE",
            If(~(self.release | self.fail),
                If(watched & ~(free & (which == scan)),
                    self.expire.eq(due & ~gone),
                    late.eq(over & gone),
                ),
                NextValue(scan, scan + 1),
                If(scan == tags - 1,
                    NextValue(scan, 0),
                    NextValue(now, now + 1)
                ),
                NextState("LOOK")
            )
        )
