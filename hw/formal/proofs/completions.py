"""The completion checker: for any input from the host, a reader gets the bytes of its read once, in
order, and no others.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from dibber.host.completions import CompletionChecker

from harness import Harness, Mutant, Property, implies, inner

class Window(Harness):
    """One tag of the solver's choice; any reads, also with a tag in use; any completions, any IDs.

    `owed` counts the bytes that the read of this tag has not got yet, from its request on. Assumed
    is the work of the TLP receiver: the fields of a completion are the same on all its lines, and
    it has as many lines as its bytes fill. A completion with data has at least one byte, and one
    without data has one line.
    """
    tags = 4

    def __init__(self):
        super().__init__()
        self.block = block = CompletionChecker(64, self.tags)
        reads, sink, source = block.reads, block.sink, block.source
        tag  = self.constant("tag", log2_int(self.tags))
        self.free_all("reads", reads, omit=("first", "last"))
        self.free_all("sink", sink, omit=("first",))
        self.comb += [
            block.requests.ready.eq(self.free("ready")),
            block.id.eq(self.free("id", 16)),
        ]
        wiping, wiped = inner(block, "wiping"), inner(block, "wiped")
        self.assume("later",  ~(reads.valid & wiping))
        self.assume("tags",   implies(reads.valid, reads.tag < self.tags))
        self.assume("length", (reads.length >= 1) & (reads.length <= 4096))

        # Lines of a completion at the sink.
        inside = Signal()
        rest   = Signal(11)   # lines behind this one
        lines  = Signal(11)
        same   = Signal()
        kept   = Signal(8 + 3 + 7 + 13)
        fields = Cat(sink.tag, sink.status, sink.lower, sink.bytes)
        data   = (sink.status == 0) & (sink.flaw == 0)
        self.comb += [
            lines.eq(Mux(data, (sink.lower[:3] + sink.bytes + 7)[3:], 1)),
            same.eq(fields == kept),
        ]
        self.sync += If(sink.valid,
            inside.eq(~sink.last),
            If(~inside, kept.eq(fields), rest.eq(lines - 1)).Else(rest.eq(rest - 1)),
        )
        self.assume("bytes",  implies(data, (sink.bytes >= 1) & (sink.bytes <= 4096)))
        self.assume("flawed", implies(sink.flaw != 0, sink.status != 0))
        self.assume("same",   implies(sink.valid & inside, same & (sink.flaw == 0)))
        self.assume("last",   implies(sink.valid, sink.last == Mux(inside, rest == 1, lines == 1)))

        # The window: the bytes that are owed, and their end modulo 128.
        sent  = Signal()
        owed  = Signal(13)
        end   = Signal(7)
        shown = Signal()     # the source's line is of this tag
        first = Signal(reset=1)
        use   = Signal()     # `tag_phase` of the read that was sent last
        begun = Signal()     # `tag_phase` of the completion's first line
        # bytes, by the lines of its completion before this one, those below its first byte included
        given = Signal(14)
        good  = Signal()
        self.comb += [
            sent.eq(reads.valid & reads.ready & (reads.tag == tag)),
            shown.eq(source.valid & (source.tag == tag)),
            good.eq(shown & (source.status == 0)),
        ]
        self.sync += [
            If(source.valid,
                first.eq(source.last),
                given.eq(Mux(source.last, 0, given + 8)),
                If(first, begun.eq(source.tag_phase)),
            ),
            If(sent,
                use.eq(reads.tag_phase),
                owed.eq(reads.length),
                end.eq(reads.address[:7] + reads.length)
            ).Elif(shown & first,
                owed.eq(Mux(source.status == 0, owed - source.bytes, 0))
            ),
        ]
        self.prove("owed",   implies(good & first, (source.count == owed) & (source.bytes >= 1) & (source.bytes <= owed)))
        self.prove("place",  implies(good & first, ((source.lower + owed)[:7] == end)))
        self.prove("ends",   implies(good & first, (source.bytes == owed) | ((source.lower + source.bytes)[:6] == 0)))
        self.prove("lines",  implies(good, (given < source.lower[:3] + source.bytes)
            & (source.last == (given + 8 >= source.lower[:3] + source.bytes))))
        self.prove("fails",  implies(shown & source.failed, (owed != 0) & source.last & (source.status != 0)))

        # The phase says of which read a completion is. It stays, also when the next read is sent
        # while the completion's lines pass.
        self.prove("phase",  implies(shown & first, source.tag_phase == use))
        self.prove("stays",  implies(source.valid & ~first, source.tag_phase == begun))

        # The block's registers hold this window.
        asked, progress, phases = (inner(block, name) for name in ("asked", "progress", "phases"))
        line, head, failed, renewed, next_ = (inner(block, name) for name in ("line", "head", "failed", "renewed", "next_address"))
        passing = inner(block, "passing")
        ports = [memory.get_port(async_read=True) for memory in (asked, progress, phases)]
        self.specials += ports
        self.comb += [port.adr.eq(tag) for port in ports]
        length, lower, phase = (Signal(bits, name=name) for name, bits in (("length", 13), ("lower", 7), ("phase", 1)))
        noted, ahead, lost, stamp = (Signal(bits, name=name) for name, bits in (("noted", 13), ("ahead", 7), ("lost", 1), ("stamp", 1)))
        any_epoch = Signal()
        kept_use  = Signal()
        self.comb += [
            Cat(length, lower, any_epoch, kept_use, phase).eq(ports[0].dat_r),
            Cat(noted, ahead, lost, stamp).eq(ports[1].dat_r),
        ]
        fresh = phase != stamp
        rest_, where, dead = Signal(13), Signal(7), Signal()
        self.comb += [
            rest_.eq(Mux(fresh, length, noted)),
            where.eq(Mux(fresh, lower, ahead)),
            dead.eq(~fresh & lost),
        ]
        mine = line.valid & inner(block, "first") & (line.tag == tag)
        clean = Signal()   # the tag's words have been cleared
        blind = self.before(wiping, reset=1)
        self.comb += clean.eq(~wiping | (wiped > tag))
        self.lemma("phases",  implies(clean, ports[2].dat_r == stamp))
        self.lemma("most",    (owed <= 4096) & implies(clean, rest_ <= 4096))
        self.lemma("window",  owed == Mux(dead | ~clean, 0, rest_))
        self.lemma("wiping",  implies(wiping, (owed == 0) & implies(clean, rest_ == 0)) & implies(wiping, blind))
        self.lemma("where",   implies(clean & (rest_ != 0), (where + rest_)[:7] == end))
        self.lemma("looked",  implies(mine & ~renewed, Mux(blind, inner(block, "owed") == 0,
            (inner(block, "owed") == rest_) & (next_ == where) & (failed == dead) & (inner(block, "phase") == phase))))
        self.lemma("use",     implies(clean & (rest_ != 0), kept_use == use))
        self.lemma("use_of",  implies(mine & ~renewed & (inner(block, "owed") != 0),
            inner(block, "tag_phase") == kept_use))
        self.lemma("held",    implies(~first, inner(block, "tag_phase_held") == begun))
        self.lemma("within",  implies(line.valid & (line.tag >= self.tags), inner(block, "owed") == 0))
        # The stream at the source is that of the sink a cycle later.
        self.lemma("aligned", implies(line.valid, inner(block, "aligned") == ((line.lower + line.bytes)[:6] == 0)))
        data_ = (line.status == 0) & (line.flaw == 0)
        self.lemma("line_bytes",  implies(line.valid & data_, (line.bytes >= 1) & (line.bytes <= 4096)))
        self.lemma("line_flawed", implies(line.valid & (line.flaw != 0), line.status != 0))
        # The first line of the next completion comes when the last one of this has gone by.
        self.lemma("inside", inside == Mux(line.valid, ~line.last, ~inner(block, "first")))
        total = Signal(11)
        self.comb += total.eq((kept[11:14] + kept[18:] + 7)[3:])
        self.lemma("kept",   implies(inside | (line.valid & ~inner(block, "first")), kept[8:11] == 0))
        self.lemma("same",   implies(line.valid, Cat(line.tag, line.status, line.lower, line.bytes) == kept))
        self.lemma("many",   implies(inside, (kept[18:] >= 1) & (kept[18:] <= 4096) & (rest >= 1) & (rest < total)))
        # lines of the completion that the block has in register 1 or has passed on
        position = Signal(11)
        self.comb += position.eq(total - rest)
        going = ~inner(block, "first")
        self.lemma("first",  implies(~first, going & passing))
        self.lemma("going",  implies(going & passing, ~first))
        self.lemma("given",  implies(~first, given == Cat(Constant(0, 3), Mux(line.valid, position - 1, position))))
        self.lemma("start",  implies(first, given == 0))
        self.lemma("end_",   implies(line.valid, (line.last == (rest == 0)) & implies(line.status != 0, line.last & inner(block, "first"))))
        self.lemma("head_",  implies(line.valid & inner(block, "first") & (line.status == 0), rest == total - 1))


CHECKER = "dibber.host.completions"

PROPERTIES = [
    Property("completions-window", "host/completions", "no byte outside what its read still owes, whatever the host sends",
        "64 bits, 4 tags", "Window", k=1, quick=True, mutants=[
            Mutant("more than is owed passes", CHECKER,
                "length_ok.eq(is_complete | (aligned & (line.bytes < owed))),", "length_ok.eq(is_complete | aligned),", depth=11),
            Mutant("the lower address is believed", CHECKER, "address_ok.eq(line.lower == next_address),", "address_ok.eq(1),", depth=11),
            Mutant("what comes right behind is judged by the state before", CHECKER,
                "same_tag.eq(updates & (line.tag == sink.tag)),", "same_tag.eq(0),", depth=13),
            Mutant("a read that failed goes on", CHECKER, "passes.eq(known & ~failed & (agrees | refused)),",
                "passes.eq(known & (agrees | refused)),", depth=13),
            Mutant("a new read takes over the progress of the old one", CHECKER, "known.eq((owed != 0) & ~renewed & ~(sent & (reads.tag == line.tag))),",
                "known.eq(owed != 0),", depth=15),
            Mutant("each completion has phase 0", CHECKER, "tag_phase.eq(asked_tag_phase),",
                "tag_phase.eq(0),", depth=11),
            Mutant("the lines of a completion take on the phase of a new read", CHECKER,
                "source.tag_phase.eq(Mux(first, tag_phase, tag_phase_held))",
                "source.tag_phase.eq(tag_phase)", depth=13),
    ]),
]
