"""The end of puts: what is acknowledged, and whose job has ended, becomes a completion; or what its
kind says.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.fastpath.asks import PLACES
from dibber.interface.description import C, ENTRY, FAST_KIND, LANE, STATUS
from dibber.layouts import (acked_layout, answer_layout, ended_layout, entry_layout, flow_event_layout, job_done_layout,
    job_end_layout, judging_layout, slot_free_layout)

# Kinds of Looks -----------------------------------------------------------------------------------

# has the oldest put ended; is that its job's end; what is there for the program; whose is it
OLDEST, JOB, SHOW, ANSWER = range(4)

# Completer ----------------------------------------------------------------------------------------

class Completer(LiteXModule):
    """Look at rings, one a cycle, and judge what was found there.

    A look takes four cycles: whose ring is chosen, its places are looked up, its put is read,
    compared, and judged. What a judgement changes is changed in that one cycle, and no look that
    saw the flow as it was before is judged after that. First comes a flow whose ACKED moves, then
    what the program asks for, then the end of a job, then an answer, then a flow of which a put has
    just ended, else all of them in turn: so nothing has to be remembered of what might end, and
    nothing is forgotten.

    A job's end is the fast path's if its tag is that of the oldest put of an armed flow whose job
    has not ended: jobs end in the order in which they were given, and a slot is in use by one
    command only. If that end is not the expected one the flow is given away, and the end with it.

    What is no put is in the rings as puts are, and goes to `ended` in place of `entry`.

    An ask leaves its ring when it is acknowledged, and ends by its answer: the flow is armed, the
    ask waits, and generation and kind are its own. They are compared at one look and believed at
    the next: a memory's output is late.

    Parameters
    ----------
    rings : PutRings; its `look` and `more` are driven from here
    asks  : Asks; its `look` is driven from here

    Attributes
    ----------
    still   : Signal(), in         the program changes something in this cycle: nothing is judged,
              all looks begin anew
    armed   : Signal(FLOWS), in
    enter   : Record, in           what is to be remembered of a put, by its tag
    acked   : Record(acked_layout()), `flow` out, `psn` in
    judging : Record(judging_layout()), in    in a cycle with `strobe`: what `acked` says of `flow`
              may move at its end
    refusal_waiting : Signal(), in      nothing ends
    job_done_in : Endpoint(job_end_layout), in
    job_done    : Endpoint(job_done_layout), out   those that are the program's
    ask     : Signal(), in         the program wants to see the ring of flow `asked`, which is not
              armed
    asked   : Signal, in           from the cycle after `ask` on
    asking  : Signal(), out        it has not been shown yet
    shown   : Record, out          the ring and its oldest put; `asks` that wait, and when the ring
              is empty one of them.
                                   `place`, `left` and `over` of an ask are for Asks
    move    : Record, out          to the rings
    change  : Record, out          to the asks
    moved   : Record(flow_event_layout), out   something has ended on this EXPRESS flow; while asks
              wait, one of them
    answer  : Endpoint(answer_layout), in
    mine    : Signal(), out        in the cycle of `answer.ready`: it ended an ask
    give    : Record, out          in a cycle with `strobe`: `flow` is not armed any more
    entry   : Endpoint(entry_layout), out
    free    : Record(slot_free_layout), out    in the cycle in which the entry is taken
    ended   : Endpoint(ended_layout), out

    Cycles: 4 from `judging` to `entry`, a put of a flow in 5; 4 from `job_done_in` to its end; 6 at
    most from `ask` to `shown`.
    """
    def __init__(self, rings, asks):
        flows   = C.LANES*C.NODES
        nodes   = log2_int(C.NODES)
        tags    = len(rings.found.tag)
        details = [("cookie", 32), ("length", 32), ("solicit", 1), ("atomic", 1), ("generation", 6)]
        self.still           = still = Signal()
        self.armed           = armed = Signal(flows)
        self.enter           = enter = Record([("strobe", 1), ("tag", tags)] + details)
        self.acked           = acked = Record(acked_layout())
        self.judging         = judging = Record(judging_layout())
        self.refusal_waiting = Signal()
        self.job_done_in     = job   = stream.Endpoint(job_end_layout())
        self.job_done        = stream.Endpoint(job_done_layout())
        self.ask             = Signal()
        self.asked           = Signal(log2_int(flows))
        self.asking          = asking = Signal()
        self.shown           = shown = Record([("index", len(rings.found.index)), ("entries", 8), ("entry_psn", 16),
            ("tag", tags), ("kind", 2), ("ended", 1), ("asks", 2), ("place", 1), ("left", PLACES), ("over", PLACES)] + details)
        self.move            = move  = Record(rings.move.layout)
        self.change          = change = Record(asks.change.layout)
        self.moved           = moved = Record(flow_event_layout())
        self.answer          = answer = stream.Endpoint(answer_layout())
        self.mine            = Signal()
        self.give            = give  = Record([("strobe", 1), ("flow", log2_int(flows))])
        self.entry           = entry = stream.Endpoint(entry_layout())
        self.free            = free  = Record(slot_free_layout())
        self.ended           = ended = stream.Endpoint(ended_layout())

        # # #

        # What is remembered of a put, for its completion.
        found  = rings.found
        memory = Memory(sum(bits for _, bits in details), 2**tags)
        write  = memory.get_port(write_capable=True)
        read   = memory.get_port(mode=READ_FIRST)
        detail = Record(details)
        wanted = Signal(tags)
        self.specials += memory, write, read
        self.comb += [
            write.we.eq(enter.strobe),
            write.adr.eq(enter.tag),
            write.dat_w.eq(Cat(*[getattr(enter, name) for name, _ in details])),
            read.adr.eq(wanted),
            detail.raw_bits().eq(read.dat_r),
        ]

        # Choice. One ACKED moves at a time, and has moved when it is looked up.
        # its places are looked up
        look     = Record([("valid", 1), ("kind", 2), ("flow", len(self.asked))])
        # its put is read, and compared
        reading  = Record(look.layout)
        judged   = Record(look.layout)
        stages   = [look, reading, judged]
        under    = lambda kind: Cat(*[stage.valid & (stage.kind == kind) for stage in stages]) != 0
        again    = Record([("valid", 1), ("flow", len(self.asked))])
        turn     = Signal(len(self.asked))
        prepared = Signal()  # `before` is that of the job
        theirs   = Signal()  # the job's end is the program's
        self.sync += [
            look.valid.eq(~still),
            look.kind.eq(OLDEST),
            If(judging.strobe,
                look.flow.eq(judging.flow)
            ).Elif(asking & ~under(SHOW),
                look.kind.eq(SHOW),
                look.flow.eq(self.asked)
            ).Elif(prepared & ~theirs & ~under(JOB),
                look.kind.eq(JOB),
                look.flow.eq(Cat(job.node[:nodes], Constant(LANE.BULK, log2_int(C.LANES))))
            ).Elif(answer.valid & ~under(ANSWER),
                look.kind.eq(ANSWER),
                look.flow.eq(Cat(answer.node[:nodes], Constant(LANE.EXPRESS, log2_int(C.LANES))))
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
            acked.flow.eq(look.flow),
            rings.look.job.eq(look.kind == JOB),
            rings.more.eq(asks.some & (look.flow[nodes:] == LANE.EXPRESS)),
            asks.look.eq(look.flow[:nodes]),
        ]
        self.sync += [
            reading.eq(look),
            is_armed.eq((armed >> look.flow)[0]),
            reached.eq(acked.psn),
        ]

        # Comparison, by distance.
        express  = Signal()
        distance = Signal(16)
        before   = Signal(16)  # the job's last PSN, if it had one
        index    = Signal(len(found.index))
        place    = Record([("entries", len(found.entries)), ("ended", 1), ("tag", tags), ("kind", 2), ("last", 16)])
        able     = Signal()    # there is a put, and its job has ended
        passed   = Signal()    # it is acknowledged
        done     = Signal()
        mine     = Signal()    # the job is that of the put
        good     = Signal()    # it ended well
        hit      = Signal(PLACES)  # the ask looked for
        waits    = Signal(PLACES)  # asks that do
        state    = Record([("ours", 1), ("asks", 2), ("place", 1), ("left", PLACES), ("over", PLACES)])
        self.comb += [
            If(reading.kind == ANSWER,
                wanted.eq(answer.tag)
            ).Elif(found.there,
                wanted.eq(found.tag)
            ).Else(
                wanted.eq(Mux(asks.found.waits[0], asks.found.tag0, asks.found.tag1))
            ),
            hit.eq(asks.found.alive & Cat(wanted == asks.found.tag0, wanted == asks.found.tag1)),
            waits.eq(Mux(express & found.alive, asks.found.waits, 0)),
            express.eq(reading.flow[nodes:] == LANE.EXPRESS),
            distance.eq(reached - found.last),
            done.eq(able & passed),
        ]
        self.sync += [
            judged.eq(reading),
            index.eq(found.index),
            place.entries.eq(found.entries),
            place.ended.eq(found.ended | express),
            place.tag.eq(wanted),
            place.kind.eq(Mux(found.there, found.kind, FAST_KIND.ASK)),
            state.ours.eq(is_armed & ((hit & asks.found.waits) != 0)),
            state.asks.eq(waits[0] + waits[1]),
            state.place.eq(hit[1]),
            state.left.eq(asks.found.left),
            state.over.eq(asks.found.over),
            place.last.eq(found.last),
            able.eq(found.there & is_armed & (found.ended | express)),
            passed.eq(~distance[15]),
            mine.eq(found.there & is_armed & (found.tag == job.tag)),
            good.eq((found.last == before) & (job.status == STATUS.OK)),
        ]

        # Judgement.
        over  = Signal()  # what is oldest has ended
        end   = Signal()  # of a put
        leave = Signal()  # an ask's message is acknowledged
        agreed = Signal() # the answer is that to the ask that was looked at
        looked = Signal()
        entered = Signal()
        ends  = Signal()  # an ask, by its answer
        changes = Signal()
        gone  = Signal()  # the last one is where it belongs
        close = Signal()  # of its job
        here  = Signal()
        self.comb += [
            here.eq(judged.valid & ~still),
            gone.eq((~entry.valid | entry.ready) & (~ended.valid | ended.ready)),
            over.eq(here & (judged.kind == OLDEST) & done & ~self.refusal_waiting),
            end.eq(over & (place.kind != FAST_KIND.ASK) & gone),
            leave.eq(over & (place.kind == FAST_KIND.ASK)),
            self.mine.eq(state.ours & agreed),
            answer.ready.eq(here & (judged.kind == ANSWER) & looked & (~self.mine | gone)),
            ends.eq(answer.ready & self.mine),
            change.strobe.eq(leave | ends),
            change.end.eq(ends),
            change.node.eq(judged.flow[:nodes]),
            *[getattr(change, name).eq(getattr(state, name)) for name in ["place", "left", "over"]],
            moved.strobe.eq(ends | ((end | leave) & (judged.flow[nodes:] == LANE.EXPRESS) & (state.asks == 0))),
            moved.flow.eq(Cat(judged.flow[:nodes], Constant(LANE.EXPRESS, log2_int(C.LANES)))),
            close.eq(here & (judged.kind == JOB) & mine & good),
            give.strobe.eq(here & (judged.kind == JOB) & mine & ~good),
            give.flow.eq(judged.flow),
            move.head.eq(end | leave),
            move.mark.eq(close),
            move.flow.eq(judged.flow),
            move.index.eq(index),
            changes.eq(end | leave | ends | give.strobe),
        ]
        self.sync += [
            # Those that saw the flow as it was.
            If(still | (changes & (look.flow == judged.flow)), reading.valid.eq(0)),
            If(still | (changes & (reading.flow == judged.flow)), judged.valid.eq(0)),
            If(here & (judged.kind == ANSWER),
                agreed.eq((detail.generation == answer.generation) & (detail.atomic == answer.atomic)),
                looked.eq(1),
            ),
            # What is taken meanwhile may be of that slot.
            entered.eq(enter.strobe),
            If(still | answer.ready | enter.strobe | entered, looked.eq(0)),
            If(here & (judged.kind == OLDEST) & done,
                again.valid.eq(1),
                again.flow.eq(judged.flow),
            ),
        ]

        # Completion, or what else there is to be done.
        tag = Signal(tags)
        self.comb += [
            free.strobe.eq(entry.valid & entry.ready),
            free.tag.eq(tag),
            ended.last.eq(1),
            ended.tag.eq(tag),
            ended.node.eq(entry.node),
            entry.last.eq(1),
            entry.kind.eq(ENTRY.COMPLETION),
            entry.status.eq(STATUS.OK),
            entry.queue.eq(tag[log2_int(C.SLOTS):]),
        ]
        self.sync += [
            If(entry.ready, entry.valid.eq(0)),
            If(ended.ready, ended.valid.eq(0)),
            If(end | ends,
                entry.valid.eq(ends | (place.kind == FAST_KIND.PUT)),
                ended.valid.eq(end & (place.kind != FAST_KIND.PUT)),
                ended.kind.eq(place.kind),
                entry.cookie.eq(detail.cookie),
                entry.length.eq(detail.length),
                entry.key.eq(0),
                If((judged.kind == ANSWER) & answer.atomic, Cat(entry.length, entry.key).eq(answer.value)),
                entry.interrupt.eq(detail.solicit),
                entry.node.eq(judged.flow[:nodes]),
                tag.eq(place.tag),
            )
        ]

        # Jobs. The put under the mark stays what it is while the end of a job waits for the
        # program.
        self.comb += [
            job.connect(self.job_done, omit={"valid", "ready", "node"}),
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
                shown.kind.eq(place.kind),
                shown.ended.eq(place.ended),
                *[getattr(shown, name).eq(getattr(state, name)) for name in ["asks", "place", "left", "over"]],
                *[getattr(shown, name).eq(getattr(detail, name)) for name, _ in details],
            ),
            If(self.ask, asking.eq(1)),
        ]
