"""Allocator of read request tags: free, in flight, or in quarantine after a timeout."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

# Tags of this reader on hosts without extended tags; other readers have the rest of the 32.
UNEXTENDED = 21

# Tags ---------------------------------------------------------------------------------------------

class Tags(LiteXModule):
    """Allocate tags, free them, and watch their age.

    A read that is not answered within `timeout` cycles expires. Its tag is then *in quarantine*:
    late completions for it are absorbed. The tag is used again after its read's last completion, or
    `quarantine` cycles after its request. The default quarantine is the longest completion timeout
    of PCIe, 50 ms (PCIe Base 3.0, 7.8.16), plus a third.

    No tag is given out in the first `timeout` cycles after a reset, so that answers to reads from
    before the reset find no reader.

    Each use of a tag has the other *phase* than the use before. The phase goes with the request to
    `CompletionChecker`, which returns it with each completion. A request may wait in buffers after
    its tag was taken. Until it is sent, the checker still knows the former read of this tag, which
    was abandoned. A completion of that read has the former phase here, so it is unknown.

    Parameters
    ----------
    tags       : 1 to 256, a power of two
    timeout    : cycles
    quarantine : cycles, more than timeout
    base       : number of tags if the host does not enable extended tags

    Attributes
    ----------
    extended : Signal(), in    tags from `base` on may be used (PCIe: extended tag field enabled)
    source   : Endpoint([("tag", 8), ("phase", 1)]), out    next free tag, and the phase of its
               next use; its age starts when it is taken
    answered : Signal(8), in   the tag of a completion
    answered_phase : Signal(), in   the phase that came with it
    known    : Signal(), out   `answered` is in flight or in quarantine, and this use has this phase
    live     : Signal(), out   `answered` is known and in flight
    release  : Signal(), in    the completion is the last of its read: `answered`, if known, is free
               again. No tag expires in this cycle
    fail     : Signal(), in    the read has failed, but the host may still send for it: `answered`,
               if live, goes into quarantine. No tag expires in this cycle. Not together with
               `release`
    expired  : Signal(tags), out   one bit a tag: in quarantine
    exhausted : Signal(), out  all usable tags are in quarantine
    expire   : Signal(), out   one cycle: `expire_tag` goes into quarantine
    expire_tag : Signal(8), out

    Cycles: one tag a cycle. `known` and `live` answer in the same cycle; a released tag is unknown
    in the next cycle. Checking an age takes 3 cycles, and one more for each coinciding release. One
    check of all tags is a *round*. An expiry is at most 3 rounds late. While no tag is in use, no
    age is checked, and time stands still.
    """
    def __init__(self, tags, timeout, quarantine, base=UNEXTENDED):
        self.extended   = Signal()
        self.source     = source = stream.Endpoint([("tag", 8), ("phase", 1)])
        self.answered   = Signal(8)
        self.answered_phase = Signal()
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

        # State. A tag returns in the cycle after its release was found. This splits the timing
        # path of the search and of the return, which reaches every tag. In between, `in_use`
        # already excludes the tag.
        busy            = Signal(tags)
        taken           = Signal()
        tag_returns     = Signal()
        returned_tag    = Signal(8)
        quarantine_over = Signal()
        is_busy         = Array(busy[i] for i in range(tags))
        is_expired      = Array(expired[i] for i in range(tags))
        in_use          = lambda tag: is_busy[tag] & ~(tag_returns & (returned_tag == tag))
        failing         = Signal()   # the scanned tag goes into quarantine now

        # Phase of each tag's present use. It is written before it is read: only the phases of busy
        # tags count.
        phases            = Memory(1, max(tags, 2), name="tag_phases")
        phase_write       = phases.get_port(write_capable=True)
        phase_of_answered = phases.get_port(async_read=True)
        phase_of_returned = phases.get_port(async_read=True)
        self.specials += phases, phase_write, phase_of_answered, phase_of_returned
        self.comb += [
            phase_write.adr.eq(source.tag),
            phase_write.dat_w.eq(source.phase),
            phase_write.we.eq(source.valid & source.ready),
            phase_of_answered.adr.eq(self.answered),
            phase_of_returned.adr.eq(returned_tag),
        ]
        self.comb += [
            taken.eq(source.valid & source.ready),
            self.known.eq(in_use(self.answered) & (self.answered < tags) &
                (self.answered_phase == phase_of_answered.dat_r)),
            self.live.eq(self.known & ~is_expired[self.answered]),
        ]
        self.sync += [
            tag_returns.eq((self.release & self.known) | quarantine_over),
            returned_tag.eq(Mux(self.release, self.answered, scan)),
        ]
        for i in range(tags):
            self.sync += [
                If(taken & (source.tag == i),
                    busy[i].eq(1)
                ),
                If((self.expire & (scan == i)) | (self.fail & self.live & (self.answered == i)),
                    expired[i].eq(1)
                ),
                If(tag_returns & (returned_tag == i),
                    busy[i].eq(0),
                    expired[i].eq(0)
                )
            ]

        # While no tag is in use the scan rests, so that an idle card changes no state here.
        tags_in_use = Signal(max=tags + 1)
        resting     = Signal()
        self.comb += resting.eq(settled & (tags_in_use == 0))
        self.sync += tags_in_use.eq(tags_in_use + taken - tag_returns)

        # Free tags: one FIFO for the tags of every host, one for extended tags.
        low      = min(tags, base)
        all_tags = 2**tags - 1
        self.sync += self.exhausted.eq(
            Mux(self.extended, expired == all_tags, expired[:low] == 2**low - 1))
        groups = [(0, low)] + ([(low, tags - low)] if tags > low else [])
        fifos  = []
        for first, count in groups:
            fifo  = stream.SyncFIFO([("tag", 8), ("phase", 1)], max(count, 2))
            fill  = Signal(max=count + 1)
            fresh = Signal()
            self.submodules += fifo
            fifos.append(fifo)
            of_group = (returned_tag >= low) if first else (returned_tag < low)
            self.comb += [
                fresh.eq(settled & (fill != count) & ~tag_returns),
                fifo.sink.valid.eq((tag_returns & of_group) | fresh),
                fifo.sink.tag.eq(Mux(tag_returns, returned_tag, first + fill)),
                fifo.sink.phase.eq(tag_returns & ~phase_of_returned.dat_r),
            ]
            self.sync += If(fresh, fill.eq(fill + 1))
        if len(fifos) == 2:
            extended_tags = fifos[1].source
            self.comb += [
                If(self.extended & ~fifos[0].source.valid,
                    extended_tags.connect(source)
                ).Else(
                    fifos[0].source.connect(source)
                )
            ]
        else:
            self.comb += fifos[0].source.connect(source)

        # Ages, one tag after the other. The stamp that was read is valid only if the tag was busy
        # then, and has not returned since.
        stamps = Memory(len(now), max(tags, 2))
        stamp  = stamps.get_port(write_capable=True)
        look   = stamps.get_port(mode=READ_FIRST)
        self.specials += stamps, stamp, look
        age              = Signal(len(now))
        watched          = Signal()
        in_quarantine    = Signal()
        timed_out        = Signal()
        quarantine_ended = Signal()
        self.comb += [
            stamp.adr.eq(source.tag),
            stamp.dat_w.eq(now),
            stamp.we.eq(taken),
            look.adr.eq(scan),
            age.eq(now - look.dat_r),
            self.expire_tag.eq(scan),
        ]
        # If a tag fails while it is scanned, the next round scans it as a tag in quarantine.
        self.comb += failing.eq(self.fail & self.live & (self.answered == scan))
        self.sync += If((tag_returns & (returned_tag == scan)) | failing, watched.eq(0))
        self.fsm = fsm = FSM(reset_state="LOOK")
        fsm.act("LOOK",
            NextValue(watched, in_use(scan) & ~failing),
            NextValue(in_quarantine, is_expired[scan]),
            If(~resting, NextState("COMPARE"))
        )
        fsm.act("COMPARE",
            NextValue(timed_out, age >= timeout_rounds),
            NextValue(quarantine_ended, age >= quarantine_rounds),
            NextState("JUDGE")
        )
        fsm.act("JUDGE",
            If(~(self.release | self.fail),
                If(watched & ~(tag_returns & (returned_tag == scan)),
                    self.expire.eq(timed_out & ~in_quarantine),
                    quarantine_over.eq(quarantine_ended & in_quarantine),
                ),
                NextValue(scan, scan + 1),
                If(scan == tags - 1,
                    NextValue(scan, 0),
                    NextValue(now, now + 1)
                ),
                NextState("LOOK")
            )
        )
