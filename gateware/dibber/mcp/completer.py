# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The end of puts: what is acknowledged, and whose job has ended, becomes a completion."""

from functools import reduce
from operator import or_

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, ENTRY, LANE, STATUS
from dibber.layouts import entry_layout, job_done_layout, slot_free_layout

# Kinds of Looks -----------------------------------------------------------------------------------

OLDEST, JOB, SHOW = range(3)  # has the oldest put ended; is that its job's end; what is there for the program

# Completer ----------------------------------------------------------------------------------------

class Completer(LiteXModule):
    """Look at rings, one a cycle, and judge what was found there.

    A look takes four cycles: whose ring is chosen, its places are looked up, its put is read, compared, and judged.
    What a judgement changes is changed in that one cycle, and no look that saw the flow as it was before is judged
    after that. First comes a flow whose ACKED has moved, then what the program asks for, then the end of a
    job, then a flow of which a put has just ended, else all of them in turn: so nothing has to be remembered of
    what might end, and nothing is forgotten.

    A job's end is the fast path's if its tag is that of the oldest put of an armed flow whose job has not ended: jobs
    end in the order in which they were given, and a slot is in use by one command only. If that end is not
    the expected one the flow is given away, and the end with it.

    Parameters
    ----------
    rings : PutRings; its `look` is driven from here

    Attributes
    ----------
    still   : Signal(), in         the program changes something in this cycle: nothing is judged, all looks begin anew
    armed   : Signal(FLOWS), in
    enter   : Record, in           what is to be remembered of a put, by its tag
    acked   : list of Signal(16), in    last PSN acknowledged, by flow number
    changed : Signal(FLOWS), in    pulses: `acked` of this flow moved
    refusal_waiting : Signal(), in      nothing ends
    job_done_in : Endpoint(job_done_layout), in
    job_done    : Endpoint(job_done_layout), out   those that are the program's
    ask     : Signal(), in         the program wants to see the ring of flow `asked`, which is not armed
    asked   : Signal, in           from the cycle after `ask` on
    asking  : Signal(), out        it has not been shown yet
    shown   : Record, out          the ring and its oldest put
    move    : Record, out          to the rings
    give    : Record, out          in a cycle with `strobe`: `flow` is not armed any more
    entry   : Endpoint(entry_layout), out
    free    : Record(slot_free_layout), out    in the cycle in which the entry is taken

    Cycles: 4 from `changed` to `entry`, a put of a flow in 5; 4 from `job_done_in` to its end; 6 at most from `ask` to
    `shown`.
    """
    def __init__(self, rings):
        flows   = C.LANES*C.NODES
        nodes   = log2_int(C.NODES)
        tags    = len(rings.found.tag)
        details = [("cookie", 32), ("length", 32), ("solicit", 1)]
        self.still           = still = Signal()
        self.armed           = armed = Signal(flows)
        self.enter           = enter = Record([("strobe", 1), ("tag", tags), ("node", nodes)] + details)
        self.acked           = acked = [Signal(16, name=f"acked{n}") for n in range(flows)]
        self.changed         = changed = Signal(flows)
        self.refusal_waiting = Signal()
        self.job_done_in     = job   = stream.Endpoint(job_done_layout())
        self.job_done        = stream.Endpoint(job_done_layout())
        self.ask             = Signal()
        self.asked           = Signal(log2_int(flows))
        self.asking          = asking = Signal()
        self.shown           = shown = Record([("index", len(rings.found.index)), ("entries", 8), ("entry_psn", 16),
            ("tag", 8), ("ended", 1)] + details)
        self.move            = move  = Record(rings.move.layout)
        self.give            = give  = Record([("strobe", 1), ("flow", log2_int(flows))])
        self.entry           = entry = stream.Endpoint(entry_layout())
        self.free            = free  = Record(slot_free_layout())

        # # #

        # What is remembered of a put: its node for the end of its job, the rest for its completion.
        found      = rings.found
        homes      = Memory(nodes, 2**tags)
        memory     = Memory(len(Cat(enter.cookie, enter.length, enter.solicit)), 2**tags)
        write_home = homes.get_port(write_capable=True)
        home       = homes.get_port(mode=READ_FIRST)
        write      = memory.get_port(write_capable=True)
        read       = memory.get_port(mode=READ_FIRST)
        detail     = Record(details)
        self.specials += homes, write_home, home, memory, write, read
        self.comb += [
            write_home.we.eq(enter.strobe),
            write_home.adr.eq(enter.tag),
            write_home.dat_w.eq(enter.node),
            home.adr.eq(job.tag),
            write.we.eq(enter.strobe),
            write.adr.eq(enter.tag),
            write.dat_w.eq(Cat(enter.cookie, enter.length, enter.solicit)),
            read.adr.eq(found.tag),
            Cat(detail.cookie, detail.length, detail.solicit).eq(read.dat_r),
        ]

        # Choice. One ACKED moves at a time.
        look     = Record([("valid", 1), ("kind", 2), ("flow", len(self.asked))])  # its places are looked up
        reading  = Record(look.layout)                                             # its put is read, and compared
        judged   = Record(look.layout)
        stages   = [look, reading, judged]
        under    = lambda kind: Cat(*[stage.valid & (stage.kind == kind) for stage in stages]) != 0
        again    = Record([("valid", 1), ("flow", len(self.asked))])
        turn     = Signal(len(self.asked))
        prepared = Signal()  # `home` and `before` are those of the job
        theirs   = Signal()  # the job's end is the program's
        moved    = Signal.like(turn)
        self.comb += moved.eq(Cat(*[reduce(or_, [changed[n] for n in range(flows) if n >> bit & 1])
            for bit in range(len(moved))]))
        self.sync += [
            look.valid.eq(~still),
            look.kind.eq(OLDEST),
            If(changed != 0,
                look.flow.eq(moved)
            ).Elif(asking & ~under(SHOW),
                look.kind.eq(SHOW),
                look.flow.eq(self.asked)
            ).Elif(prepared & ~theirs & ~under(JOB),
                look.kind.eq(JOB),
                look.flow.eq(Cat(home.dat_r, Constant(LANE.BULK, log2_int(C.LANES))))
            ).Elif(again.valid,
                again.valid.eq(0),
                look.flow.eq(again.flow)
            ).Else(
                turn.eq(turn + 1),
                look.flow.eq(turn)
            )
        ]

        # Lookup of places, and of ACKED, by flow.
        is_armed = Signal()
        reached  = Signal(16)
        self.comb += [
            rings.look.flow.eq(look.flow),
            rings.look.job.eq(look.kind == JOB),
        ]
        self.sync += [
            reading.eq(look),
            is_armed.eq((armed >> look.flow)[0]),
            reached.eq(Array(acked)[look.flow]),
        ]

        # Comparison, by distance.
        express  = Signal()
        distance = Signal(16)
        before   = Signal(16)  # the job's last PSN, if it had one
        index    = Signal(len(found.index))
        place    = Record([("entries", len(found.entries)), ("ended", 1), ("tag", tags), ("last", 16)])
        able     = Signal()    # there is a put, and its job has ended
        passed   = Signal()    # it is acknowledged
        done     = Signal()
        mine     = Signal()    # the job is that of the put
        good     = Signal()    # it ended well
        self.comb += [
            express.eq(reading.flow[nodes:] == LANE.EXPRESS),
            distance.eq(reached - found.last),
            done.eq(able & passed),
        ]
        self.sync += [
            judged.eq(reading),
            index.eq(found.index),
            place.entries.eq(found.entries),
            place.ended.eq(found.ended | express),
            place.tag.eq(found.tag),
            place.last.eq(found.last),
            able.eq(found.there & is_armed & (found.ended | express)),
            passed.eq(~distance[15]),
            mine.eq(found.there & is_armed & (found.tag == job.tag)),
            good.eq((found.last == before) & (job.status == STATUS.OK)),
        ]

        # Judgement.
        end   = Signal()  # of a put
        close = Signal()  # of its job
        here  = Signal()
        self.comb += [
            here.eq(judged.valid & ~still),
            end.eq(here & (judged.kind == OLDEST) & done & ~self.refusal_waiting & (~entry.valid | entry.ready)),
            close.eq(here & (judged.kind == JOB) & mine & good),
            give.strobe.eq(here & (judged.kind == JOB) & mine & ~good),
            give.flow.eq(judged.flow),
            move.head.eq(end),
            move.mark.eq(close),
            move.flow.eq(judged.flow),
            move.index.eq(index),
        ]
        self.sync += [
            # Those that saw the flow as it was.
            If(still | ((end | give.strobe) & (look.flow == judged.flow)), reading.valid.eq(0)),
            If(still | ((end | give.strobe) & (reading.flow == judged.flow)), judged.valid.eq(0)),
            If(here & (judged.kind == OLDEST) & done,
                again.valid.eq(1),
                again.flow.eq(judged.flow),
            ),
        ]

        # Completion.
        self.comb += [
            free.strobe.eq(entry.valid & entry.ready),
            entry.last.eq(1),
            entry.kind.eq(ENTRY.COMPLETION),
            entry.status.eq(STATUS.OK),
            entry.queue.eq(free.tag[log2_int(C.SLOTS):]),
        ]
        self.sync += [
            If(entry.ready, entry.valid.eq(0)),
            If(end,
                entry.valid.eq(1),
                entry.cookie.eq(detail.cookie),
                entry.length.eq(detail.length),
                entry.interrupt.eq(detail.solicit),
                entry.node.eq(judged.flow[:nodes]),
                free.tag.eq(place.tag),
            )
        ]

        # Jobs. The put under the mark stays what it is while the end of a job waits for the program.
        self.comb += [
            job.connect(self.job_done, omit={"valid", "ready"}),
            self.job_done.valid.eq(theirs),
            job.ready.eq(close | (theirs & self.job_done.ready)),
        ]
        self.sync += [
            before.eq(job.psn - 1),
            prepared.eq(job.valid & ~job.ready),
            If(here & (judged.kind == JOB) & ~close, theirs.eq(1)),
            If(theirs & self.job_done.ready, theirs.eq(0)),
        ]

        # Show.
        self.sync += [
            If(here & (judged.kind == SHOW),
                asking.eq(0),
                shown.index.eq(index),
                shown.entries.eq(place.entries),
                shown.entry_psn.eq(place.last + 1),
                shown.tag.eq(place.tag),
                shown.ended.eq(place.ended),
                *[getattr(shown, name).eq(getattr(detail, name)) for name, _ in details],
            ),
            If(self.ask, asking.eq(1)),
        ]
