"""The fast path's flows: which puts it takes, their PSNs, and when a flow goes back to the program.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.deposit.expected import TAG
from dibber.fastpath.asks import Asks
from dibber.fastpath.completer import Completer
from dibber.fastpath.rings import PutRings
from dibber.interface.description import C, FAST_KIND, LANE, MESSAGE
from dibber.layouts import claimed_layout, express_layout, fast_put_layout, flow_event_layout, job_layout

# Contexts -----------------------------------------------------------------------------------------

class Contexts(LiteXModule):
    """Takes puts on armed flows, gives them their PSNs, and completes them.

    A put is taken in one cycle: it gets its order, its place in the ring of its flow, and the next
    PSN. It ends in one cycle, too: it leaves the ring. No put is taken or ended in a cycle in which
    the program arms, claims or pops. So after a claim the ring has exactly the puts that were taken
    and have not ended, and the program pops them.

    A put is missed if its flow is not armed, or if its endpoint is not `fast` any more. If there is
    no room in the ring or at the engine, the put waits: it is neither taken nor missed. Asks,
    answers and replies (`kind`) are treated in the same way, but answers and replies do not depend
    on `fast`, and their end shows at `ended`.

    The program claims a flow before it resets or rewinds it, and before it takes a refusal. It arms
    a flow that it has claimed when it has popped all puts and all packets of it are acknowledged.
    After `claim` and each `pop` it waits until `claimed` is valid.

    Parameters
    ----------
    endpoints : of the card; puts are of these and of the INBOX

    Attributes
    ----------
    put     : Endpoint(fast_put_layout), in     at most FAST_LENGTH bytes, on lane BULK at least 1
    coming  : Signal(), in                      `put` is stable and may be offered soon: look it up
    taken, missed : Signal, out                 in the cycle of `put.ready`; neither: offer it again
    full    : Signal, out                       an ask would have to wait; 2 cycles after node and
              lane of `put`
    answer  : Endpoint(answer_layout), in       see Completer
    mine    : Signal, out
    forget  : Record, out                       in a cycle with `strobe`: the ask of command `tag`
              ended
    fast    : Signal(endpoints), in
    express : Endpoint(express_layout), out     `ready`: there is a place for an order, even if none
              is given
    job     : Endpoint(job_layout), out         as `express`
    job_done_in : Endpoint(job_end_layout), in      ends of all jobs
    job_done    : Endpoint(job_done_layout), out    ends of the program's jobs
    acked   : Record(acked_layout()), `flow` out, `psn` in
    judging : Record(judging_layout()), in      in a cycle with `strobe`: what `acked` says of
              `flow` may move at its end
    changed : Record(flow_event_layout), in     ACKED of this flow moved
    changed_out : Record(flow_event_layout), out  ACKED of a flow moved that is not armed
    moved   : list of 2 Record(flow_event_layout), out   progress on an armed flow: of lane EXPRESS,
              `moved` of Completer; of lane BULK, ACKED moved
    refusal_waiting : Signal(), in              high from the cycle in which `acked` covers a
                      refused PSN until the program has taken the refusal
    arm     : Record, in     in a cycle with `strobe`: puts are taken on `flow` from now on, the
              next one at `psn`
    claim   : Record, in     in a cycle with `strobe`: no put is taken or ended on `flow` any more
    claimed : Record, out    the flow claimed last: its next PSN, how many puts are under way, and
              the oldest of them; behind these the asks that wait. Valid 6 cycles after `claim` or
              `pop`
    pop     : Signal, in     the program takes the put that `claimed` shows
    active  : Signal(FLOWS), out    armed flows with puts under way; falls some cycles after the
              last put has ended
    given   : Record(flow_event_layout), out   the flow goes back to the program, because a job
              ended otherwise than expected
    busy    : Signal(endpoints), out    endpoints with commands that were taken, and not yet
              completed or popped
    entry   : Endpoint(entry_layout), out    completions
    free    : Record(slot_free_layout), out  in the cycle in which the entry is taken
    ended   : Endpoint(ended_layout), out    an answer or a reply left its ring
    counters : FAST_COMMANDS, FAST_COMPLETIONS, FAST_ANSWERS, FAST_REPLIES

    Cycles: 2 from `put` or `coming` to its order; then those of Completer.
    """
    def __init__(self, endpoints=C.ENDPOINTS):
        flows = C.LANES*C.NODES
        nodes = log2_int(C.NODES)
        slots = log2_int(C.SLOTS)
        flow  = ("flow", log2_int(flows))
        self.rings     = rings     = PutRings()
        self.asks      = asks      = Asks()
        self.completer = completer = Completer(rings, asks)
        self.put         = put     = stream.Endpoint(fast_put_layout())
        self.taken       = taken   = Signal()
        self.missed      = missed  = Signal()
        self.full        = Signal()
        self.coming      = Signal()
        self.forget      = forget  = Record([("strobe", 1), ("tag", len(asks.take.tag))])
        self.fast        = fast    = Signal(endpoints)
        self.express     = express = stream.Endpoint(express_layout())
        self.job         = job     = stream.Endpoint(job_layout())
        self.arm         = arm     = Record([("strobe", 1), flow, ("epoch", 4), ("psn", 16), ("incarnation", 8)])
        self.claim       = claim   = Record([("strobe", 1), flow])
        self.claimed     = claimed = Record(claimed_layout())
        self.pop         = pop     = Signal()
        self.judging     = completer.judging
        self.changed     = changed = Record(flow_event_layout())
        self.changed_out = Record(flow_event_layout())
        self.moved       = [completer.moved, Record(flow_event_layout())]
        self.active      = Signal(flows)
        self.given       = given   = Record(flow_event_layout())
        self.busy        = busy    = Signal(endpoints)
        self.counters    = {name: Signal() for name in ("FAST_COMMANDS", "FAST_COMPLETIONS", "FAST_ANSWERS", "FAST_REPLIES")}
        self.job_done_in     = completer.job_done_in
        self.job_done        = completer.job_done
        self.acked           = completer.acked
        self.refusal_waiting = completer.refusal_waiting
        self.entry           = completer.entry
        self.free            = completer.free
        self.ended           = completer.ended
        self.answer          = completer.answer
        self.mine            = completer.mine

        # # #

        # Armed Flows ------------------------------------------------------------------------------

        armed = Signal(flows)
        ours  = Signal()   # the flow whose ACKED moved is armed
        still = Signal()   # the program changes a flow in this cycle, so no put is taken or ended
        give  = completer.give
        self.comb += [
            still.eq(arm.strobe | claim.strobe | pop),
            completer.still.eq(still),
            completer.armed.eq(armed),
            ours.eq((armed >> changed.flow)[0]),
            self.changed_out.flow.eq(changed.flow),
            self.changed_out.strobe.eq(changed.strobe & ~ours),
            # A flow with asks needs answers: an acknowledgement alone is no progress.
            self.moved[1].flow.eq(changed.flow),
            self.moved[1].strobe.eq(changed.strobe & ours & (changed.flow[nodes:] != LANE.EXPRESS)),
            self.active.eq(armed & rings.filled),
        ]
        self.sync += [
            given.eq(give),
            armed.eq((armed | (arm.strobe << arm.flow)) & ~(claim.strobe << claim.flow) & ~(give.strobe << give.flow)),
        ]

        # Places -----------------------------------------------------------------------------------

        # Next PSN, and the other numbers of a flow that an order carries.
        asked = completer.asked
        where = Signal(flow[1])  # the flow of the put
        last  = Signal(16)       # its last PSN
        nexts  = Memory(16, flows)
        lives  = Memory(12, flows)  # incarnation, epoch
        following, next_psn, next_claimed = (nexts.get_port(write_capable=True), nexts.get_port(async_read=True),
            nexts.get_port(async_read=True))
        begin, life = lives.get_port(write_capable=True), lives.get_port(async_read=True)
        self.specials += nexts, lives, following, next_psn, next_claimed, begin, life
        self.comb += [
            where.eq(Cat(put.node[:nodes], put.lane)),
            next_psn.adr.eq(where),
            next_claimed.adr.eq(asked),
            life.adr.eq(where),
            begin.we.eq(arm.strobe),
            begin.adr.eq(arm.flow),
            begin.dat_w.eq(Cat(arm.incarnation, arm.epoch)),
            following.we.eq(taken | arm.strobe),
            If(arm.strobe,
                following.adr.eq(arm.flow),
                following.dat_w.eq(arm.psn),
            ).Else(
                following.adr.eq(where),
                following.dat_w.eq(last + 1),
            ),
            rings.clear.strobe.eq(arm.strobe),
            rings.clear.flow.eq(arm.flow),
            asks.clear.strobe.eq(arm.strobe & (arm.flow[nodes:] == LANE.EXPRESS)),
            asks.clear.node.eq(arm.flow[:nodes]),
        ]

        # Puts -------------------------------------------------------------------------------------

        # Two stages: look up, then add. The result counts if no flow was changed meanwhile. So the
        # properties of the put are registers, too.
        less     = Signal(bits_for(C.FAST_LENGTH))  # bytes of the put, less one
        more     = Signal(16)  # packets of the put, less one
        is_armed = Signal()
        room     = Signal()
        settled  = Signal(2)
        tag      = Signal(len(rings.append.tag))
        accepted = Signal()
        command  = Signal()
        place    = Signal()    # there is a place for its order
        is_ask   = Signal()
        is_reply = Signal()
        quick    = Signal()    # on lane EXPRESS
        owner    = Signal(len(put.endpoint))
        assert C.FAST_LENGTH < C.PACKET_PAYLOAD << 10 and C.FAST_PUTS << 10 < 1 << 15 and C.FAST_PUTS < C.WINDOW
        self.comb += [
            less.eq(put.length - 1),
            tag.eq(Cat(put.slot[:slots], put.endpoint)),
            place.eq(Mux(quick, express.ready, job.ready)),
            self.full.eq(is_armed & ~asks.room),
            accepted.eq(is_armed & (~command | (fast >> owner)[0])),
            put.ready.eq(put.valid & settled[1] & ~still & ~give.strobe),
            taken.eq(put.ready & accepted & room & place & (~is_ask | asks.room)),
            missed.eq(put.ready & ~accepted),
            rings.append.strobe.eq(taken),
            rings.append.flow.eq(where),
            rings.append.tag.eq(tag),
            rings.append.kind.eq(put.kind),
            rings.append.last.eq(last),
            completer.enter.strobe.eq(taken),
            completer.enter.tag.eq(tag),
            *[getattr(completer.enter, name).eq(getattr(put, name)) for name in ["cookie", "length", "solicit", "atomic", "generation"]],
            asks.take.strobe.eq(taken & is_ask),
            asks.take.node.eq(put.node),
            asks.take.tag.eq(tag),
        ]
        self.sync += [
            more.eq(Mux(put.lane == LANE.EXPRESS, 0, less[log2_int(C.PACKET_PAYLOAD):])),
            is_armed.eq((armed >> where)[0]),
            is_ask.eq(put.kind == FAST_KIND.ASK),
            is_reply.eq(put.kind == FAST_KIND.REPLY),
            command.eq((put.kind == FAST_KIND.PUT) | (put.kind == FAST_KIND.ASK)),
            quick.eq(put.lane == LANE.EXPRESS),
            owner.eq(put.endpoint),
            last.eq(next_psn.dat_r + more),
            room.eq(rings.room),
            settled.eq(Cat(1, settled[0])),
            If(~(put.valid | self.coming) | put.ready | still | give.strobe, settled.eq(0)),
        ]

        # Orders.
        for order, lane in [(express, quick), (job, ~quick)]:
            self.comb += [
                order.valid.eq(taken & lane),
                order.last.eq(1),
                order.psn.eq(next_psn.dat_r),
                Cat(order.incarnation, order.epoch).eq(life.dat_r),
                *[getattr(order, name).eq(getattr(put, name)) for name in ["endpoint", "slot", "node", "length"]],
            ]
        self.comb += [
            job.tag.eq(tag),
            job.response.eq(put.kind == FAST_KIND.ANSWER),
            job.message.eq(put.cookie),
            express.message.eq(is_ask | is_reply),
            express.word.eq(Mux(is_reply, put.cookie, Cat(
                Mux(put.atomic, Constant(MESSAGE.ATOMIC, 8), Constant(MESSAGE.GET, 8)),
                put.endpoint, Constant(0, 8 - len(put.endpoint)), tag, *[Constant(0, 1)]*(TAG - len(tag)), put.generation))),
        ]

        # Claims -----------------------------------------------------------------------------------

        shown  = completer.shown
        popped = Signal()
        self.comb += [
            popped.eq(pop & ~completer.asking & ((claimed.entries != 0) | (claimed.asks != 0))),
            completer.ask.eq(claim.strobe | popped),
            claimed.eq(shown),
            rings.move.eq(completer.move),
            asks.change.eq(completer.change),
            forget.strobe.eq(completer.change.strobe & completer.change.end),
            forget.tag.eq(completer.answer.tag),
            If(popped,
                asks.change.strobe.eq(shown.kind == FAST_KIND.ASK),
                asks.change.end.eq(1),
                asks.change.node.eq(asked),
                *[getattr(asks.change, name).eq(getattr(shown, name)) for name in ["place", "left", "over"]],
                rings.move.head.eq(claimed.entries != 0),
                rings.move.mark.eq(~shown.ended),
                rings.move.flow.eq(asked),
                rings.move.index.eq(shown.index),
            )
        ]
        self.sync += [
            If(claim.strobe, asked.eq(claim.flow)),
            claimed.psn.eq(next_claimed.dat_r),
        ]

        # Puts Under Way ---------------------------------------------------------------------------

        free = self.free
        for n in range(endpoints):
            count = Signal(max=C.SLOTS + 1)
            self.comb += busy[n].eq(count != 0)
            self.sync += count.eq(count + (taken & (put.endpoint == n)) - (free.strobe & (free.tag[slots:] == n))
                - (popped & (shown.tag[slots:] == n)))
        self.comb += [
            self.counters["FAST_COMMANDS"].eq(taken & command),
            self.counters["FAST_COMPLETIONS"].eq(free.strobe),
            self.counters["FAST_ANSWERS"].eq(taken & (put.kind == FAST_KIND.ANSWER)),
            self.counters["FAST_REPLIES"].eq(taken & is_reply),
        ]
