"""The end of puts: a put that is acknowledged, and whose job has ended, becomes a completion."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.fastpath.asks import PLACES
from dibber.interface.description import C, ENTRY, FAST_KIND, LANE, STATUS
from dibber.layouts import (acked_layout, answer_layout, ended_layout, entry_layout, flow_event_layout, job_done_layout,
    job_end_layout, judging_layout, slot_free_layout)

# Kinds of Looks -----------------------------------------------------------------------------------

# OLDEST: has the oldest put of a flow ended?     JOB: is this the end of a put's job?
# SHOW: show a claimed flow to the program.        ANSWER: does this answer end an ask?
OLDEST, JOB, SHOW, ANSWER = range(4)

# Completer ----------------------------------------------------------------------------------------

class Completer(LiteXModule):
    """Looks at one ring a cycle, and judges what it finds there.

    A look is a pipeline of four stages: a flow is chosen, its places are looked up, its put is read
    and compared, and the put is judged. A judgement changes the flow in one cycle. A look that saw
    the flow before that change is dropped.

        cycle   0        1             2               3
                choose   look up       read, compare   judge
                         `look`        `reading`       `judged`

    Flows are chosen in this order: a flow whose ACKED moves; the flow that the program claims; the
    flow of a job that ended; the flow of an answer; a flow of which a put has just ended; else all
    flows in turn. So the block keeps no list of puts that might end, and forgets none.

    The end of a job belongs to the fast path if its tag is that of the oldest put, of an armed
    flow, whose job has not ended. This is enough because jobs end in the order in which they were
    given, and one command uses a slot at a time. If the job ended otherwise than expected, the flow
    is given back to the program, and so is that end.

    Answers and replies lie in the rings as puts do. Their end shows at `ended`, not at `entry`.

    An ask is a get or an atomic of this card. It leaves its ring when it is acknowledged. Its
    answer ends it if the flow is armed, the ask waits, and generation and kind match. These are
    compared at one look and used at the next, because a memory's output is late in its cycle.

    Parameters
    ----------
    rings : PutRings; its `look` and `more` are driven from here
    asks  : Asks; its `look` is driven from here

    Attributes
    ----------
    still   : Signal(), in         the program changes a flow in this cycle: no look is judged, and
              all looks begin again
    armed   : Signal(FLOWS), in
    enter   : Record, in           details of a put that was taken, kept by its tag
    acked   : Record(acked_layout()), `flow` out, `psn` in
    judging : Record(judging_layout()), in    in a cycle with `strobe`: what `acked` says of `flow`
              may move at its end
    refusal_waiting : Signal(), in      no put ends
    job_done_in : Endpoint(job_end_layout), in
    job_done    : Endpoint(job_done_layout), out   ends of the program's jobs
    ask     : Signal(), in         the program wants to see the ring of flow `asked`, which is not
              armed
    asked   : Signal, in           valid from the cycle after `ask`
    asking  : Signal(), out        that flow was not shown yet
    shown   : Record, out          the ring and its oldest put; how many `asks` wait, and one of
              them if the ring is empty. `place`, `left` and `over` of an ask are for Asks
    move    : Record, out          to the rings
    change  : Record, out          to the asks
    moved   : Record(flow_event_layout), out   a put of this EXPRESS flow ended; while asks wait,
              only the end of an ask counts
    answer  : Endpoint(answer_layout), in
    mine    : Signal(), out        in the cycle of `answer.ready`: the answer ended an ask
    give    : Record, out          in a cycle with `strobe`: `flow` is given back to the program
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

        # Details ----------------------------------------------------------------------------------

        # Kept from a put's order to its completion, by tag.
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

        # Choose -----------------------------------------------------------------------------------

        # One ACKED moves at a time, and has moved when it is looked up.
        look      = Record([("valid", 1), ("kind", 2), ("flow", len(self.asked))])
        reading   = Record(look.layout)
        judged    = Record(look.layout)
        stages    = [look, reading, judged]
        under_way = lambda kind: Cat(*[stage.valid & (stage.kind == kind) for stage in stages]) != 0
        again     = Record([("valid", 1), ("flow", len(self.asked))])  # a put of this flow has ended
        turn      = Signal(len(self.asked))
        prepared  = Signal()  # `job_last_psn` is that of the job
        theirs    = Signal()  # the job's end is the program's
        self.sync += [
            look.valid.eq(~still),
            look.kind.eq(OLDEST),
            If(judging.strobe,
                look.flow.eq(judging.flow)
            ).Elif(asking & ~under_way(SHOW),
                look.kind.eq(SHOW),
                look.flow.eq(self.asked)
            ).Elif(prepared & ~theirs & ~under_way(JOB),
                look.kind.eq(JOB),
                look.flow.eq(Cat(job.node[:nodes], Constant(LANE.BULK, log2_int(C.LANES))))
            ).Elif(answer.valid & ~under_way(ANSWER),
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

        # Look Up ----------------------------------------------------------------------------------

        # Places of the ring, and ACKED, by flow.
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

        # Compare ----------------------------------------------------------------------------------

        # PSNs are compared by their distance, modulo 2**16.
        express         = Signal()
        distance        = Signal(16)
        job_last_psn    = Signal(16)  # the job's last PSN, if it had one
        index           = Signal(len(found.index))
        place           = Record([("entries", len(found.entries)), ("ended", 1), ("tag", tags), ("kind", 2), ("last", 16)])
        job_has_ended   = Signal()    # there is a put, and its job has ended
        is_acknowledged = Signal()
        has_ended       = Signal()    # both
        job_matches     = Signal()    # the job is that of the put
        job_succeeded   = Signal()    # it sent the put's last PSN, with status OK
        hit             = Signal(PLACES)  # the places of the wanted ask
        waits           = Signal(PLACES)  # the places of asks that wait
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
            has_ended.eq(job_has_ended & is_acknowledged),
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
            job_has_ended.eq(found.there & is_armed & (found.ended | express)),
            is_acknowledged.eq(~distance[15]),
            job_matches.eq(found.there & is_armed & (found.tag == job.tag)),
            job_succeeded.eq((found.last == job_last_psn) & (job.status == STATUS.OK)),
        ]

        # Judge ------------------------------------------------------------------------------------

        judges      = Signal()  # a look is judged in this cycle
        oldest_ends = Signal()  # the oldest put or ask of the flow has ended
        end         = Signal()  # a put ends
        leave       = Signal()  # an ask leaves its ring, because its message is acknowledged
        ends        = Signal()  # an ask ends by its answer
        agreed      = Signal()  # the answer matches the ask that was looked at
        looked      = Signal()  # `agreed` is valid
        entered     = Signal()
        changes     = Signal()  # this judgement changes the flow
        output_free = Signal()  # the former completion, or `ended`, is taken
        close       = Signal()  # a put's job ends
        self.comb += [
            judges.eq(judged.valid & ~still),
            output_free.eq((~entry.valid | entry.ready) & (~ended.valid | ended.ready)),
            oldest_ends.eq(judges & (judged.kind == OLDEST) & has_ended & ~self.refusal_waiting),
            end.eq(oldest_ends & (place.kind != FAST_KIND.ASK) & output_free),
            leave.eq(oldest_ends & (place.kind == FAST_KIND.ASK)),
            self.mine.eq(state.ours & agreed),
            answer.ready.eq(judges & (judged.kind == ANSWER) & looked & (~self.mine | output_free)),
            ends.eq(answer.ready & self.mine),
            change.strobe.eq(leave | ends),
            change.end.eq(ends),
            change.node.eq(judged.flow[:nodes]),
            *[getattr(change, name).eq(getattr(state, name)) for name in ["place", "left", "over"]],
            moved.strobe.eq(ends | ((end | leave) & (judged.flow[nodes:] == LANE.EXPRESS) & (state.asks == 0))),
            moved.flow.eq(Cat(judged.flow[:nodes], Constant(LANE.EXPRESS, log2_int(C.LANES)))),
            close.eq(judges & (judged.kind == JOB) & job_matches & job_succeeded),
            give.strobe.eq(judges & (judged.kind == JOB) & job_matches & ~job_succeeded),
            give.flow.eq(judged.flow),
            move.head.eq(end | leave),
            move.mark.eq(close),
            move.flow.eq(judged.flow),
            move.index.eq(index),
            changes.eq(end | leave | ends | give.strobe),
        ]
        self.sync += [
            # Drop looks that saw the flow before it changed.
            If(still | (changes & (look.flow == judged.flow)), reading.valid.eq(0)),
            If(still | (changes & (reading.flow == judged.flow)), judged.valid.eq(0)),
            If(judges & (judged.kind == ANSWER),
                agreed.eq((detail.generation == answer.generation) & (detail.atomic == answer.atomic)),
                looked.eq(1),
            ),
            # A put that is taken meanwhile may use that slot.
            entered.eq(enter.strobe),
            If(still | answer.ready | enter.strobe | entered, looked.eq(0)),
            If(judges & (judged.kind == OLDEST) & has_ended,
                again.valid.eq(1),
                again.flow.eq(judged.flow),
            ),
        ]

        # Complete ---------------------------------------------------------------------------------

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

        # End Jobs ---------------------------------------------------------------------------------

        # The put under the mark does not change while the end of a job waits for the program.
        self.comb += [
            job.connect(self.job_done, omit={"valid", "ready", "node"}),
            self.job_done.valid.eq(theirs),
            job.ready.eq(close | (theirs & self.job_done.ready)),
        ]
        self.sync += [
            job_last_psn.eq(job.psn - 1),
            prepared.eq(job.valid & ~job.ready),
            If(judges & (judged.kind == JOB) & ~close, theirs.eq(1)),
            If(theirs & self.job_done.ready, theirs.eq(0)),
        ]

        # Show -------------------------------------------------------------------------------------

        self.sync += [
            If(judges & (judged.kind == SHOW),
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
