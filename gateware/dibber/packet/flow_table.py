"""The source's state of each flow: incarnation, epoch, last PSN sent, last PSN acknowledged."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, STATUS
from dibber.layouts import ack_layout, acked_layout, flow_event_layout, judging_layout
from dibber.packet.header import flag

# Incarnations between two questions. It must be below 127, because the target tells newer from
# older incarnations modulo 256.
DOUBTS   = 64
PATIENCE = 4096  # cycles that a packet waits for the answer to a question
# The same from when the question has left a port that keeps whole packets. At its target, it waits
# behind packets of other sources, and the answer waits for its place on the wire.
KEPT_PATIENCE = 16384
# The longest time in the port that is not counted, a power of two. A refused packet waits for two
# of the ring's retry periods if its grant is lost. A target that accepts nothing keeps its packets
# in the port for ever, and the lane must go on to other nodes.
KEPT_LIMIT    = 131072
LOOKUPS  = 2     # ports for the last acknowledged PSN: control program and fast path

# Layouts ------------------------------------------------------------------------------------------

def flow_layout():
    """What the gate must know of a packet, beside its words."""
    return [("node", 16), ("incarnation", 8), ("epoch", 4), ("psn", 16), ("length", 13)]

def flow_reset_layout():
    """Start a flow again, in a cycle with `strobe`; its epoch becomes 0.

    `incarnation` is the control program's own number for the flow. It tells new jobs and packets
    from those of the old incarnation; the link never sees it.
    """
    return [("strobe", 1), ("flow", 8), ("incarnation", 8)]

def flow_rewind_layout():
    """Change the epoch of a flow, in a cycle with `strobe`; never in the cycle of a reset."""
    return [("strobe", 1), ("flow", 8), ("epoch", 4)]

def passed_layout():
    """The gate's verdict on a packet.

    stale    : drop it
    question : ask its target, with `token`, while the packet waits
    number   : otherwise, the incarnation that it carries on the link
    """
    return flow_layout() + [("stale", 1), ("question", 1), ("token", 16), ("number", 8)]

def refusal_layout():
    """A packet that its target refused; `reason` as enum status."""
    return [("flow", 8), ("psn", 16), ("reason", 8)]

# Gate ---------------------------------------------------------------------------------------------

class FlowGate(LiteXModule):
    """The flows of one lane, and the gate that their packets must pass.

    A packet waits here until it is in its flow's window. It is dropped (`stale`) in four cases: its
    flow has another incarnation or epoch now; its flow was never started; its target has already
    acknowledged it, as happens after a rewind; or its target did not answer a question in time.

    The state is in small memories, so that a lookup is a read port and not a multiplexer of
    registers. The bits `known` tell which entries were written since the reset.

    The incarnation on the link is counted here, in a memory that no reset clears: each reset of a
    flow takes the next number. So the packets of a new control program are newer than those of the
    old one, whatever that one did. The same memory tells whether a flow is *sure*: its target holds
    no incarnation that is newer or equal. A flow is not sure after power-on, when its count reaches
    a multiple of DOUBTS, and when the target did not hold the flow before. Then the target is asked
    (a question), and the packet waits for the answer.

    Parameters
    ----------
    keeps : the port keeps whole packets, as in Departed

    Attributes
    ----------
    kept    : Signal(), in    the port keeps a packet of the lane. Only with `keeps`: the time of an
              answer begins when this is 0, or KEPT_LIMIT cycles after the question
    reset   : Record(flow_reset_layout), in    of this lane; only the low bits of `flow` are used
    rewind  : Record(flow_rewind_layout), in   as `reset`
    sink    : Endpoint(flow_layout), in        the packet that wants to leave
    source  : Endpoint(passed_layout), out     valid when it may leave, must be dropped, or a
              question must be sent
    node    : Signal, in      the node whose state is shown
    known, sure, number, sent, acked : Signals, out   this state, in the same cycle
    reached : list of Record, in and out   lookups: `psn` is the last acknowledged PSN of the flow
              to `node`, in the same cycle; 0xffff if the flow was not started
    token   : Signal(16), in  identifies a question that is sent now
    asked   : Record, out     the last question: `open` (not answered yet), `node`, `token`
    vain    : Signal(), out   packets of the flow to `leap.node` were dropped because no answer came
    vains   : Memory, the same for each node
    asking  : Signal(), out   the packet at the sink waits for the answer to a question
    lost    : Signal(), out   the target does not hold the flow to `node`. Its packets are dropped
              until its reset, after which it is not sure
    lose    : Record, in      `strobe`, `node`: the target does not hold this flow. Not in the cycle
              of a reset
    move    : Record, in      `strobe`, `node`, `psn`: acknowledged up to `psn`. Not in the cycle of
              a reset
    leap    : Record, in      `strobe`, `node`, `number`: the answer to `asked`; packets carry the
              incarnation `number` from now on. Not in the cycle of a reset

    Cycles: 2 from `sink` to `source`; 3 from `move` or `leap` to a packet that it releases. No
    packet passes in the cycle of a reset or rewind; the packets that these make stale are stale
    from then on.
    """
    def __init__(self, keeps=False):
        bits = log2_int(C.NODES)
        patience         = KEPT_PATIENCE if keeps else PATIENCE
        self.kept        = Signal()
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
        state_changes = Signal()
        packet_leaves = Signal()  # it passes, and is not dropped
        self.comb += state_changes.eq(reset.strobe | rewind.strobe)

        # State. Each memory has one write port, because a distributed RAM has only one.
        self.started = known = Signal(C.NODES)
        lookup_node = Signal(bits)
        self.comb += lookup_node.eq(Mux(reset.strobe, reset.flow, sink.node))

        def table(name, width, writes, shown=None, about=self.node):
            """A memory by node; returns (value for the packet, registered; value in this cycle;
            memory).

            `shown`, if given, is driven with the value of node `about`. The first of `writes`
            (strobe, node, value) has priority. In the cycle of a reset the lookup serves the reset:
            no packet passes then.
            """
            memory = Memory(width, C.NODES, name=name)
            write  = memory.get_port(write_capable=True)
            lookup = memory.get_port(async_read=True)
            self.specials += memory, write, lookup
            *sooner, (strobe, node, value) = writes
            self.comb += write.we.eq(strobe), write.adr.eq(node), write.dat_w.eq(value)
            for strobe, node, value in reversed(sooner):
                self.comb += If(strobe, write.we.eq(1), write.adr.eq(node), write.dat_w.eq(value))
            self.comb += lookup.adr.eq(lookup_node)
            if shown is not None:
                show = memory.get_port(async_read=True)
                self.specials += show
                self.comb += [show.adr.eq(about), shown.eq(show.dat_r)]
            found = Signal(width)
            self.sync += found.eq(lookup.dat_r)
            return found, lookup.dat_r, memory

        is_newest   = Signal()  # no later packet of the flow was sent yet
        fresh       = lambda value: (reset.strobe, reset.flow[:bits], value)
        old_number  = Signal(9)
        lost_flows  = Signal(C.NODES)
        next_number = Signal(8)
        incarnation, *_ = table("incarnations", 8, [fresh(reset.incarnation)])
        number, old, _ = table("numbers", 8 + 1, [
            fresh(
                Cat(
                    next_number,
                    old_number[8] & (next_number[:log2_int(DOUBTS)] != 0) &
                    ~(lost_flows >> reset.flow[:bits])[0])),
            (leap.strobe, leap.node, Cat(leap.number, 1)),
        ], Cat(self.number, self.sure))
        epoch, *_ = table(
            "epochs", 4, [fresh(0), (rewind.strobe, rewind.flow[:bits], rewind.epoch)])
        sent, *_ = table(
            "sents", 16,
            [fresh(0xffff), (packet_leaves & is_newest, sink.node[:bits], sink.psn)], self.sent)
        acked, _, self.ackeds = table(
            "ackeds", 16, [fresh(0xffff), (move.strobe, move.node, move.psn)], self.acked)
        for lookup_port in self.reached:
            port = self.ackeds.get_port(async_read=True)
            self.specials += port
            self.comb += [
                port.adr.eq(lookup_port.node),
                lookup_port.psn.eq(Mux((known >> lookup_port.node)[0], port.dat_r, 0xffff)),
            ]
        self.comb += old_number.eq(old), next_number.eq(old_number + 1)
        # Whether a question stayed without answer. No reset clears this memory. It is only read for
        # flows that were started.
        self.asking    = waiting_answer = Signal()
        wait_cycles    = Signal(max=patience)
        no_answer, _, self.vains = table("vains", 1, [
            (rewind.strobe, rewind.flow[:bits], 0),
            fresh(0),
            (leap.strobe, leap.node, 0),
            (waiting_answer & (wait_cycles == patience - 1), sink.node[:bits], 1),
        ], self.vain, leap.node)
        is_started  = Signal()  # the packet's flow was started and is not lost
        self.comb += [
            self.known.eq((known >> self.node)[0]),
            self.lost.eq((lost_flows >> self.node)[0]),
        ]
        self.sync += [
            is_started.eq(((known & ~lost_flows) >> sink.node[:bits])[0] & (sink.node < C.NODES)),
            If(reset.strobe,
                known.eq(known | (1 << reset.flow[:bits])),
                lost_flows.eq(lost_flows & ~(1 << reset.flow[:bits]))
            ),
            If(lose.strobe, lost_flows.eq(lost_flows | (1 << lose.node))),
        ]

        # Lookup, then comparison; the result is valid when neither packet nor table has changed
        # meanwhile. PSNs are compared by their distance minus 1: it is negative for distances of 0
        # and less, and below WINDOW within the window.
        distance    = Signal(16)
        past_sent   = Signal(16)
        stale       = Signal()
        in_window   = Signal()
        sure        = Signal()
        lookup_done = Signal(2)
        self.comb += [
            distance.eq(sink.psn + ~acked),
            past_sent.eq(sink.psn + ~sent),
            sink.connect(source, omit={"valid", "ready"}),
            source.stale.eq(stale | (~sure & no_answer)),
            source.question.eq(~source.stale & ~sure),
            source.token.eq(self.token),
            source.number.eq(number[:8]),
            source.valid.eq(
                sink.valid & lookup_done[1] & Mux(
                    source.question, ~waiting_answer, source.stale | in_window) &
                ~state_changes),
            sink.ready.eq(source.valid & source.ready & ~source.question),
            packet_leaves.eq(sink.ready & ~source.stale),
        ]
        self.sync += [
            stale.eq(
                ~is_started | (
                    incarnation != sink.incarnation) | (epoch != sink.epoch) | distance[15]),
            in_window.eq(distance[log2_int(C.WINDOW):] == 0),
            is_newest.eq(~past_sent[15]),
            sure.eq(number[8]),
            lookup_done.eq(Cat(1, lookup_done[0])),
            wait_cycles.eq(wait_cycles + 1),
            If(source.valid & source.ready & source.question,
                waiting_answer.eq(1),
                wait_cycles.eq(0),
                asked.open.eq(1),
                asked.node.eq(sink.node),
                asked.token.eq(self.token),
            ),
            If(leap.strobe, lookup_done.eq(0), asked.open.eq(0)),
            If(lose.strobe, lookup_done.eq(0)),
            If(~sink.valid | sink.ready | state_changes, lookup_done.eq(0), waiting_answer.eq(0)),
        ]
        # The question is the last packet of the lane in the port, because the lane waits for it.
        if keeps:
            in_port = Signal(log2_int(KEPT_LIMIT) + 1)  # cycles since the question; the limit stays
            self.sync += [
                If(~waiting_answer,
                    in_port.eq(0)
                ).Elif(~in_port[-1],
                    in_port.eq(in_port + 1)
                ),
                If(self.kept & ~in_port[-1], wait_cycles.eq(0)),
            ]

# Flow Table ---------------------------------------------------------------------------------------

class FlowTable(LiteXModule):
    """All flows that start at this card: a gate for each lane, and the evaluation of
    acknowledgements.

    The gates of the lanes are independent, so a closed window of one lane never blocks the other.

    The answer to the last question of a gate raises the flow's incarnation above the one that the
    target holds. If packets were dropped meanwhile, the program is told to send them again
    (`naked`).

    An acknowledgement counts only if the flow is sure, and if it has the current incarnation and a
    PSN that was sent. It also carries the number of refusals up to its PSN. This must be the number
    that came before, or one more if the acknowledgement itself is a new refusal. Any other number
    shows that a refusal was lost on the link. Such a transfer would seem to succeed; so from then
    on all acknowledgements of the flow are ignored until its reset. The same happens if a refusal
    finds its FIFO full.

    A refusal with the reason PEER_RESTARTED says that the target does not hold the flow. It counts
    if it has the current incarnation and the PSN of a packet that was sent and is not acknowledged.
    From then on the flow sends and accepts nothing until its reset. If its FIFO is full it does not
    count, and the next packet causes another one.

    Parameters
    ----------
    keeps : as in FlowGate

    Attributes
    ----------
    kept     : list of Signal(), in            by enum lane, as in FlowGate
    asking   : list of Signal(), out           by enum lane, as in FlowGate
    reset    : Record(flow_reset_layout), in    sets the flow's last acknowledged PSN to 0xffff
    rewind   : Record(flow_rewind_layout), in
    begins   : Record(flow_reset_layout), out   the reset, in the cycle in which it takes effect
    sinks    : list of Endpoint(flow_layout), in              by enum lane
    sources  : list of Endpoint(passed_layout), out           by enum lane
    acks     : Endpoint(ack_layout), in        takes one every 3 cycles, one cycle more for each
               reset meanwhile; the shortest acknowledgement takes 9 on the link
    acked    : list of Record(acked_layout), in and out   LOOKUPS of them
    judging  : Record, out                     in a cycle with `strobe`: the value of `acked` for
               `flow` may change at the end of the cycle
    changed  : Record(flow_event_layout), out  this value has changed
    naked    : Record(flow_event_layout), out  send again: the target misses a packet of the flow,
               or its answer to a question was late
    works    : Record(flow_event_layout), out  the target repeated an acknowledgement: it is still
               storing a packet
    vain     : Record, in and out              `flow`, and whether its packets were dropped because
               no answer came, in the same cycle
    refusals : Endpoint(refusal_layout), out

    Cycles: those of FlowGate; 1 from `reset` and `rewind` to their effect; 3 from `acks` to
    `acked`, `changed` and `naked`.
    """
    def __init__(self, keeps=False):
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

        gates = [FlowGate(keeps) for _ in range(C.LANES)]
        self.kept   = [gate.kept for gate in gates]
        self.asking = [gate.asking for gate in gates]
        for lane, gate in enumerate(gates):
            self.add_module(f"gate{lane}", gate)
            # Registered by lane, because a waiting packet's `valid` depends on them.
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

        vain_ports = [gate.vains.get_port(async_read=True) for gate in gates]
        self.specials += vain_ports
        self.comb += [
            [port.adr.eq(vain.flow[:bits]) for port in vain_ports],
            vain.vain.eq(Array([port.dat_r for port in vain_ports])[vain.flow[bits:]]),
        ]

        # Tokens. A question must differ from earlier ones, also from those before a reset. So the
        # counter is not reset and counts cycles until the first question, whose time varies.
        token         = Signal(16, reset_less=True)
        question_sent = Signal(reset_less=True)
        asks          = Signal()
        self.comb += [
            asks.eq(
                Reduce(
                    "OR",
                    [
                        gate.source.valid & gate.source.ready & gate.source.question
                        for gate in gates])),
            [gate.token.eq(token) for lane, gate in enumerate(gates)],
        ]
        self.sync += [
            If(~question_sent | asks, token.eq(token + 1)),
            If(asks, question_sent.eq(1)),
        ]
        self.sinks   = [gate.sink   for gate in gates]
        self.sources = [gate.source for gate in gates]

        # Acknowledgements: lookup in the first cycle, judgement in the second, update in the third.
        flow               = Signal(max=flows)
        psn                = Signal(16)
        ack                = Signal(16)
        refused            = Signal()
        nak                = Signal()
        reason             = Signal(8)
        ack_looked_up      = Signal()
        current            = Signal()
        answered           = Signal()    # it answers the last question of its gate
        leap               = Signal()
        target_incarnation = Signal(8)
        newly_acked        = Signal(16)
        in_flight          = Signal(16)
        count              = Signal(8)
        new_refusals       = Signal(8)       # refusals that were not counted before
        is_next_refusal    = Signal()     # it is exactly the next refusal
        counts_refusal     = Signal()
        refusal_lost       = Signal()
        judged             = Signal()
        believed           = Signal()
        forward            = Signal()
        enter              = Signal()
        not_held           = Signal()    # the target does not hold the flow
        set_deaf           = Signal()
        lose               = Signal()
        move               = Signal()
        answer_late        = Signal()
        # enum lane: EXPRESS is 0
        ack_flow   = Cat(acks.node[:bits], ~flag(acks.flags, "EXPRESS"))
        lane_value = lambda name: Mux(
            flag(acks.flags, "EXPRESS"), *[getattr(gate, name) for gate in gates])
        # question of the lane
        last_question     = Record([("open", 1), ("node", bits), ("token", 16)])
        self.queue = queue = stream.SyncFIFO(refusal_layout(), 16)

        # Number of refusals by flow, and the bit *deaf*: a refusal was lost. At most WINDOW packets
        # can have been refused since the last count, so 8 bits suffice.
        assert C.WINDOW < 2**len(count)
        refusals     = Memory(len(count) + 1, flows)
        write_count  = refusals.get_port(write_capable=True)
        lookup_count = refusals.get_port(async_read=True)
        self.specials += refusals, write_count, lookup_count
        self.comb += [
            lookup_count.adr.eq(ack_flow),
            write_count.we.eq(move | set_deaf),
            write_count.adr.eq(flow),
            write_count.dat_w.eq(Cat(count, set_deaf)),  # the count of a deaf flow is not used
            If(reset.strobe,
                write_count.we.eq(reset.flow < flows),
                write_count.adr.eq(reset.flow),
                write_count.dat_w.eq(0),
            ),
        ]
        self.comb += [
            is_next_refusal.eq(refused & (new_refusals == 1) & (newly_acked != 0)),
            acks.ready.eq(~ack_looked_up & ~judged),
            judging.strobe.eq(judged),
            judging.flow.eq(flow),
            leap.eq(judged & answered & ~reset.strobe),
            [gate.node.eq(acks.node[:bits]) for gate in gates],
            *[
                getattr(last_question, name).eq(
                    Mux(
                        flag(acks.flags, "EXPRESS"),
                        *[getattr(gate.asked, name) for gate in gates]))
                for name, *_ in last_question.layout],
            answer_late.eq(Array([gate.vain for gate in gates])[flow[bits:]]),
            enter.eq(judged & believed & ~reset.strobe),
            lose.eq(enter & not_held & forward & queue.sink.ready),
            queue.sink.valid.eq(enter & (counts_refusal | (not_held & forward))),
            queue.sink.flow.eq(flow),
            queue.sink.psn.eq(psn),
            queue.sink.reason.eq(reason),
            set_deaf.eq(enter & (refusal_lost | (counts_refusal & ~queue.sink.ready))),
            move.eq(enter & forward & ~set_deaf & ~not_held),
            # `flow` stays for one more cycle, in which these events have their strobe.
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
                gate.leap.number.eq(target_incarnation + 1),
            ]
        self.sync += [
            ack_looked_up.eq(acks.valid & acks.ready),
            If(acks.ready,
                flow.eq(ack_flow),
                psn.eq(acks.psn),
                ack.eq(acks.ack),
                refused.eq(flag(acks.flags, "REFUSED")),
                nak.eq(flag(acks.flags, "NAK")),
                reason.eq(acks.reason),
                not_held.eq(flag(acks.flags, "REFUSED") & (acks.reason == STATUS.PEER_RESTARTED)),
                count.eq(acks.refusals),
                new_refusals.eq(acks.refusals - lookup_count.dat_r[:len(count)]),
                target_incarnation.eq(acks.incarnation),
                current.eq(
                    lane_value("known") & lane_value("sure") & ~lane_value("lost") &
                    (acks.incarnation == lane_value("number")) & (acks.node < C.NODES)
                    & ~lookup_count.dat_r[len(count)] & ~(reset.strobe & (reset.flow == ack_flow))),
                answered.eq(
                    flag(acks.flags, "FIRST") & last_question.open & (
                        last_question.node == acks.node) &
                    (last_question.token == acks.psn)),
                newly_acked.eq(acks.ack - lane_value("acked")),
                in_flight.eq(lane_value("sent") - lane_value("acked")),
            ),
            If(ack_looked_up,
                judged.eq(1),
                believed.eq(current & (newly_acked <= in_flight)),
                forward.eq(newly_acked != 0),
                counts_refusal.eq(is_next_refusal & ~not_held),
                refusal_lost.eq((new_refusals != 0) & ~is_next_refusal & ~not_held),
            ),
            # In the cycle of a reset the memories' write port serves the reset.
            If(~reset.strobe, judged.eq(ack_looked_up)),
            If(reset.strobe & (reset.flow == flow), believed.eq(0)),
            naked.strobe.eq((leap & answer_late) | (enter & nak & ~set_deaf & ~not_held)),
            changed.strobe.eq(move),
            # An acknowledgement without any news. The answer to a duplicate packet also looks so.
            works.strobe.eq(enter & ~forward & ~nak & ~refused),
        ]
