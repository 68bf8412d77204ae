"""The remote window: runs of bytes, places in a region, stores delivered once, barriers that wait."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.interface.description import C
from dibber.window import buffers as buffers_design, loads as loads_design, writer as writer_design
from dibber.window.layouts import BUFFERS, LINE_BYTES, PAGE_BITS

from harness import Harness, Mutant, Property, implies, inner, memory_of


class Runs(Harness):
    """A run is a whole one, the lowest, and what is left is the rest."""
    def __init__(self):
        super().__init__()
        self.run = run = writer_design.FirstRun()
        mask, start, stop = run.mask, run.start, run.stop
        self.comb += mask.eq(self.free("mask", LINE_BYTES))
        ones = Signal(LINE_BYTES + 1)
        self.comb += ones.eq((1 << stop) - (1 << start))
        some = mask != 0
        self.prove("not_empty",   implies(some, (start < stop) & (stop <= LINE_BYTES)))
        self.prove("all_stored",  implies(some, (mask & ones) == ones))
        self.prove("lowest",      implies(some, (mask & ((1 << start) - 1)) == 0))
        self.prove("whole",       implies(some, ((Cat(mask, 0) >> stop) & 1) == 0))
        self.prove("rest",        implies(some, run.left == (mask & ~ones)))


class Place(Harness):
    """Whatever is looked up and asked for, a command's bytes lie in the page's part of the region.

    The endpoint's pages are free: they take a line or not. So are the table, the stream buffers,
    the loads and the completions.
    """
    def __init__(self):
        super().__init__()
        self.writer = writer = writer_design.CommandWriter(128, 7)
        self.free_all("closed", writer.closed)
        self.free_all("load", writer.load)
        self.free_all("ends", writer.ends)
        self.comb += [
            writer.enable.eq(self.free("enable")),
            writer.rung.eq(self.free("rung")),
            writer.renewed.eq(self.free("renewed")),
            writer.counts.eq(self.free("counts", 64)),
            writer.mask.eq(self.free("mask", LINE_BYTES)),
            writer.writes.ready.eq(self.free("ready")),
            writer.found.raw_bits().eq(self.free("found", len(writer.found.raw_bits()))),
        ]
        load = writer.load
        # LoadUnit: a load ends within its line. StreamBuffers: a closed buffer has a byte.
        self.assume("shape", (load.bytes != 0) & (Cat(load.start, 0, 0) + load.bytes <= LINE_BYTES))
        self.assume("stored", implies(writer.closed.valid, writer.mask != 0))

        get = lambda name: inner(writer, name)
        page, offset, length, start, stop, rest, loads = map(
            get, ("page", "offset", "length", "start", "stop", "rest", "loads"))
        state = lambda *names: Reduce("OR", [writer.fsm.ongoing(name) for name in names])
        low, high = Signal(50), Signal(50)
        self.comb += [low.eq(page.offset), high.eq(page.offset + C.APERTURE_PAGE)]
        writes = state("SLOT", "BELL")
        self.prove("not_below",   implies(writes, offset >= low))
        self.prove("not_above",   implies(writes, offset + length <= high))
        self.prove("has_bytes",   implies(writes, (length != 0) & (length <= LINE_BYTES)))
        self.prove("mapped",      implies(writes, page.valid))
        self.prove("may_store",   implies(writes & ~loads, page.store))
        self.prove("may_load",    implies(writes & loads, page.load))
        self.prove("atomic",      implies(writes & loads & page.atomic, (length == 4) | (length == 8)))

        first, count, allowed = map(get, ("first", "count", "allowed"))
        line = get("line")
        self.lemma("count",   implies(loads, (count != 0) & (Cat(first, 0, 0) + count <= LINE_BYTES)))
        self.lemma("stored",  implies(state("RUN"), rest != 0) & implies(state("LOOK", "CHECK") & ~loads, rest != 0))
        self.lemma("run",     implies(state("PLACE", "SLOT", "BELL"), (start < stop) & (stop <= LINE_BYTES)))
        self.lemma("checked", implies(state("RUN", "PLACE", "SLOT", "BELL"), page.valid & allowed))
        self.lemma("of_load", implies(state("PLACE", "SLOT", "BELL") & loads, (start == first) & (stop == first + count)
            & (~page.atomic | (count == 4) | (count == 8))))
        self.lemma("length",  implies(writes, length == stop - start))
        self.lemma("offset",  implies(writes, offset == page.offset + Cat(start, line[:PAGE_BITS - 6])))


class Once(Harness):
    """Any store that the solver marks is in the buffer that leaves, with its bytes, unless a later
    store to the same byte has replaced it before; and nothing else is marked as stored.

    Two buffers are enough: a buffer never reads the other ones but for their addresses.
    """
    count = 2

    def __init__(self):
        super().__init__()
        self.block = block = buffers_design.StreamBuffers(64, buffers=self.count)
        self.free_all("sink", block.sink)
        self.comb += [
            block.hold.eq(self.free("hold", 8)),
            block.close.eq(self.free("close")),
            block.source.ready.eq(self.free("ready") & block.source.valid),
        ]
        sink, source = block.sink, block.source
        collects = inner(block, "collects")
        closed   = inner(block, "closed")
        lines    = inner(block, "lines")
        place    = inner(block, "place")
        hit      = inner(block, "hit")

        # One byte of one line, chosen by the solver.
        line = self.constant("line", len(sink.adr) - 3)
        byte = self.constant("byte", 6)
        here, value = Signal(), Signal(8)
        self.comb += [
            here.eq(sink.valid & sink.ready & (sink.adr == Cat(byte[3:], line)) & ((sink.be >> byte[:3]) & 1)),
            value.eq(sink.dat >> Cat(Constant(0, 3), byte[:3])),
            block.at.eq(byte[3:]),
        ]

        # What each buffer has of it, and which buffer began before.
        has  = [Signal(name=f"has{n}") for n in range(self.count)]
        data = [Signal(8, name=f"data{n}") for n in range(self.count)]
        for n in range(self.count):
            self.sync += [
                If(sink.valid & sink.ready & ~hit & (place == n), has[n].eq(0)),
                If(here & (place == n), has[n].eq(1), data[n].eq(value)),
            ]
        mine   = Signal()
        leaves = Signal()
        self.comb += [
            leaves.eq(source.valid & source.ready),
            mine.eq(source.line == line),
        ]
        shown = Signal(8)
        self.comb += shown.eq(block.dat >> Cat(Constant(0, 3), byte[:3]))
        marked = Signal()
        self.comb += marked.eq((block.mask >> byte) & 1)
        for n in range(self.count):
            one = leaves & (source.buffer == n) & mine
            self.prove(f"kept{n}",  implies(one, marked == has[n]))
            self.prove(f"value{n}", implies(one & has[n], shown == data[n]))
            # What leaves has closed, so no store comes behind it into the same buffer.
            self.prove(f"order{n}", implies(leaves & (source.buffer == n), closed[n] & ~collects[n]))
        # A store goes to one buffer, which collects from then on.
        self.prove("taken", implies(sink.valid & sink.ready, Array(collects)[place] | ~Array(block.used)[place]))
        self.prove("freed", implies(leaves, block.freed == (1 << source.buffer)))

        # Lemmas: the memories, the order, and no line twice among those that collect.
        masks = memory_of(block, "window_masks")
        bytes_ = memory_of(block, "window_bytes")
        order = block.order
        for n in range(self.count):
            mask, dat = masks.get_port(async_read=True), bytes_.get_port(async_read=True)
            self.specials += mask, dat
            self.comb += [mask.adr.eq(n), dat.adr.eq(Cat(byte[3:], Constant(n, 1)))]
            about = block.used[n] & (lines[n] == line)
            self.lemma(f"mask{n}", implies(about, ((mask.dat_r >> byte) & 1) == has[n]))
            self.lemma(f"data{n}", implies(about & has[n], (dat.dat_r >> Cat(Constant(0, 3), byte[:3]))[:8] == data[n]))
            self.lemma(f"state{n}", ~(collects[n] & closed[n]))
        self.lemma("distinct", ~(collects[0] & collects[1] & (lines[0] == lines[1])))
        core    = order.fifo
        level   = order.level
        store   = inner(core, "storage")
        consume = inner(core, "consume")
        heads   = [store.get_port(async_read=True) for _ in range(2)]
        self.specials += heads
        self.comb += [head.adr.eq(consume + k) for k, head in enumerate(heads)]
        self.lemma("level", level == closed[0] + closed[1])
        self.lemma("first", implies(level != 0, Array(closed)[heads[0].dat_r]))
        self.lemma("second", implies(level == 2, heads[0].dat_r[0] != heads[1].dat_r[0]))
        self.lemma("produce", inner(core, "produce") == (consume + level)[:1])


class Barrier(Harness):
    """A barrier that is answered with a sequence has waited for any store that came before it.

    The rest of the window is free, but for what StoreQueue, StreamBuffers and CommandWriter do to
    the store that the solver marks: it leaves the queue in its turn for a buffer that was free, or
    for the buffer in use that has its line; it becomes commands before its buffer is freed; or it
    is dropped.
    """
    def __init__(self):
        super().__init__()
        self.loads = unit = loads_design.LoadUnit(64)
        self.free_all("sink", unit.sink)
        moved, level = self.free("moved"), Signal(10)
        comes  = self.free("comes")
        freed  = self.free("freed", BUFFERS)
        ended  = self.free("ended", C.SLOTS)
        opens  = self.free("opens", BUFFERS)
        takes  = self.free("takes", C.SLOTS)
        used   = Signal(BUFFERS)
        slots  = Signal(C.SLOTS)
        self.assume("moved", implies(moved, level != 0))
        self.assume("freed", (freed & ~used) == 0)
        self.assume("opens", (opens & used) == 0)
        self.assume("ended", (ended & ~slots) == 0)
        self.assume("takes", (takes & slots) == 0)
        self.assume("room",  implies(comes, level < 600))
        self.sync += [
            level.eq(level + comes - moved),
            used.eq((used | opens) & ~freed),
            slots.eq((slots | takes) & ~ended),
        ]
        for name in "replies.ready off refused sent is_atomic load.ready".split():
            target = unit
            for part in name.split("."):
                target = getattr(target, part)
            self.comb += target.eq(self.free(name.replace(".", "_")))
        for name in ("now", "limit", "slot", "scratch", "sequence"):
            self.comb += getattr(unit, name).eq(self.free(name, len(getattr(unit, name))))
        self.comb += [
            unit.loaded.raw_bits().eq(self.free("loaded", len(unit.loaded.raw_bits()))),
            unit.queued.eq(level),
            unit.moved.eq(moved),
            unit.buffers.eq(used),
            unit.freed.eq(freed),
            unit.slots.eq(slots),
            unit.ended.eq(ended),
        ]

        # The marked store: where it is.
        none, queued, buffered, commanded, done = range(5)
        at      = Signal(3)
        ahead   = Signal(10)             # in the queue: lines before it
        buffer  = self.constant("buffer", 3)
        slot    = self.constant("slot", 5)
        marks   = self.free("marks")
        drops   = self.free("drops")
        leaves  = (at == queued) & moved & (ahead == 0)
        self.sync += [
            If((at == none) & comes & marks,
                at.eq(queued),
                ahead.eq(level - moved),
            ),
            If((at == queued) & moved,
                ahead.eq(ahead - 1),
                If(ahead == 0, at.eq(Mux(drops, done, buffered))),
            ),
            If((at == buffered) & (freed >> buffer)[0], at.eq(Mux(drops, done, commanded))),
            If((at == commanded) & (ended >> slot)[0], at.eq(done)),
        ]
        self.assume("into_buffer", implies(leaves & ~drops, ((used | opens) & ~freed) >> buffer))
        # Its command's slot is taken when its buffer is freed, or before, and the command has not
        # ended.
        self.assume("into_slot", implies((at == buffered) & (freed >> buffer)[0] & ~drops,
            ((slots | takes) & ~ended) >> slot))

        # The barrier is read after the store came.
        idle   = unit.fsm.ongoing("IDLE")
        behind = Signal()
        self.sync += If(idle & unit.sink.valid, behind.eq(at != none))
        get = lambda name: inner(unit, name)
        control, ones, nothing, wrong, request = map(get, ("control", "ones", "nothing", "wrong", "request"))
        asks = behind & control & ~request.offset[0] & ~nothing & ~wrong & ~ones
        self.prove("never_early", implies(unit.replies.valid & asks, at == done))

        state = unit.fsm.ongoing
        waiting, under_way, barrier, before = map(get, ("waiting", "under_way", "barrier", "ahead"))
        is_queued, is_buffered, is_commanded = at == queued, at == buffered, at == commanded
        self.lemma("place",    implies(is_queued, ahead < level) & (at <= done))
        self.lemma("buffer",   implies(is_buffered, used >> buffer))
        self.lemma("slot",     implies(is_commanded, slots >> slot))
        self.lemma("came",     implies(~idle & behind, at != none))
        self.lemma("kind",     implies(~idle & ~state("SHAPE") & ~state("ANSWER"), barrier == control))
        self.lemma("queue",    implies(state("QUEUE") & behind & is_queued, ahead < before))
        self.lemma("buffers",  implies(state("BUFFERS") & behind, ~is_queued & implies(is_buffered, waiting >> buffer)))
        self.lemma("commands", implies(state("COMMANDS") & behind, ~is_queued & ~is_buffered
            & implies(is_commanded, under_way >> slot)))
        self.lemma("tell",     implies(state("TELL") & behind & ~request.offset[0], at == done))
        self.lemma("answer",   implies(state("ANSWER") & asks, at == done))
        self.lemma("load",     implies(state("LOAD") | state("SENT") | state("VALUE"), ~control))


WRITER, LOADS, BUFFERS_FILE = "dibber.window.writer", "dibber.window.loads", "dibber.window.buffers"

PROPERTIES = [
    Property("window-runs", "window/writer", "a run is whole and lowest, the rest is left", "64 bytes", "Runs",
        k=1, quick=True, mutants=[
            Mutant("a run ends a byte late", WRITER, "ends.bits.eq(Cat(0, *", "ends.bits.eq(Cat(0, 0, *", depth=2),
            Mutant("a run is sent again", WRITER, "stop <= n for", "start <= n for", depth=2),
    ]),
    Property("window-place", "window/writer", "no byte lies outside the page's part of its region", "64 KiB, 128 bits",
        "Place", k=2, mutants=[
            Mutant("the last byte twice", WRITER, "NextValue(length, stop - start)", "NextValue(length, stop - start + 1)",
                depth=12),
            Mutant("stores need no right", WRITER, "Mux(loads, page.load, page.store)", "Mux(loads, page.load, 1)", depth=12),
            Mutant("the region's end may wrap", WRITER, " & ~beyond", "", depth=12),
            Mutant("an atomic of any size", WRITER, "page.atomic & ~operand)", "page.atomic & ~operand & 0)", depth=12),
    ]),
    Property("window-once", "window/buffers", "each stored byte leaves once, with its last value", "2 buffers × 64 bytes",
        "Once", k=2, mutants=[
            Mutant("old bytes stay marked", BUFFERS_FILE, "Mux(hit, mask_was.dat_r, 0)", "mask_was.dat_r", depth=14),
            Mutant("a closed buffer takes stores", BUFFERS_FILE, "one.eq(collects[n] & (lines[n] == line))",
                "one.eq(used[n] & (lines[n] == line))", depth=14),
            Mutant("bytes without enable", BUFFERS_FILE, "Mux(stores, sink.be, 0)", "Mux(stores, 2**width - 1, 0)",
                depth=14),
    ]),
    Property("window-barrier", "window/loads", "a barrier never returns before a store that came before it",
        "600 lines, 8 buffers, 32 slots", "Barrier", k=2, mutants=[
            Mutant("the queue is not waited for", LOADS, ").Elif(ahead == 0,", ").Elif(1,", depth=12),
            Mutant("a line too few", LOADS, "NextValue(ahead, queued - moved)", "NextValue(ahead, queued - moved - 1)", depth=14),
            Mutant("buffers are not waited for", LOADS, ").Elif(waiting == 0,", ").Elif(1,", depth=12),
            Mutant("commands are not waited for", LOADS, ").Elif(under_way == 0,", ").Elif(1,", depth=12),
    ]),
]
