"""Two links: a stopped one stops no packet of the other, and no packet is lost or doubled."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from dibber.packet.join import FlowTurns, PacketJoiner
from dibber.packet.split import LINKS, PacketSplitter

from harness import Harness, Mutant, Property, implies, inner

PLACES = 2
MOST   = 3

# Splitter -----------------------------------------------------------------------------------------

class Split(Harness):
    """Any packets with a place, and transmitters that take what has a place in their buffer and
    else stop for as long as they like.
    """
    def __init__(self):
        super().__init__()
        self.block = block = PacketSplitter(32, PLACES)
        packets, payload = block.packets, block.payload
        self.free_all("packet", packets)
        self.free_all("line", payload)
        used   = inner(block, "used")
        room   = block.room
        inside = [Signal(4, name=f"inside{n}") for n in range(LINKS)]  # in the buffer
        due    = [Signal(4, name=f"due{n}") for n in range(LINKS)]     # reserved only
        both   = [Signal(5, name=f"both{n}") for n in range(LINKS)]
        open_  = Signal()  # lines of the last packet are still to come
        target = Signal()  # its link
        comes  = Signal()
        self.comb += comes.eq(packets.valid & packets.ready)
        for n in range(LINKS):
            source, lines = block.sources[n], block.payloads[n]
            reserve, cancel, left = (self.free(f"{name}{n}") for name in ("reserve", "cancel", "left"))
            takes = Signal(name=f"takes{n}")
            self.comb += [
                both[n].eq(inside[n] + due[n]),
                block.reserve[n].eq(reserve & room[n]),
                block.cancel[n].eq(cancel & (due[n] != 0) & ~(packets.valid & (packets.link == n))),
                # The packet whose lines still come does not leave.
                block.left[n].eq(left & (inside[n] > (open_ & (target == n)))),
                source.ready.eq((inside[n] < PLACES) | self.free(f"ready{n}")),
                # Lines of a packet that is in the buffer have room there.
                lines.ready.eq((inside[n] != 0) | self.free(f"lines_ready{n}")),
                takes.eq(source.valid & source.ready),
            ]
            self.assume(f"reserved{n}", implies(packets.valid & (packets.link == n), due[n] != 0))
            self.sync += [
                inside[n].eq(inside[n] + takes - block.left[n]),
                due[n].eq(due[n] + block.reserve[n] - block.cancel[n] - takes),
            ]
            self.prove(f"fits{n}", inside[n] <= PLACES)
            self.prove(f"own{n}", implies(source.valid, (packets.link == n) & (source.psn == packets.psn)
                & (source.length == packets.length)))
            self.prove(f"line{n}", implies(lines.valid, open_ & (target == n) & (lines.dat == payload.dat)
                & (lines.last == payload.last)))
            self.prove(f"room{n}", room[n] == (both[n] < PLACES))
            self.lemma(f"used{n}", used[n] == both[n])
            self.lemma(f"open{n}", implies(open_ & (target == n), inside[n] != 0))
            self.lemma(f"few{n}",  (inside[n] <= PLACES) & (due[n] <= PLACES) & (both[n] <= PLACES))
        self.sync += [
            If(payload.valid & payload.ready & payload.last, open_.eq(0)),
            If(comes, open_.eq(packets.length != 0), target.eq(packets.link)),
        ]
        # Whatever the other link does, a packet between two others and a line are taken at once.
        self.prove("packet_goes", implies(packets.valid & ~open_, packets.ready))
        self.prove("line_goes",   implies(payload.valid & open_, payload.ready))
        given = sum(source.valid & source.ready for source in block.sources)
        lines = sum(source.valid & source.ready for source in block.payloads)
        self.prove("packet_once", comes == given)
        self.prove("not_early",   ~(comes & open_))
        self.prove("line_once",   (payload.valid & payload.ready) == lines)
        self.lemma("open",   inner(block, "lines_come") == open_)
        self.lemma("target", implies(open_, inner(block, "link") == target))

# Joiner -------------------------------------------------------------------------------------------

class Join(Harness):
    """Two receivers with any packets. A packet that is whole is offered in every cycle, and the
    first words of one that is not, in any cycle. The numbers of deposits and lines are modulo 8.
    """
    def __init__(self):
        super().__init__()
        self.block = block = PacketJoiner(32, 32, MOST)
        deposit, payload = block.deposit, block.payload
        busy, link, announced, passed = (
            inner(block, name) for name in ("busy", "link", "announced", "lines_passed"))
        counts = inner(block, "count")
        self.comb += [
            deposit.ready.eq(self.free("deposit_ready")),
            payload.ready.eq(self.free("payload_ready")),
        ]
        given  = [Signal(3, name=f"given{n}") for n in range(LINKS)]  # packets that were whole
        heads  = [Signal(3, name=f"heads{n}") for n in range(LINKS)]  # deposits that were taken
        tails  = [Signal(3, name=f"tails{n}") for n in range(LINKS)]  # payloads that were taken
        past   = [Signal(3, name=f"past{n}") for n in range(LINKS)]   # packets that left
        whole  = Signal(LINKS)
        owed   = Signal()  # a deposit was taken, and not all of its lines
        source = Signal()  # its link
        taken  = Signal()
        line   = Signal()
        self.comb += [
            taken.eq(deposit.valid & deposit.ready),
            line.eq(payload.valid & payload.ready),
        ]
        self.sync += [
            If(line & payload.last, owed.eq(0)),
            If(taken, owed.eq(deposit.length != 0), source.eq(link)),
        ]
        for n in range(LINKS):
            head, lines = block.deposits[n], block.payloads[n]
            self.free_all(f"head{n}", head, omit={"valid", "psn"})
            self.free_all(f"line{n}", lines, omit={"valid"})
            held = Signal(3, name=f"held{n}")
            mine = Signal(name=f"mine{n}")
            self.comb += [
                held.eq(given[n] - past[n]),
                whole[n].eq(held != 0),
                mine.eq(busy & (link == n)),
                block.whole[n].eq(self.free(f"whole{n}") & (held < MOST)),
                head.psn.eq(heads[n]),
                head.valid.eq(whole[n] | self.free(f"head_valid{n}")),
                lines.valid.eq(whole[n] | self.free(f"line_valid{n}")),
            ]
            self.sync += [
                given[n].eq(given[n] + block.whole[n]),
                heads[n].eq(heads[n] + (head.valid & head.ready)),
                past[n].eq(past[n] + block.left[n]),
                If(lines.valid & lines.ready & lines.last, tails[n].eq(tails[n] + 1)),
            ]
            # Each input is taken if and only if the output shows it.
            self.prove(f"head_once{n}", (head.valid & head.ready) == (taken & (link == n)))
            self.prove(f"line_once{n}", (lines.valid & lines.ready) == (line & (link == n)))
            self.prove(f"whole{n}",     implies((deposit.valid | payload.valid) & (link == n), whole[n]))
            self.prove(f"left{n}",      implies(block.left[n], whole[n]))
            # Between packets, as many deposits were taken as packets left.
            self.prove(f"even{n}",      implies(~mine, heads[n] == past[n]))
            self.lemma(f"inside{n}",    implies(mine, (heads[n] - past[n])[:3] == announced))
            self.lemma(f"count{n}",     (counts[n] == held) & (held <= MOST))
            self.lemma(f"mine{n}",      implies(mine, whole[n]))
        # A line belongs to the last deposit that was taken.
        self.prove("own_line", implies(payload.valid, owed & (source == link)))
        self.prove("all_lines", implies(deposit.valid, ~owed))
        # The way never waits for a link: when one has a whole packet, a word is offered.
        offered = Signal()
        ended   = Signal()  # a packet without lines has one cycle behind its deposit
        self.comb += [
            offered.eq(deposit.valid | payload.valid),
            ended.eq(block.left != 0),
        ]
        self.prove("never_waits", implies(busy, offered | ended))
        self.prove("begins", implies(self.before(~busy & (whole != 0)), busy))
        self.lemma("owed",  owed == (busy & announced & ~passed))
        self.lemma("late",  implies(busy & passed, announced))
        self.lemma("owner", implies(owed, source == link))

class Fair(Join):
    """With whole packets at both links, each has its turn."""
    def __init__(self):
        super().__init__()
        for n in range(LINKS):
            other = inner(self.block, "link") != n
            lefts = Signal(2, name=f"lefts{n}")  # packets of the other link while this one waits
            both  = Signal(name=f"both{n}")
            wait  = self.block.deposits[n].valid & (inner(self.block, "count")[n] != 0)
            self.comb += both.eq(wait & other)
            self.sync += If(~both, lefts.eq(0)).Elif(self.block.left[1 - n] & (lefts != 3), lefts.eq(lefts + 1))
            self.prove(f"turn{n}", lefts <= 1)
            self.lemma(f"turn_now{n}", implies((lefts == 1) & both, ~inner(self.block, "busy")))

# Order --------------------------------------------------------------------------------------------

class Moves(Harness):
    """Headers of any sources by both links, and packets that leave at any time. One source is
    watched.
    """
    def __init__(self):
        super().__init__()
        self.block = block = FlowTurns(MOST)
        node   = self.constant("node", len(block.nodes[0]))
        rests, inside = inner(block, "rest"), inner(block, "inside")
        waits, home   = inner(block, "waits"), inner(block, "home")
        held   = [Signal(max=MOST + 2, name=f"held{n}") for n in range(LINKS)]
        # Packets that leave up to the watched source's last one; 0: none of it is there.
        until  = [Signal(max=MOST + 2, name=f"until{n}") for n in range(LINKS)]
        enters = [Signal(name=f"enters{n}") for n in range(LINKS)]
        for n in range(LINKS):
            asks = self.free(f"asks{n}")
            self.comb += [
                block.asks[n].eq(asks),
                block.nodes[n].eq(self.free(f"node{n}", len(node))),
                block.enters[n].eq(block.asks[n] & block.may[n] & self.free(f"enters{n}") & (held[n] < MOST)),
                block.left[n].eq(self.free(f"left{n}") & (held[n] != 0)),
                enters[n].eq(block.enters[n] & (block.nodes[n] == node)),
            ]
            asked = self.before(asks)
            self.assume(f"stays{n}", implies(asks & asked, block.nodes[n] == self.before(block.nodes[n], len(node))))
            self.assume(f"once{n}",  implies(self.before(block.enters[n]), ~asks))
            self.sync += [
                held[n].eq(held[n] + block.enters[n] - block.left[n]),
                If(enters[n],
                    until[n].eq(held[n] + 1 - block.left[n])
                ).Elif(block.left[n] & (until[n] != 0),
                    until[n].eq(until[n] - 1)
                ),
            ]
            self.lemma(f"inside{n}", (inside[n] == held[n]) & (held[n] <= MOST) & (until[n] <= held[n]))
            self.lemma(f"asked{n}",  waits[n] == asked)
        watched = Signal(len(home))
        self.comb += watched.eq(1 << node)
        at_one = (home & watched) != 0
        for n in range(LINKS):
            other = 1 - n
            kept  = self.before(block.nodes[n], len(node))
            self.prove(f"alone{n}", implies(until[n] != 0, until[other] == 0))
            self.prove(f"order{n}", implies(enters[n], (until[other] == 0) & ~enters[other]))
            self.lemma(f"home{n}",  implies(until[n] != 0, at_one == n))
            self.lemma(f"rest{n}",  implies(waits[n] & (kept == node), rests[n] >= until[other]))
            self.lemma(f"rest_held{n}", implies(waits[n], rests[n] <= held[other]))


PROPERTIES = [
    Property("links-split", "packet/split",
        "each packet and line to its link, once; those with a place never wait for the other link",
        f"{PLACES} places", "Split", k=1, quick=True, mutants=[
            Mutant("one place too many", "dibber.packet.split",
                "used[n] != places)", "used[n] != places + 1)", depth=12),
            Mutant("lines take the way of the next packet", "dibber.packet.split",
                "payload.valid & lines_come & (link == n)",
                "payload.valid & lines_come & (packets.link == n)", depth=10),
            Mutant("a packet passes the lines before it", "dibber.packet.split",
                "packets.valid & ~lines_come & (packets.link == n)",
                "packets.valid & (packets.link == n)", depth=10),
            Mutant("a packet without payload waits for lines", "dibber.packet.split",
                "lines_come.eq(packets.length != 0)", "lines_come.eq(1)", depth=10),
            Mutant("a place that is given back is lost", "dibber.packet.split",
                " - self.cancel[n] - self.left[n])", " - self.left[n])", depth=12),
    ]),
    Property("links-join", "packet/join",
        "whole packets with their own lines, once; the way never waits for a link",
        f"{MOST} whole packets", "Join", k=1, quick=True, mutants=[
            Mutant("a packet begins before it is whole", "dibber.packet.join",
                "deposits[n].valid & (count[n] != 0)", "deposits[n].valid", depth=10),
            Mutant("a packet ends with its deposit", "dibber.packet.join",
                "(announced | announces) & (lines_passed | lines_end)", "(announced | announces)",
                depth=12),
            Mutant("a deposit is shown twice", "dibber.packet.join",
                "deposit.valid.eq(deposits[n].valid & ~announced)",
                "deposit.valid.eq(deposits[n].valid)", depth=12),
            Mutant("a packet without lines waits for them", "dibber.packet.join",
                "If(deposit.length == 0, lines_passed.eq(1))", "lines_passed.eq(0)", depth=12),
            Mutant("the link changes inside a packet", "dibber.packet.join",
                "                    announced.eq(1),",
                "                    announced.eq(1), link.eq(~link),", depth=12),
    ]),
    Property("links-fair", "packet/join", "a whole packet waits for one packet of the other link at most",
        f"{MOST} whole packets", "Fair", k=1, mutants=[
            Mutant("link 0 goes first", "dibber.packet.join",
                "If(Mux(link, holds[0], holds[1]), link.eq(~link)),",
                "If(holds != 0, link.eq(~holds[0])),", depth=16),
    ]),
    Property("links-order", "packet/join", "a source has packets in one receiver at a time",
        f"{MOST} packets a receiver", "Moves", k=1, quick=True, mutants=[
            Mutant("the home is not looked at", "dibber.packet.join",
                "(at_one == n) | (waits[n]", "1 | (waits[n]", depth=10),
            Mutant("both receivers judge one source", "dibber.packet.join",
                "If(same, self.may[n].eq(0))", "If(same, [])", depth=10),
            Mutant("a packet that enters meanwhile is not waited for", "dibber.packet.join",
                "If(~waits[n] | (same & self.enters[other]),", "If(~waits[n],", depth=12),
            Mutant("what leaves in the first cycle counts twice", "dibber.packet.join",
                "rest[n].eq(after[other])", "rest[n].eq(after[other] - self.left[other])", depth=14),
    ]),
]
