"""The source of a flow: no packet that is stale, none beyond the window, none of a former life, and
no refusal passed over.
"""

# SPDX-License-Identifier: BSD-2-Clause

from types import SimpleNamespace

from migen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C
from dibber.packet import flow_table as design

from harness import Harness, Mutant, Property, implies, inner, memory_of

class Flows(Harness):
    """Both lanes and the acknowledgements, with any packets, resets, rewinds and acknowledgements.

    Beside them the state of one flow of the solver's choice, as resets, rewinds, and the packets
    that leave make it, and what its target holds, which is anything when this source has just got
    power. A packet stays at its gate until it is taken, as every stream's beat does; a reset and a
    rewind do not come together. An answer with the token of the last question tells what the target
    holds, as the channel keeps the order of packets and question.
    """
    def __init__(self):
        super().__init__()
        self.block = block = design.FlowTable()
        acks = block.acks
        # Both are done in the cycle after they were asked for.
        asked_reset, asked_rewind = block.reset, block.rewind
        reset,       rewind       = block.begins, Record(design.flow_rewind_layout(), name="rewinds")
        self.node = node = self.constant("node", log2_int(C.NODES))
        self.lane = lane = self.constant("lane", log2_int(C.LANES))
        self.free_all("ack", acks)
        self.comb += [
            asked_reset.strobe.eq(self.free("reset")),
            asked_reset.flow.eq(self.free("reset_flow", 8)),
            asked_reset.incarnation.eq(self.free("reset_incarnation", 8)),
            asked_rewind.strobe.eq(self.free("rewind")),
            asked_rewind.flow.eq(self.free("rewind_flow", 8)),
            asked_rewind.epoch.eq(self.free("rewind_epoch", 4)),
            block.refusals.ready.eq(self.free("refusals_ready")),
        ]
        self.sync += rewind.eq(asked_rewind)
        self.assume("one_change", ~(asked_reset.strobe & asked_rewind.strobe))
        self.lemma("one_done", ~(reset.strobe & rewind.strobe))
        for lane_, gate in enumerate([block.gate0, block.gate1]):
            for of_gate, of_all in (gate.reset, reset), (gate.rewind, rewind):
                fields = [name for name, *_ in of_all.layout if name != "strobe"]
                self.lemma(f"{'reset' if of_all is reset else 'rewind'}{lane_}",
                    (of_gate.strobe == (of_all.strobe & (of_all.flow[log2_int(C.NODES):] == lane_)))
                    & (Cat(*[getattr(of_gate, name) for name in fields]) == Cat(*[getattr(of_all, name) for name in fields])))
        for n, (sink, source) in enumerate(zip(block.sinks, block.sources)):
            self.free_all(f"packet{n}", sink, omit=("first", "last"))
            self.comb += source.ready.eq(self.free(f"source_ready{n}"))
            fields = Cat(sink.node, sink.incarnation, sink.epoch, sink.psn, sink.length)
            kept   = self.before(fields, len(fields))
            self.assume(f"stays{n}", implies(self.before(sink.valid & ~sink.ready), sink.valid & (fields == kept)))

        def of_lane(values):
            """That of the flow's lane."""
            values = list(values)
            signal = Signal(max(len(v) for v in values))
            self.comb += signal.eq(Array(values)[lane])
            return signal

        def named(bits, value):
            signal = Signal(bits)
            self.comb += signal.eq(value)
            return signal

        # The packet at its gate.
        gates    = [block.gate0, block.gate1]
        fields   = {name: of_lane(getattr(sink, name) for sink in block.sinks)
                    for name in ("valid", "ready", "node", "incarnation", "epoch", "psn")}
        shown    = of_lane(source.valid for source in block.sources)
        is_stale = of_lane(source.stale for source in block.sources)
        taken    = of_lane(source.valid & source.ready & ~source.question for source in block.sources)
        of_flow  = named(1, fields["node"] == node)
        passes   = named(1, taken & ~is_stale & of_flow)

        # The flow.
        number      = named(8, Cat(node, lane))
        said        = Signal(16)     # the acknowledgement that is judged, as it came
        said_of     = Signal(8)
        refusals    = Signal(8)
        known       = Signal()
        incarnation = Signal(8)
        epoch       = Signal(4)
        sent        = Signal(16, reset=0xffff)
        told        = Signal(8)      # refusals that were queued
        acked       = named(16, block.acked[0].psn)
        self.comb  += block.acked[0].flow.eq(number)
        starts      = named(1, reset.strobe & (reset.flow == number))
        queue       = block.queue.sink
        # what is judged says that the target does not hold the flow
        gone        = inner(block, "not_held")
        queued      = named(1, queue.valid & queue.ready & (queue.flow == number) & ~gone)
        psn         = fields["psn"]
        leaps       = named(1, of_lane(gate.leap.strobe & (gate.leap.node == node) for gate in gates))
        def table(name):
            """What the lane's memory has of the node."""
            ports = [memory_of(gate, name).get_port(async_read=True) for gate in gates]
            self.specials += ports
            self.comb += [port.adr.eq(node) for port in ports]
            return of_lane(port.dat_r for port in ports)

        counted     = table("numbers")
        wire        = named(8, counted[:8])   # the incarnation that its packets carry
        sure        = named(1, counted[8])
        carried     = of_lane(source.number for source in block.sources)
        self.sync += [
            If(passes & (named(16, psn - sent - 1) < 2**15), sent.eq(psn)),
            If(queued, told.eq(told + 1)),
            If(rewind.strobe & (rewind.flow == number), epoch.eq(rewind.epoch)),
            If(starts, known.eq(1), incarnation.eq(reset.incarnation), epoch.eq(0), sent.eq(0xffff), told.eq(0)),
        ]
        window = named(16, sent - acked)
        ahead  = named(16, psn - acked - 1)
        # its target does not hold it
        silent = named(1, of_lane((inner(gate, "lost_flows") >> node)[0] for gate in gates))
        vain   = table("vains")       # its target was asked, and said nothing
        alive  = named(1, known & (fields["incarnation"] == incarnation) & (fields["epoch"] == epoch))
        self.prove("alive",      implies(passes, alive & ~silent & ~starts & ~(rewind.strobe & (rewind.flow == number))))
        self.prove("no_other",   implies(taken & ~is_stale, fields["node"] < C.NODES))
        self.prove("in_window",  implies(passes, (ahead < C.WINDOW) | ahead[15]))
        # By as much as the window the acknowledgement may have moved since it was compared.
        self.prove("stale_only", implies(shown & of_flow & is_stale, ~alive | silent | (ahead >= 2**15 - C.WINDOW) | (vain & ~sure)))
        self.prove("acked",      window <= C.WINDOW)

        # Acknowledgements.
        self.sync += If(acks.valid & acks.ready, said.eq(acks.ack), said_of.eq(acks.incarnation), refusals.eq(acks.refusals))
        before   = self.before(acked, 16, reset=0xffff)
        entered  = named(1, ~self.before(starts) & (acked != before))
        refused  = self.before(refusals, 8)
        count    = inner(block, "refusals").get_port(async_read=True)
        self.specials += count
        self.comb += count.adr.eq(number)
        deaf     = named(1, known & count.dat_r[8])
        self.prove("as_said",    implies(entered, acked == self.before(said, 16)))
        self.prove("of_this_incarnation", implies(entered, self.before(known) & (self.before(said_of, 8) == self.before(wire, 8))))
        self.prove("carried", implies(passes, carried == wire))

        # What the target holds: of packets that pass it may start what is newer. `own`: it was
        # started by this incarnation.
        began    = self.before(1)
        first    = self.constant("held", 8)
        later    = Signal(8)
        told_by  = Signal()
        own      = Signal()
        held     = named(8, Mux(told_by, later, first))
        gap      = named(8, wire - held)
        self.sync += [
            If(passes & (gap != 0) & ~gap[7] & self.free("arrives"), told_by.eq(1), later.eq(wire), own.eq(1)),
            If(starts, own.eq(0)),
        ]
        self.assume("power_on", implies(~began, ~sure))
        asked  = {name: of_lane(getattr(gate.asked, name) for gate in gates) for name in ("open", "node", "token")}
        about  = Cat(acks.node[:log2_int(C.NODES)], ~design.flag(acks.flags, "EXPRESS"))
        answer = named(1, acks.valid & acks.ready & design.flag(acks.flags, "FIRST") & (acks.node < C.NODES) & (about == number)
            & asked["open"] & (asked["node"] == node) & (asked["token"] == acks.psn))
        self.assume("answer", implies(answer, acks.incarnation == held))
        self.prove("fresh", implies(passes, (gap <= design.DOUBTS) & ((gap != 0) | own)))
        self.lemma("sure", implies(sure, (gap <= wire[:log2_int(design.DOUBTS)] + 1) & ((gap != 0) | own)))
        self.lemma("asked", implies(asked["open"] & (asked["node"] == node), ~sure))
        self.prove("refusals",   implies(entered, refused == told))
        was_silent = self.before(silent & ~starts)
        self.prove("silent",     implies(was_silent, silent & ~entered) & implies(silent, known))
        was_deaf = self.before(deaf & ~starts)
        self.prove("deaf",       implies(was_deaf, deaf & ~entered & ~(block.naked.strobe & (block.naked.flow == number) & ~self.before(leaps))) & implies(deaf, ~queued))

        # The tables say so.
        tables = {name: table(name) for name in ("incarnations", "epochs", "sents")}
        self.lemma("known",  of_lane((inner(gate, "known") >> node)[0] for gate in gates) == known)
        self.lemma("tables", implies(known, (tables["incarnations"] == incarnation) & (tables["epochs"] == epoch)
            & (tables["sents"] == sent) & (deaf | (count.dat_r[:8] == told))))
        self.lemma("unknown", implies(~known, (acked == 0xffff) & (sent == 0xffff)))

        # Lookup, then comparison. `acked` may move meanwhile, but not beyond what was sent.
        found   = {name: of_lane(inner(gate, name) for gate in gates) for name in (
            "incarnation", "number", "epoch", "sent", "acked", "is_started", "stale", "in_window", "sure", "is_newest",
            "lookup_done")}
        used    = self.before(found["acked"], 16)
        settled = found["lookup_done"]
        old     = named(16, psn - used - 1)
        beyond  = named(16, psn - sent - 1)
        self.lemma("settles", implies(settled != 0, fields["valid"] & (settled != 2)))
        self.lemma("found",   implies(settled[0] & of_flow, (found["is_started"] == (known & ~silent)) & (found["number"] == counted) & implies(known,
            (found["incarnation"] == incarnation)
            & (found["epoch"] == epoch) & (found["sent"] == sent) & (named(16, sent - found["acked"]) <= C.WINDOW) & (named(16, acked - found["acked"]) <= C.WINDOW)
            & (named(16, acked - found["acked"]) <= named(16, sent - found["acked"])))))
        self.lemma("found_other", implies(settled[0] & (fields["node"] >= C.NODES), ~found["is_started"]))
        self.lemma("compared_other", implies(settled[1] & (fields["node"] >= C.NODES), found["stale"]))
        self.lemma("hopeless", implies(settled[1] & of_flow & of_lane(inner(gate, "no_answer") for gate in gates), vain))
        self.lemma("compared", implies(settled[1] & of_flow, (found["stale"] == (~alive | silent | old[15])) & (found["sure"] == sure) & implies(known,
            (found["in_window"] == (old < C.WINDOW)) & (found["is_newest"] == ~beyond[15])
            & (named(16, sent - used) <= C.WINDOW) & (named(16, acked - used) <= named(16, sent - used)))))

        # Looked up, judged, entered.
        flow, heard, judged, current, believed, moved, possible, missed, new, lost, forward, ack, number_told = (
            inner(block, name) for name in ("flow", "ack_looked_up", "judged", "current", "believed", "newly_acked",
            "in_flight", "new_refusals", "counts_refusal", "refusal_lost", "forward", "ack", "count"))
        mine = named(1, flow == number)
        step = named(16, said - acked)
        fit  = known & (said_of == wire) & sure & ~deaf & ~silent
        self.lemma("answered", implies(mine & (heard | judged) & inner(block, "answered"), ~sure & (said_of == held)))
        self.lemma("held", implies(heard | judged, inner(block, "target_incarnation") == said_of))
        self.lemma("one_at_once", ~(heard & judged))
        self.lemma("as_it_came", implies(heard | judged, (ack == said) & (number_told == refusals)))
        self.lemma("heard",   implies(heard & mine & current, fit & (moved == step) & (possible <= window)
            & (missed == named(8, refusals - told))))
        self.lemma("judged",  implies(judged & mine & believed, fit & (step <= window) & (forward == (step != 0))
            & Mux(gone, ~new & ~lost, Mux(new, (refusals == named(8, told + 1)) & (step != 0) & ~lost, lost == (refusals != told)))))


class FlowsSmall(Flows):
    """For mutants: two nodes, and a queue for one refusal."""
    def __init__(self):
        C.NODES = 2
        design.stream = SimpleNamespace(Endpoint=stream.Endpoint, SyncFIFO=lambda layout, depth: stream.SyncFIFO(layout, 1))
        super().__init__()
        self.assume("one_flow", ~self.lane & (self.node == 0) & ~self.block.sinks[1].valid & ~self.block.rewind.strobe)


class FlowsSure(FlowsSmall):
    """For the mutant that needs the count to come round: it asks again after two."""
    def __init__(self):
        design.DOUBTS = 2
        super().__init__()


PROPERTIES = [
    Property("flow-source", "packet/flow_table", "no stale packet leaves, none is of a former life or covered unsent, no refusal is passed over",
        f"{C.LANES} lanes, {C.NODES} nodes", "Flows", k=1, arrays=True, mutants=[
            Mutant("epoch not looked at", "dibber.packet.flow_table", "(epoch != sink.epoch)", "0", depth=12, harness="FlowsSmall"),
            Mutant("an acknowledgement of anything", "dibber.packet.flow_table",
                "believed.eq(current & (newly_acked <= in_flight))",
                "believed.eq(current)", depth=18, harness="FlowsSmall"),
            Mutant("believed after a reset", "dibber.packet.flow_table",
                "If(reset.strobe & (reset.flow == flow), believed.eq(0)),", "", depth=20, harness="FlowsSmall"),
            Mutant("nobody is asked after power-on", "dibber.packet.flow_table", "sure.eq(number[8])", "sure.eq(1)", depth=10, harness="FlowsSmall"),
            Mutant("a flow stays sure for ever", "dibber.packet.flow_table",
                "old_number[8] & (next_number[:log2_int(DOUBTS)] != 0)", "old_number[8]", depth=30,
                harness="FlowsSure"),
            Mutant("an answer to any question", "dibber.packet.flow_table",
                " &\n                    (last_question.token == acks.psn)", "", depth=14, harness="FlowsSmall"),
            Mutant("an answer that counts twice", "dibber.packet.flow_table",
                "lookup_done.eq(0), asked.open.eq(0))", "lookup_done.eq(0))", depth=24, harness="FlowsSmall"),
            Mutant("a packet goes on as it was when the answer comes", "dibber.packet.flow_table", "If(leap.strobe, lookup_done.eq(0), ", "If(leap.strobe, ",
                depth=20, harness="FlowsSmall"),
            Mutant("a full queue drops a refusal", "dibber.packet.flow_table",
                "enter & (refusal_lost | (counts_refusal & ~queue.sink.ready))", "(enter & refusal_lost)", depth=20, harness="FlowsSmall"),
            Mutant("a refusal that was lost is passed over", "dibber.packet.flow_table",
                "refusal_lost.eq((new_refusals != 0) & ~is_next_refusal & ~not_held)", "refusal_lost.eq(0)", depth=20, harness="FlowsSmall"),
            Mutant("a flow goes on that its target does not hold", "dibber.packet.flow_table", "(known & ~lost_flows) >> sink.node",
                "known >> sink.node", depth=20, harness="FlowsSmall"),
    ]),
]
