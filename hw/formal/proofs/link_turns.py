"""Two links: turns of jobs, of packets at the gate, and of EXPRESS packets before their receiver."""

# SPDX-License-Identifier: BSD-2-Clause

from types import SimpleNamespace

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.deposit import job_turns
from dibber.interface.description import C, STATUS
from dibber.packet.gate_turns import TURN, GateTurns
from dibber.packet.merge import PacketMerger
from dibber.packet.split import LINKS

from harness import Harness, Mutant, Property, implies, inner, inner_all

PATIENCE = 3
PAYLOAD  = 4  # bytes of a packet
BITS     = 5  # of a length

def stays(harness, name, endpoint, fields):
    """Assume that an endpoint keeps what it offers until it is taken."""
    waits = harness.before(endpoint.valid & ~endpoint.ready)
    same  = [endpoint.valid]
    same += [getattr(endpoint, f) == harness.before(getattr(endpoint, f), len(getattr(endpoint, f))) for f in fields]
    harness.assume(f"stays_{name}", implies(waits, reduce_and(same)))

def reduce_and(conditions):
    found = conditions[0]
    for condition in conditions[1:]:
        found = found & condition
    return found

# Jobs ---------------------------------------------------------------------------------------------

def small_job():
    return stream.EndpointDescription(
        [("node", 1), ("tag", 2), ("length", BITS), ("skip", BITS), ("psn", 3)])

class Row(LiteXModule):
    """In place of a row of jobs: any job may be the first one, and it stays until it is taken."""
    def __init__(self, layout, depth):
        self.sink, self.source = stream.Endpoint(layout), stream.Endpoint(layout)

class Order(LiteXModule):
    """A FIFO of two links, as stream.SyncFIFO."""
    def __init__(self, layout, depth):
        assert depth == 2
        self.sink, self.source = stream.Endpoint(layout), stream.Endpoint(layout)
        self.level  = level = Signal(2)
        self.oldest = Signal()
        self.next   = Signal()
        come = self.sink.valid & self.sink.ready
        go   = self.source.valid & self.source.ready
        self.comb += [
            self.sink.ready.eq(level != 2),
            self.source.valid.eq(level != 0),
            self.source.link.eq(self.oldest),
        ]
        self.sync += [
            level.eq(level + come - go),
            If(go, self.oldest.eq(self.next)),
            If(come & ((level == 0) | ((level == 1) & go)),
                self.oldest.eq(self.sink.link)
            ).Elif(come,
                self.next.eq(self.sink.link)
            ),
        ]

class Jobs(Harness):
    """Rows of any jobs, and an engine that takes parts and ends them at any time, in their order.
    The packet of a part comes to the splitter or not.
    """
    def __init__(self):
        super().__init__()
        C.NODES, C.PACKET_PAYLOAD = 2, PAYLOAD
        job_turns.job_layout, job_turns.BlockFIFO = small_job, Row
        job_turns.stream = SimpleNamespace(
            Endpoint=stream.Endpoint, EndpointDescription=stream.EndpointDescription, SyncFIFO=Order)
        self.block = block = job_turns.JobTurns()
        parts, ends, done, order = block.parts, block.ends, block.done, block.order
        rows, busy, link = (inner(block, name) for name in ("rows", "busy", "link"))
        flying, ended, final, is_end = (
            inner(block, name) for name in ("flying", "ended", "final", "is_end"))
        own = lambda name: inner_all(block, name)[0]
        self.free_all("end", ends)
        self.comb += [
            parts.ready.eq(self.free("parts_ready")),
            done.ready.eq(self.free("done_ready")),
            block.room.eq(self.free("room", LINKS)),
        ]
        self.assume("ends", implies(ends.valid, order.level != 0))
        stays(self, "end", ends, ["status", "psn", "checksum"])
        engine = [Signal(name=f"engine{n}") for n in range(LINKS)]  # a part is there
        place  = [Signal(name=f"place{n}") for n in range(LINKS)]   # reserved, not used
        came   = [Signal(name=f"came{n}") for n in range(LINKS)]    # the packet of the part
        sent   = Signal()
        over   = Signal()
        pops   = []
        self.comb += [sent.eq(parts.valid & parts.ready), over.eq(ends.valid & ends.ready)]
        for n, row in enumerate(rows):
            job = row.source
            self.free_all(f"job{n}", job)
            stays(self, f"job{n}", job, ["node", "tag", "length", "skip", "psn"])
            mine  = Signal(name=f"mine{n}")   # a part of this link ends
            begun = Signal(name=f"begun{n}")
            skip  = Signal(BITS, name=f"skip{n}")
            psn   = Signal(3, name=f"psn{n}")
            at    = Signal(BITS, name=f"at{n}")
            last  = Signal(name=f"last{n}")
            ok    = Signal(name=f"ok{n}")
            comes = Signal(name=f"comes{n}")
            self.comb += [
                comes.eq(self.free(f"came{n}") & engine[n] & ~came[n]),
                block.came[n].eq(comes),
                mine.eq(over & (order.source.link == n)),
                at.eq(Mux(begun, skip, job.skip)),
                last.eq((at >= job.length) | (job.length - at <= PAYLOAD)),
                ok.eq(ends.status == STATUS.OK),
            ]
            self.sync += [
                If(sent & (parts.link == n), engine[n].eq(1)),
                If(comes, came[n].eq(1)),
                If(block.reserve[n], place[n].eq(1), came[n].eq(0)).Elif(comes | block.cancel[n],
                    place[n].eq(0)
                ),
                If(mine,
                    engine[n].eq(0),
                    begun.eq(ok & ~last),
                    skip.eq(at + PAYLOAD),
                    psn.eq(ends.psn)
                ),
            ]
            offered = parts.valid & (parts.link == n)
            pop     = job.valid & job.ready
            pops.append(pop)
            # The parts of a job: from its start to its end, one after the other, each once.
            self.prove(f"part{n}", implies(offered, job.valid & ~engine[n] & (parts.skip == at)
                & (parts.psn == Mux(begun, psn, job.psn)) & (parts.more == ~last)
                & (parts.length == Mux(last, job.length, at + PAYLOAD))))
            self.prove(f"job{n}",  implies(offered, (parts.tag == job.tag) & (parts.node == job.node)))
            self.prove(f"pop{n}",  pop == (mine & (last | ~ok)))
            self.prove(f"end{n}",  implies(mine, engine[n]))
            # Each part has a place, which its packet uses or which is given back.
            self.prove(f"room{n}",    implies(block.reserve[n], block.room[n] & job.valid & ~place[n] & ~engine[n]))
            self.prove(f"place{n}",   implies(sent & (parts.link == n), place[n]))
            self.prove(f"given{n}",   implies(block.cancel[n], place[n]))
            self.prove(f"back{n}",    implies(mine & place[n] & ~comes, block.cancel[n]))
            self.prove(f"no_leak{n}", implies(place[n], engine[n] | (busy & (link == n))))
            # A link waits for one part of the other one to be taken, not for its end.
            wants = Signal(name=f"wants{n}")
            lefts = Signal(2, name=f"lefts{n}")
            self.comb += wants.eq(job.valid & block.room[n] & ~engine[n] & ~(busy & (link == n)))
            self.sync += If(~wants | block.reserve[n], lefts.eq(0)).Elif(block.reserve[1 - n] & (lefts != 3),
                lefts.eq(lefts + 1))
            self.prove(f"goes{n}", implies(wants & ~busy, block.reserve != 0))
            self.prove(f"turn{n}", lefts <= 1)
            self.lemma(f"turn_now{n}", implies(lefts != 0, link != n))
            self.lemma(f"flying{n}", flying[n] == (engine[n] | (busy & (link == n))))
            self.lemma(f"begun{n}",  (begun == own(f"begun{n}")))
            self.lemma(f"began{n}",  implies(begun, job.valid & (skip == own(f"skip{n}"))
                & (psn == own(f"psn{n}")[:3])))
            self.lemma(f"small{n}",  implies(begun, own(f"skip{n}") < 2**BITS))
            self.lemma(f"came{n}",   implies(engine[n], (came[n] == own(f"present{n}")) & (place[n] == ~came[n])))
            self.lemma(f"fresh{n}",  implies(busy & (link == n), ~engine[n] & place[n] & ~came[n] & ~own(f"present{n}")))
            self.lemma(f"alive{n}",  implies(engine[n], job.valid))
            self.lemma(f"alive_busy{n}", implies(busy & (link == n), job.valid))
        self.prove("done", (done.valid & done.ready) == (pops[0] | pops[1]))
        self.prove("one",  ~(pops[0] & pops[1]))
        self.prove("says", implies(done.valid, (done.status == ends.status) & (done.psn == ends.psn)))
        # The engine alone makes parts wait.
        self.prove("offered", implies(busy, parts.valid))
        self.lemma("level",  order.level == engine[0] + engine[1])
        self.lemma("oldest", implies(order.level == 1, engine[0] == ~order.oldest))
        self.lemma("both",   implies(order.level == 2, order.oldest != order.next))

# Gate ---------------------------------------------------------------------------------------------

class Gate(Harness):
    """Packets of two transmitters, and a gate that looks up the packet which it is shown for two
    cycles. Then it may have a verdict of that packet in any cycle.
    """
    def __init__(self):
        super().__init__()
        self.block = block = GateTurns()
        flow, passed = block.flow, block.passed
        link  = inner(block, "link")
        taken = Signal()
        shown = [Signal(name=f"shown{n}") for n in range(2)]      # for so many cycles before
        of    = [Signal(16, name=f"of{n}") for n in range(2)]     # the packet that was looked up
        self.comb += [
            flow.ready.eq(passed.valid & passed.ready & ~passed.question),
            passed.valid.eq(flow.valid & shown[0] & shown[1] & self.free("verdict")),
            passed.question.eq(self.free("question")),
            passed.psn.eq(flow.psn),
            block.question.eq(self.free("asks")),
            taken.eq(flow.valid & flow.ready),
        ]
        self.sync += [
            shown[0].eq(flow.valid & ~taken),
            shown[1].eq(flow.valid & ~taken & shown[0]),
            of[0].eq(flow.psn),
            of[1].eq(of[0]),
        ]
        passes = passed.valid & passed.ready
        waits  = block.question & ~passed.valid
        for n in range(LINKS):
            sink, source = block.sinks[n], block.sources[n]
            fields = ["node", "incarnation", "epoch", "psn", "length"]
            self.free_all(f"packet{n}", sink)
            stays(self, f"packet{n}", sink, fields)
            self.comb += source.ready.eq(self.free(f"ready{n}"))
            self.prove(f"once{n}",  (sink.valid & sink.ready) == (taken & (link == n)))
            self.prove(f"shown{n}", implies(flow.valid & (link == n),
                sink.valid & reduce_and([getattr(flow, f) == getattr(sink, f) for f in fields])))
            self.prove(f"own{n}",   implies(source.valid, sink.valid & (source.psn == sink.psn) & (of[1] == sink.psn)))
            # A packet that waits for anything but an answer leaves its turn.
            denied = Signal(max=TURN + 4, name=f"denied{n}")
            self.sync += If(sink.valid & (link != n) & ~passes & ~waits,
                If(denied != TURN + 3, denied.eq(denied + 1))
            ).Else(denied.eq(0))
            self.prove(f"goes{n}", denied <= TURN + 1)
            self.prove(f"turn{n}", implies(self.before(taken & sink.valid & (link != n)), link == n))
            self.lemma(f"age{n}",  implies(link != n, denied <= inner(block, "age")))
        self.prove("one", ~(block.sources[0].valid & block.sources[1].valid))
        self.lemma("age",  inner(block, "age") <= TURN)
        self.lemma("same", implies(flow.valid & shown[0], of[0] == flow.psn))
        self.lemma("past", implies(shown[1], shown[0] & (of[1] == of[0])))

# Merger -------------------------------------------------------------------------------------------

class Merge(Harness):
    """Words of packets by both links, with gaps of any length, and a receiver that stops at any time."""
    def __init__(self):
        super().__init__()
        self.block = block = PacketMerger(PATIENCE)
        source = block.source
        busy, last, link, rest, waited, gives_up = (
            inner(block, name) for name in ("busy", "last", "link", "rest", "waited", "gives_up"))
        self.comb += source.ready.eq(self.free("ready"))
        open_ = Signal()  # a packet is at the receiver, without its end
        owner = Signal()  # its link
        taken = Signal()
        cut   = [Signal(name=f"cut{n}") for n in range(LINKS)]  # the rest of the link's packet is dropped
        quiet = Signal(max=PATIENCE + 2)  # cycles without a word of the packet that has begun
        self.comb += taken.eq(source.valid & source.ready)
        self.sync += If(taken, open_.eq(~source.last), owner.eq(link))
        for n in range(LINKS):
            sink = block.sinks[n]
            self.free_all(f"word{n}", sink)
            stays(self, f"word{n}", sink, ["data", "bad", "last"])
            goes  = Signal(name=f"goes{n}")
            shows = source.valid & (link == n) & ~gives_up
            self.comb += goes.eq(sink.valid & sink.ready)
            self.sync += [
                If(cut[n] & goes & sink.last, cut[n].eq(0)),
                If(gives_up & taken & (last == n), cut[n].eq(1)),
            ]
            self.prove(f"once{n}", implies(~cut[n], goes == (shows & source.ready)))
            self.prove(f"rest{n}", implies(cut[n], ~shows & sink.ready))
            self.prove(f"word{n}", implies(shows, sink.valid & (source.data == sink.data)
                & (source.bad == sink.bad) & (source.last == sink.last)))
            # A packet waits for one of the other link, which moves or ends.
            passed = Signal(2, name=f"passed{n}")  # ends of the other link's packets meanwhile
            idle   = Signal(max=PATIENCE + 3, name=f"idle{n}")  # cycles in which nothing is offered
            waits  = Signal(name=f"waits{n}")
            self.comb += waits.eq(sink.valid & ~cut[n] & ~shows)
            self.sync += [
                If(~waits, passed.eq(0)).Elif(taken & source.last & (passed != 3), passed.eq(passed + 1)),
                If(~waits | source.valid, idle.eq(0)).Elif(idle != PATIENCE + 2, idle.eq(idle + 1)),
            ]
            self.prove(f"turn{n}",  passed <= 1)
            self.prove(f"moves{n}", idle <= PATIENCE)
            self.lemma(f"cut{n}",   cut[n] == rest[n])
            self.lemma(f"idle{n}",  idle <= waited)
            self.lemma(f"turn_now{n}", implies((passed == 1) & waits, ~busy & (last != n)))
        self.prove("whole",  implies(open_ & source.valid, Mux(gives_up, last, link) == owner))
        self.prove("end",    implies(gives_up, source.valid & source.last & source.bad))
        self.prove("begun",  implies(gives_up, open_))
        self.prove("late",   implies(gives_up, quiet >= PATIENCE))
        word = Array(sink.valid for sink in block.sinks)[last] & ~Array(cut)[last]
        self.sync += If(~busy | word, quiet.eq(0)).Elif(quiet != PATIENCE + 1, quiet.eq(quiet + 1))
        self.lemma("open",   implies(open_, busy & (last == owner)))
        self.lemma("first",  implies(busy & ~open_, Array(sink.valid for sink in block.sinks)[last] & ~Array(cut)[last]))
        self.lemma("waited", (waited <= PATIENCE) & implies(busy & (waited != 0), open_))
        self.lemma("quiet",  (quiet >= waited) & (quiet <= PATIENCE + 1))
        self.lemma("kept",   implies(busy, ~Array(cut)[last]))


PROPERTIES = [
    Property("links-jobs", "deposit/job_turns",
        "the parts of each job in order, once, with a place each; a link waits for one part of the other",
        f"lengths of {BITS} bits, packets of {PAYLOAD} bytes", "Jobs", k=1, quick=True, mutants=[
            Mutant("a second part before the end of the first one", "dibber.deposit.job_turns",
                "job.valid & ~flying[n] & self.room[n]", "job.valid & self.room[n]", depth=8),
            Mutant("a part without a place", "dibber.deposit.job_turns",
                "job.valid & ~flying[n] & self.room[n]", "job.valid & ~flying[n]", depth=8),
            Mutant("a failed part does not end its job", "dibber.deposit.job_turns",
                "Mux(which, final[1], final[0]) | (ends.status != STATUS.OK)",
                "Mux(which, final[1], final[0])", depth=10),
            Mutant("the place of a part without a packet is lost", "dibber.deposit.job_turns",
                "ended[n] & ~present & ~self.came[n]", "0", depth=10),
            Mutant("an end is that of the part which was sent last", "dibber.deposit.job_turns",
                "which  = order.source.link", "which  = parts.link", depth=12),
            Mutant("the next part has the job's first PSN", "dibber.deposit.job_turns",
                "Mux(begun, psn, job.psn)", "job.psn", depth=12),
    ]),
    Property("links-gate", "packet/gate_turns",
        "each verdict to the packet that was looked up; none waits longer than its turn",
        f"turns of {TURN} cycles", "Gate", k=1, quick=True, mutants=[
            Mutant("the gate does not begin again", "dibber.packet.gate_turns",
                "flow.valid.eq(shown & ~pause)", "flow.valid.eq(shown)", depth=16),
            Mutant("a packet that waits keeps its turn", "dibber.packet.gate_turns",
                "((age == TURN) & ~passes", "((age == TURN) & 0", depth=16),
            Mutant("a link keeps its turn after a packet", "dibber.packet.gate_turns",
                "(~shown | (flow.valid & flow.ready) |", "(~shown |", depth=12),
            Mutant("both transmitters have the verdict", "dibber.packet.gate_turns",
                "sources[n].valid.eq(passed.valid & (link == n))", "sources[n].valid.eq(passed.valid)",
                depth=10),
    ]),
    Property("links-merge", "packet/merge",
        "whole packets of both links, once; one that stops is cut after the patience, and only then",
        f"patience of {PATIENCE} cycles", "Merge", k=1, quick=True, mutants=[
            Mutant("a word is lost behind the cut", "dibber.packet.merge",
                "source.ready & (link == n) & ~gives_up", "source.ready & (link == n)", depth=12),
            Mutant("the rest of a cut packet is a packet", "dibber.packet.merge",
                "*[If(last == n, rest[n].eq(1)) for n in range(LINKS)]", "[]", depth=14),
            Mutant("the link changes inside a packet", "dibber.packet.merge",
                "link.eq(Mux(busy, last,", "link.eq(Mux(0, last,", depth=10),
            Mutant("it gives up too early", "dibber.packet.merge",
                "(waited == patience)", "(waited == patience - 1)", depth=12),
            Mutant("link 1 goes first", "dibber.packet.merge",
                "Mux(last, ~offers[0], offers[1])", "offers[1]", depth=12),
    ]),
]
