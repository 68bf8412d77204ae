"""What the source of a flow knows: incarnation, epoch, what was sent, what was acknowledged."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, STATUS
from dibber.layouts import ack_layout, acked_layout, flow_event_layout, judging_layout
from dibber.packet.header import flag

# incarnations from one question to the next: below 127, within which the target tells newer from
# older
DOUBTS   = 64
PATIENCE = 4096  # cycles that a packet waits for an answer
LOOKUPS  = 2     # of what is acknowledged: one for the control program, one for the fast path

# Layouts ------------------------------------------------------------------------------------------

def flow_layout():
    """What must be known of a packet before it may leave, beside its words."""
    return [("node", 16), ("incarnation", 8), ("epoch", 4), ("psn", 16), ("length", 13)]

def flow_reset_layout():
    """Start a flow anew, in a cycle with `strobe`; its epoch is 0. `incarnation` is the control
    program's own number
    of it, by which jobs and packets that wait are told from former ones; the link never sees it."""
    return [("strobe", 1), ("flow", 8), ("incarnation", 8)]

def flow_rewind_layout():
    """Another epoch of a flow, in a cycle with `strobe`. Never in the cycle of a reset."""
    return [("strobe", 1), ("flow", 8), ("epoch", 4)]

def passed_layout():
    """What a gate says of a packet: that it is to be dropped (`stale`), that its target is to be
    asked with `token` while it
    waits (`question`), or the incarnation that it carries on the link (`number`)."""
    return flow_layout() + [("stale", 1), ("question", 1), ("token", 16), ("number", 8)]

def refusal_layout():
    """A packet that its target refused; `reason` as enum status."""
    return [("flow", 8), ("psn", 16), ("reason", 8)]

# Gate ---------------------------------------------------------------------------------------------

class FlowGate(LiteXModule):
    """The flows of one lane, and the gate that their packets must pass.

    A packet waits here for its window. It is to be dropped (`stale`) when its flow has another
    incarnation or epoch by now, when its flow was never started, and when its target has
    acknowledged it already, as happens after a rewind. State is in small memories, so that a lookup
    is a read and not a multiplexer of registers; the bits `known` say which of it is of this life.

    The incarnation that a flow's packets carry is counted here, where no reset reaches: each reset
    of the flow takes the next one. So whatever a control program did, the next one's packets are
    newer than its own. The memory that counts says too whether the flow is sure: that its target
    holds nothing newer, nor the very same. It is not after power-on, and again when the count comes
    to a multiple of DOUBTS, or the target did not hold the flow before. Then the target is asked,
    and a packet waits for the answer.

    Attributes
    ----------
    reset   : Record(flow_reset_layout), in    of this lane; only the low bits of `flow` are looked
              at
    rewind  : Record(flow_rewind_layout), in   likewise
    sink    : Endpoint(flow_layout), in              the packet that wants to leave
    source  : Endpoint(passed_layout), out     valid once it may, is to be dropped, or waits for
              what is to be asked
    node    : Signal, in      whose state is shown
    known, sure, number, sent, acked : Signals, out   that state, in the same cycle
    reached : list of Record, in and out   lookups: `psn` is the last one acknowledged of the flow
              to `node`, in the same cycle; 0xffff
                              of one that was not started
    token   : Signal(16), in  what tells a question that is asked now from all others
    asked   : Record, out     the last question: `open`, not answered yet, `node`, `token`
    vain    : Signal(), out   packets of the flow to `leap.node` were dropped because no answer came
    vains   : Memory, the same for each node
    lost    : Signal(), out   the target does not hold the flow to `node`: its packets are dropped
              until it is reset, which
                              makes it a flow that is not sure
    lose    : Record, in      `strobe`, `node`: the target says so. Not in the cycle of a reset
    move    : Record, in      `strobe`, `node`, `psn`: acknowledged up to there. Not in the cycle of
              a reset
    leap    : Record, in      `strobe`, `node`, `number`: the answer to `asked`, the incarnation
              that packets carry from now
                              on. Likewise

    Cycles: 2 from `sink` to `source`; 3 from `move` or `leap` to the packet that it lets go. None
    passes in the cycle of a reset or rewind; what they make stale is stale from then on.
    """
    def __init__(self):
        bits = log2_int(C.NODES)
        self.reset       = reset  = Record(flow_reset_layout())
        self.rewind      = rewind = Record(flow_rewind_layout())
        self.sink        = sink   = stream.Endpoint(flow_layout())
        self.source      = source = stream.Endpoint(passed_layout())
        self.node        = Signal(bits)
        self.known       = Signal()
        self.sure        = Signal()
        self.number      = Signal(8)
        self.lost        = Signal()
        self.sent        = Signal(16)
        self.acked       = Signal(16)
        self.reached     = [Record([("node", bits), ("psn", 16)]) for _ in range(LOOKUPS)]
        self.move        = move   = Record([("strobe", 1), ("node", bits), ("psn", 16)])
        self.lose        = lose   = Record([("strobe", 1), ("node", bits)])
        self.leap        = leap   = Record([("strobe", 1), ("node", bits), ("number", 8)])
        self.token       = Signal(16)
        self.asked       = asked  = Record([("open", 1), ("node", bits), ("token", 16)])
        self.vain        = Signal()

        # # #

        assert C.WINDOW & (C.WINDOW - 1) == 0
        change = Signal()
        passed = Signal()  # it leaves, and is not dropped
        self.comb += change.eq(reset.strobe | rewind.strobe)

        # State. Each memory has one write port, because a distributed RAM has no more.
        self.started = known = Signal(C.NODES)
        where = Signal(bits)
        self.comb += where.eq(Mux(reset.strobe, reset.flow, sink.node))

        def table(name, width, writes, shown=None, about=self.node):
            """A memory by node, and what it has of the packet's; `shown` is what it has of `about`.
            The first of `writes` (strobe,
            node, value) wins. The lookup serves the reset in its cycle, in which no packet passes.
            """
            memory = Memory(width, C.NODES, name=name)
            write  = memory.get_port(write_capable=True)
            lookup = memory.get_port(async_read=True)
            self.specials += memory, write, lookup
            *sooner, (strobe, node, value) = writes
            self.comb += write.we.eq(strobe), write.adr.eq(node), write.dat_w.eq(value)
            for strobe, node, value in reversed(sooner):
                self.comb += If(strobe, write.we.eq(1), write.adr.eq(node), write.dat_w.eq(value))
            self.comb += lookup.adr.eq(where)
            if shown is not None:
                show = memory.get_port(async_read=True)
                self.specials += show
                self.comb += [show.adr.eq(about), shown.eq(show.dat_r)]
            found = Signal(width)
            self.sync += found.eq(lookup.dat_r)
            return found, lookup.dat_r, memory

        ahead       = Signal()  # no later packet of the flow was sent yet
        fresh       = lambda value: (reset.strobe, reset.flow[:bits], value)
        before      = Signal(9)
        losts       = Signal(C.NODES)
        following   = Signal(8)
        incarnation, *_ = table("incarnations", 8, [fresh(reset.incarnation)])
        number, old, _ = table("numbers", 8 + 1, [
            fresh(Cat(following, before[8] & (following[:log2_int(DOUBTS)] != 0) & ~(losts >> reset.flow[:bits])[0])),
            (leap.strobe, leap.node, Cat(leap.number, 1)),
        ], Cat(self.number, self.sure))
        epoch, *_   = table("epochs", 4, [fresh(0), (rewind.strobe, rewind.flow[:bits], rewind.epoch)])
        sent, *_    = table("sents", 16, [fresh(0xffff), (passed & ahead, sink.node[:bits], sink.psn)], self.sent)
        acked, _, self.ackeds = table("ackeds", 16, [fresh(0xffff), (move.strobe, move.node, move.psn)], self.acked)
        for reached in self.reached:
            port = self.ackeds.get_port(async_read=True)
            self.specials += port
            self.comb += [
                port.adr.eq(reached.node),
                reached.psn.eq(Mux((known >> reached.node)[0], port.dat_r, 0xffff)),
            ]
        self.comb += before.eq(old), following.eq(before + 1)
        # Whether the target was asked in vain. No reset of the module reaches this; nobody asks of
        # a flow that was not started.
        waits       = Signal()             # for the answer
        waited      = Signal(max=PATIENCE)
        hopeless, _, self.vains = table("vains", 1, [
            (rewind.strobe, rewind.flow[:bits], 0),
            fresh(0),
            (leap.strobe, leap.node, 0),
            (waits & (waited == PATIENCE - 1), sink.node[:bits], 1),
        ], self.vain, leap.node)
        begun       = Signal()  # the packet's flow was
        self.comb += [
            self.known.eq((known >> self.node)[0]),
            self.lost.eq((losts >> self.node)[0]),
        ]
        self.sync += [
            begun.eq(((known & ~losts) >> sink.node[:bits])[0] & (sink.node < C.NODES)),
            If(reset.strobe, known.eq(known | (1 << reset.flow[:bits])), losts.eq(losts & ~(1 << reset.flow[:bits]))),
            If(lose.strobe, losts.eq(losts | (1 << lose.node))),
        ]

        # Lookup, then comparison; believed when neither packet nor table has changed meanwhile.
        # PSNs are compared by their distance, less one: it is negative from 0 back, and below
        # WINDOW within it.
        distance = Signal(16)
        beyond   = Signal(16)
        stale    = Signal()
        room     = Signal()
        sure     = Signal()
        settled  = Signal(2)
        self.comb += [
            distance.eq(sink.psn + ~acked),
            beyond.eq(sink.psn + ~sent),
            sink.connect(source, omit={"valid", "ready"}),
            source.stale.eq(stale | (~sure & hopeless)),
            source.question.eq(~source.stale & ~sure),
            source.token.eq(self.token),
            source.number.eq(number[:8]),
            source.valid.eq(sink.valid & settled[1] & Mux(source.question, ~waits, source.stale | room) & ~change),
            sink.ready.eq(source.valid & source.ready & ~source.question),
            passed.eq(sink.ready & ~source.stale),
        ]
        self.sync += [
            stale.eq(~begun | (incarnation != sink.incarnation) | (epoch != sink.epoch) | distance[15]),
            room.eq(distance[log2_int(C.WINDOW):] == 0),
            ahead.eq(~beyond[15]),
            sure.eq(number[8]),
            settled.eq(Cat(1, settled[0])),
            waited.eq(waited + 1),
            If(source.valid & source.ready & source.question,
                waits.eq(1),
                waited.eq(0),
                asked.open.eq(1),
                asked.node.eq(sink.node),
                asked.token.eq(self.token),
            ),
            If(leap.strobe, settled.eq(0), asked.open.eq(0)),
            If(lose.strobe, settled.eq(0)),
            If(~sink.valid | sink.ready | change, settled.eq(0), waits.eq(0)),
        ]

# Flow Table ---------------------------------------------------------------------------------------

class FlowTable(LiteXModule):
    """All flows that start here: a gate for each lane, and what acknowledgements say.

    The lanes' gates know nothing of each other, so that a closed window of one never holds the
    other.

    An answer to the last question of its gate lets the flow leap beyond what the target holds. If
    packets were dropped meanwhile they are missed.

    An acknowledgement counts only if the flow is sure, if it is of the current incarnation and
    within what was sent. Each tells how many refusals there were up to it: as many as were heard
    of, or one more if it is itself a refusal that is new. If any other number is told a refusal was
    lost on the link. That one, and one that finds its FIFO full, would let its transfer end as a
    success; so from then on nothing that is said of the flow is believed, until it is reset.

    A refusal with the reason PEER_RESTARTED says that the target does not hold the flow. It counts
    if it is of the current incarnation and of a packet that was sent and is not acknowledged. From
    then on the flow sends nothing and hears nothing until it is reset. If its FIFO is full it does
    not count, and the next packet brings another one.

    Attributes
    ----------
    reset    : Record(flow_reset_layout), in    the flow's last PSN acknowledged becomes 0xffff
    rewind   : Record(flow_rewind_layout), in
    begins   : Record(flow_reset_layout), out   the reset, in the cycle in which it is done
    sinks    : list of Endpoint(flow_layout), in              by enum lane
    sources  : list of Endpoint(passed_layout), out           by enum lane
    acks     : Endpoint(ack_layout), in        an acknowledgement every 3 cycles, one more for each
               reset
                                               meanwhile; the shortest packet of one takes 9
    acked    : list of Record(acked_layout), in and out   LOOKUPS of them
    judging  : Record, out                     in a cycle with `strobe`: what `acked` says of `flow`
               may move at its end
    changed  : Record(flow_event_layout), out  that has moved
    naked    : Record(flow_event_layout), out  the target misses a packet of the flow, or it answers
               late
    works    : Record(flow_event_layout), out  the target said again what is acknowledged: it is
               still storing what it has
    vain     : Record, in and out              `flow`, and whether its packets were dropped because
               no answer came, in the same cycle
    refusals : Endpoint(refusal_layout), out

    Cycles: those of FlowGate; 1 to what `reset` and `rewind` do; 3 from `acks` to `acked`,
    `changed`, and `naked`.
    """
    def __init__(self):
        flows = C.LANES*C.NODES
        bits  = log2_int(C.NODES)
        self.reset    = Record(flow_reset_layout())
        self.rewind   = rewind = Record(flow_rewind_layout())
        self.begins   = reset  = Record(flow_reset_layout())
        self.acks     = acks   = stream.Endpoint(ack_layout())
        self.acked    = [Record(acked_layout()) for _ in range(LOOKUPS)]
        self.judging  = judging = Record(judging_layout())
        self.changed  = changed = Record(flow_event_layout())
        self.naked    = naked   = Record(flow_event_layout())
        self.works    = works   = Record(flow_event_layout())
        self.vain     = vain    = Record([("flow", log2_int(flows)), ("vain", 1)])
        self.refusals = stream.Endpoint(refusal_layout())

        # # #

        gates = [FlowGate() for _ in range(C.LANES)]
        for lane, gate in enumerate(gates):
            self.add_module(f"gate{lane}", gate)
            # In registers by lane, for packets wait for whether anything happens to their flow.
            self.sync += [
                gate.reset.eq(self.reset),
                gate.rewind.eq(rewind),
                gate.reset.strobe.eq(self.reset.strobe & (self.reset.flow[bits:] == lane)),
                gate.rewind.strobe.eq(rewind.strobe & (rewind.flow[bits:] == lane)),
            ]
        self.sync += reset.eq(self.reset)

        for look, *reached in zip(self.acked, *[gate.reached for gate in gates]):
            self.comb += [
                [gate.node.eq(look.flow[:bits]) for gate in reached],
                look.psn.eq(Array([gate.psn for gate in reached])[look.flow[bits:]]),
            ]

        hopeless = [gate.vains.get_port(async_read=True) for gate in gates]
        self.specials += hopeless
        self.comb += [
            [port.adr.eq(vain.flow[:bits]) for port in hopeless],
            vain.vain.eq(Array([port.dat_r for port in hopeless])[vain.flow[bits:]]),
        ]

        # A question is told from those before it, and from those of former lives, as no life asks
        # its first one in the same cycle: it counts cycles until then.
        token = Signal(16, reset_less=True)
        begun = Signal(reset_less=True)
        asks  = Signal()
        self.comb += [
            asks.eq(Reduce("OR", [gate.source.valid & gate.source.ready & gate.source.question for gate in gates])),
            [gate.token.eq(token) for lane, gate in enumerate(gates)],
        ]
        self.sync += [
            If(~begun | asks, token.eq(token + 1)),
            If(asks, begun.eq(1)),
        ]
        self.sinks   = [gate.sink   for gate in gates]
        self.sources = [gate.source for gate in gates]

        # Acknowledgements: looked up in the first cycle, judged in the second, entered in the
        # third.
        flow     = Signal(max=flows)
        psn      = Signal(16)
        ack      = Signal(16)
        refused  = Signal()
        nak      = Signal()
        reason   = Signal(8)
        heard    = Signal()
        current  = Signal()
        answered = Signal()    # the last question of its gate
        leap     = Signal()
        held     = Signal(8)
        moved    = Signal(16)
        possible = Signal(16)
        count    = Signal(8)
        missed   = Signal(8)   # refusals that were not heard of before
        next_one = Signal()    # it is the next refusal
        new      = Signal()
        lost     = Signal()
        judged   = Signal()
        believed = Signal()
        forward  = Signal()
        enter    = Signal()
        gone     = Signal()    # the target does not hold the flow
        deafen   = Signal()
        lose     = Signal()
        move     = Signal()
        late     = Signal()
        about    = Cat(acks.node[:bits], ~flag(acks.flags, "EXPRESS"))  # enum lane: EXPRESS is 0
        shown    = lambda name: Mux(flag(acks.flags, "EXPRESS"), *[getattr(gate, name) for gate in gates])
        last     = Record([("open", 1), ("node", bits), ("token", 16)])  # question of the lane
        self.queue = queue = stream.SyncFIFO(refusal_layout(), 16)

        # Refusals heard of, by flow, and whether one was lost. WINDOW packets at most can have been
        # refused since.
        assert C.WINDOW < 2**len(count)
        refusals     = Memory(len(count) + 1, flows)
        write_count  = refusals.get_port(write_capable=True)
        lookup_count = refusals.get_port(async_read=True)
        self.specials += refusals, write_count, lookup_count
        self.comb += [
            lookup_count.adr.eq(about),
            write_count.we.eq(move | deafen),
            write_count.adr.eq(flow),
            write_count.dat_w.eq(Cat(count, deafen)),  # what is deaf needs no count
            If(reset.strobe,
                write_count.we.eq(reset.flow < flows),
                write_count.adr.eq(reset.flow),
                write_count.dat_w.eq(0),
            ),
        ]
        self.comb += [
            next_one.eq(refused & (missed == 1) & (moved != 0)),
            acks.ready.eq(~heard & ~judged),
            judging.strobe.eq(judged),
            judging.flow.eq(flow),
            leap.eq(judged & answered & ~reset.strobe),
            [gate.node.eq(acks.node[:bits]) for gate in gates],
            *[getattr(last, name).eq(Mux(flag(acks.flags, "EXPRESS"), *[getattr(gate.asked, name) for gate in gates]))
                for name, *_ in last.layout],
            late.eq(Array([gate.vain for gate in gates])[flow[bits:]]),
            enter.eq(judged & believed & ~reset.strobe),
            lose.eq(enter & gone & forward & queue.sink.ready),
            queue.sink.valid.eq(enter & (new | (gone & forward))),
            queue.sink.flow.eq(flow),
            queue.sink.psn.eq(psn),
            queue.sink.reason.eq(reason),
            deafen.eq(enter & (lost | (new & ~queue.sink.ready))),
            move.eq(enter & forward & ~deafen & ~gone),
            # It is the same still in the cycle after that in which it was judged.
            changed.flow.eq(flow),
            naked.flow.eq(flow),
            works.flow.eq(flow),
            queue.source.connect(self.refusals),
        ]
        for lane, gate in enumerate(gates):
            self.comb += [
                gate.move.strobe.eq(move & (flow[bits:] == lane)),
                gate.move.node.eq(flow[:bits]),
                gate.move.psn.eq(ack),
                gate.lose.strobe.eq(lose & (flow[bits:] == lane)),
                gate.lose.node.eq(flow[:bits]),
                gate.leap.strobe.eq(leap & (flow[bits:] == lane)),
                gate.leap.node.eq(flow[:bits]),
                gate.leap.number.eq(held + 1),
            ]
        self.sync += [
            heard.eq(acks.valid & acks.ready),
            If(acks.ready,
                flow.eq(about),
                psn.eq(acks.psn),
                ack.eq(acks.ack),
                refused.eq(flag(acks.flags, "REFUSED")),
                nak.eq(flag(acks.flags, "NAK")),
                reason.eq(acks.reason),
                gone.eq(flag(acks.flags, "REFUSED") & (acks.reason == STATUS.PEER_RESTARTED)),
                count.eq(acks.refusals),
                missed.eq(acks.refusals - lookup_count.dat_r[:len(count)]),
                held.eq(acks.incarnation),
                current.eq(shown("known") & shown("sure") & ~shown("lost") & (acks.incarnation == shown("number")) & (acks.node < C.NODES)
                    & ~lookup_count.dat_r[len(count)] & ~(reset.strobe & (reset.flow == about))),
                answered.eq(flag(acks.flags, "FIRST") & last.open & (last.node == acks.node) & (last.token == acks.psn)),
                moved.eq(acks.ack - shown("acked")),
                possible.eq(shown("sent") - shown("acked")),
            ),
            If(heard,
                judged.eq(1),
                believed.eq(current & (moved <= possible)),
                forward.eq(moved != 0),
                new.eq(next_one & ~gone),
                lost.eq((missed != 0) & ~next_one & ~gone),
            ),
            # The memories' write port is the reset's in its cycle.
            If(~reset.strobe, judged.eq(heard)),
            If(reset.strobe & (reset.flow == flow), believed.eq(0)),
            naked.strobe.eq((leap & late) | (enter & nak & ~deafen & ~gone)),
            changed.strobe.eq(move),
            # Whether it tells anything else was judged; a duplicate of a packet is answered so,
            # too.
            works.strobe.eq(enter & ~forward & ~nak & ~refused),
        ]
