"""The port over Ethernet: no gap inside a packet, no more than the credit, no wait for others."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from dibber.interface.ethernet import ETHERNET_KIND
from dibber.interface.description import C
from dibber.link.ethernet.buffer import ChannelReceiver, CommitFIFO, PacketReader
from dibber.link.ethernet.departure import PacketMerge
from dibber.link.ethernet.frames import BROADCAST, FRAME_TYPE
from dibber.link.ethernet.port import BUFFER_UNITS
from dibber.link.ethernet.receiver import FrameParser
from dibber.link.ethernet.sender import Credit

from harness import Harness, Mutant, Property, implies, inner, memory_of

DEPTH  = max(BUFFER_UNITS)
BUFFER = "dibber.link.ethernet.buffer"

# One Channel --------------------------------------------------------------------------------------

class Channel(Harness):
    """ChannelReceiver with fragments of any position and length, in any order, good or not.

    The data of each unit is its position. So a unit's place in the channel can be told from what is
    written.
    """
    depth = DEPTH
    whole = False  # packets come out whole, or not at all

    def __init__(self):
        super().__init__()
        self.dut = dut = ChannelReceiver(self.depth, self.whole)
        self.free_all("fragment", dut.fragment, omit=("first", "last", "valid"))
        self.comb += [
            dut.clear.eq(self.free("clear")),
            dut.start.eq(self.free("start")),
            dut.position.eq(self.free("position", 16)),
            dut.unit.eq(self.free("unit")),
            dut.end.eq(self.free("end")),
            dut.good.eq(self.free("good")),
            dut.told.eq(self.free("told")),
            dut.source.ready.eq(self.free("ready")),
        ]
        # FrameParser: the next header comes cycles after the end, and a unit after its header.
        self.assume("apart", ~(dut.start & dut.end) & ~(dut.unit & dut.end) & ~(dut.unit & dut.start))
        self.assume("units", dut.fragment.units != 0)
        # It comes a cycle after the end of a STATUS frame.
        self.assume("told", ~(dut.told & (dut.start | dut.unit | dut.end)))

        self.place = place = Signal(16)  # of the next unit
        self.sync += If(dut.start, place.eq(dut.position)).Elif(dut.unit, place.eq(place + 1))
        self.comb += dut.data.eq(place)
        self.expected = inner(dut, "expected")
        self.active   = inner(dut, "active")
        self.behind   = inner(dut, "behind")
        self.keeps    = inner(dut, "keeps")
        self.left     = inner(dut, "left")
        self.failed   = inner(dut, "failed")
        self.written, self.committed, self.consumed = [
            inner(dut.fifo, name) for name in ("written", "committed", "consumed")]
        self.skips   = inner(dut, "skips")
        self.kept    = inner(dut.fifo, "kept") if self.whole else self.committed
        self.used    = inner(dut.fifo, "used")
        self.pending = Signal(len(self.written))  # written, neither kept nor committed
        self.comb += self.pending.eq(self.written - self.kept)
        self.lemma("room", (self.used <= self.depth) & (dut.fifo.held <= self.used) &
            (dut.fifo.level <= dut.fifo.held) & (self.pending <= self.used))
        # What the fragment brought stays; and a begun packet is forgotten.
        self.stays  = dut.fifo.commit | (dut.fifo.keep if self.whole else 0)
        self.forget = dut.fifo.forget if self.whole else Constant(0)


class Joined(Channel):
    """What is written follows what was committed, with no gap inside a packet."""
    def __init__(self):
        super().__init__()
        dut, fifo, place = self.dut, self.dut.fifo, self.place
        entry = fifo.sink
        puts  = Signal()
        self.comb += puts.eq(entry.valid & entry.ready)

        # What the packet's next unit must be: after the last one written, and after the last one
        # that was committed.
        follows,  open_  = Signal(16), Signal()
        followed, opened = Signal(16), Signal()
        count  = Signal(12)  # units of this fragment that were written
        units  = Signal(12)  # that it has
        ends   = Signal()
        bad    = Signal()
        taken_to = Signal(16)  # position behind the last fragment that was taken
        ahead = Signal(16)  # of the fragment's first unit
        begin = Signal(16)
        self.sync += [
            If(puts, follows.eq(place + 1), open_.eq(~entry.last), count.eq(count + 1)),
            If(fifo.commit,
                followed.eq(follows), opened.eq(open_)
            ).Elif(self.forget,
                follows.eq(followed), open_.eq(0), opened.eq(0)
            ).Elif(self.stays,
                followed.eq(follows), opened.eq(open_)
            ).Elif(fifo.rollback,
                follows.eq(followed), open_.eq(opened)
            ),
            If(dut.start, count.eq(0), units.eq(dut.fragment.units), ends.eq(dut.fragment.ends),
                bad.eq(dut.fragment.bad)),
            If(dut.taken, taken_to.eq(begin + units)),
            If(self.skips, taken_to.eq(dut.position)),
            If(dut.clear, taken_to.eq(0)),
        ]
        self.sync += If(dut.start, begin.eq(dut.position))
        self.comb += ahead.eq(begin - taken_to)
        self.prove("no_gap",      implies(puts & ~entry.first, open_ & (place == follows)))
        self.prove("not_twice",   implies(puts, ~ahead[15]))
        self.prove("whole",       implies(self.stays, (count == units) & dut.end & dut.good))
        if self.whole:
            self.prove("whole_packet", implies(fifo.commit, ~open_))
        self.prove("ends_as_sent", implies(puts & entry.last, ends & (count + 1 == units) & (entry.bad == bad)))
        self.prove("end_is_kept", implies(puts & (count + 1 == units) & ends, entry.last))
        self.prove("bad_leaves_no_trace", implies(dut.end & ~dut.good, ~self.stays))
        self.prove("nothing_else", implies(self.stays, self.active & self.keeps & ~self.failed))

        begun, starts = inner(dut, "begun"), inner(dut, "starts")
        at_first = inner(dut, "at_first")
        self.lemma("taken", self.expected == taken_to)
        self.lemma("begun", implies(begun, opened & (followed == self.expected)))
        came, behind, end = Signal(12), Signal(16), Signal(16)
        self.comb += [came.eq(units - self.left), behind.eq(begin + came), end.eq(begin + units)]
        self.lemma("fragment", implies(self.active, (self.left <= units) & (units != 0) &
            (at_first == (self.left == units)) & (inner(dut, "ends") == ends) & (inner(dut, "bad") == bad) &
            (self.behind == end) & implies(self.left != 0, place == behind)))
        self.lemma("storing", implies(self.active & self.keeps & ~self.failed,
            (count == came) & ~ahead[15] & (inner(dut, "is_late") == 0)))
        self.lemma("first", implies(self.active & self.keeps & at_first,
            (follows == followed) & (open_ == opened) & (starts | (begun & (begin == followed)))))
        self.lemma("later", implies(self.active & self.keeps & ~self.failed & ~at_first,
            (follows == behind) & (open_ == ~(ends & (self.left == 0)))))
        self.lemma("idle", implies(~self.active, (follows == followed) & (open_ == opened) & (self.pending == 0)))
        self.lemma("none_yet", implies(self.active & at_first, self.pending == 0))


class Obeyed(Channel):
    """If no fragment ends behind the credit that was given, each finds room."""
    def __init__(self):
        super().__init__()
        dut, fifo = self.dut, self.dut.fifo
        last  = Signal(16)  # position behind the fragment that comes
        spare = Signal(16)  # units of credit behind it
        units = Signal(12)
        self.comb += [
            last.eq(dut.position + dut.fragment.units),
            spare.eq(dut.credit - last),
        ]
        # By less than 2¹⁴, so a position is not taken for one of the next 2¹⁶.
        self.assume("obeyed", implies(dut.start, spare[14:] == 0))
        self.assume("short",  implies(dut.start, dut.fragment.units <= self.depth))
        self.sync += If(dut.start, units.eq(dut.fragment.units))
        self.prove("finds_room", implies(fifo.sink.valid, fifo.sink.ready))
        self.prove("no_room_never", ~dut.no_room, now=True)
        open_credit = Signal(16)  # credit that is not used
        needed      = Signal(16)  # by the fragment, from the expected position on
        self.comb += [
            open_credit.eq(dut.credit - self.expected),
            needed.eq(self.behind - self.expected),
        ]
        # The told position is that of a sender which obeys.
        self.assume("obeyed_told", implies(self.skips, inner(dut, "ahead") <= open_credit))
        promised = Signal(17)  # units that may come and that are here
        self.comb += promised.eq(open_credit + fifo.held)
        self.lemma("credit", promised <= self.depth)
        self.lemma("never_failed", implies(self.active, ~self.failed))
        came = Signal(12)
        self.comb += came.eq(units - self.left)
        self.lemma("fragment", implies(self.active & ~inner(dut, "is_late"),
            (self.left <= units) & (units <= needed) & (needed <= open_credit)))
        self.lemma("storing", implies(self.active & self.keeps,
            (self.pending == came) & ~inner(dut, "is_late")))
        self.lemma("idle", implies(~self.active | ~self.keeps, self.pending == 0))

# FIFO ---------------------------------------------------------------------------------------------

class Stored(Harness):
    """CommitFIFO: what was committed comes out, once, in order and unchanged; nothing else does."""
    depth = DEPTH
    keeps = False

    def __init__(self):
        super().__init__()
        self.dut = dut = CommitFIFO(self.depth, self.keeps)
        sink, source = dut.sink, dut.source
        self.free_all("sink", sink)
        self.comb += [
            dut.commit.eq(self.free("commit")),
            dut.rollback.eq(self.free("rollback")),
            source.ready.eq(self.free("ready")),
        ]
        # ChannelReceiver commits when no unit comes.
        self.assume("apart", ~(dut.commit & sink.valid))
        keep = forget = Constant(0)
        if self.keeps:
            self.comb += [dut.keep.eq(self.free("keep")), dut.forget.eq(self.free("forget"))]
            self.assume("keeps_apart", ~(dut.keep & sink.valid))
            keep, forget = dut.keep, dut.forget
        written, committed, consumed = [
            inner(dut, name) for name in ("written", "committed", "consumed")]
        used = inner(dut, "used")
        bits = len(written)
        puts = sink.valid & sink.ready
        gets = source.valid & source.ready

        # Entries that went in, less those that were taken back, and entries that came out.
        # With `keeps`, `safe` is what a rollback does not take back.
        number, sure, out = Signal(bits), Signal(bits), Signal(bits)
        safe = Signal(bits) if self.keeps else sure
        self.sync += [
            If(puts, number.eq(number + 1)),
            If(dut.commit,
                sure.eq(number), *([safe.eq(number)] if self.keeps else [])
            ).Elif(forget,
                number.eq(sure), *([safe.eq(sure)] if self.keeps else [])
            ).Elif(keep,
                safe.eq(number)
            ).Elif(dut.rollback,
                number.eq(safe)
            ),
            If(gets, out.eq(out + 1)),
        ]
        waiting = Signal(bits)
        self.comb += waiting.eq(sure - out)
        self.prove("committed", implies(source.valid, waiting != 0))
        self.prove("shown",     dut.waits == (waiting != 0))

        # The solver marks an entry. It is known by its number.
        fields = lambda end: Cat(end.data, end.half, end.bad, end.first, end.last)
        mark, marked, value, place = self.free("mark"), Signal(), Signal(68), Signal(bits)
        back = Signal()  # a rollback takes it back
        dist = Signal(bits)
        store = memory_of(dut, "storage")
        look  = store.get_port(async_read=True)
        self.specials += look
        self.comb += [
            dist.eq(place - consumed),
            back.eq(~dut.commit & (dist < used) &
                Mux(forget, dist >= dut.level, dut.rollback & ~keep & (dist >= dut.held))),
            look.adr.eq(place),
        ]
        self.sync += [
            If(~marked & puts & mark & ~dut.rollback & ~forget,
                marked.eq(1), value.eq(fields(sink)), place.eq(number)
            ).Elif(back | (gets & (out == place)),
                marked.eq(0)
            ),
        ]
        self.prove("in_order", implies(marked & source.valid & (out == place), fields(source) == value))
        self.lemma("level", (dut.level <= dut.held) & (dut.held <= used) & (used <= self.depth) &
            (waiting == dut.level + source.valid))
        if self.keeps:
            self.lemma("kept", safe == inner(dut, "kept"))
        self.lemma("numbers", (number == written) & (sure == committed) &
            (out == (consumed - source.valid)[:bits]))
        self.lemma("place", implies(marked, ((dist < used) & (look.dat_r == value)) |
            (source.valid & (out == place) & (fields(source) == value))))


class Read(Harness):
    """PacketReader: each word once and in order; a packet ends as good only as it was sent."""
    def __init__(self):
        super().__init__()
        self.dut = dut = PacketReader()
        sink, source = dut.sink, dut.source
        self.free_all("sink", sink, omit=("data",))
        self.comb += [
            dut.up.eq(self.free("up")),
            dut.waits.eq(self.free("waits")),
            source.ready.eq(self.free("ready")),
        ]
        # The words are numbered, in `sink.data`.
        number, out = Signal(16), Signal(16)
        high   = inner(dut, "high")
        self.comb += sink.data.eq(Cat(Mux(high, number - 1, number)[:16], Constant(0, 16), (Mux(high, number - 1, number) + 1)[:16]))
        takes  = inner(dut, "takes")
        shown  = self.before(Cat(source.valid & ~source.ready, source.data[:16], source.first, source.last, source.bad), 20)
        # CommitFIFO: an offer stands, and `waits` is 1 with it.
        stood  = self.before(sink.valid & ~sink.ready)
        self.assume("stands", implies(stood, sink.valid))
        for name in ("first", "last", "half", "bad"):
            value = getattr(sink, name)
            self.assume(f"stands_{name}", implies(stood, value == self.before(value)))
        self.assume("waits", implies(sink.valid, dut.waits))
        # ChannelReceiver: a packet's first entry comes after a last one, or cuts off a packet.
        open_in = Signal()
        done    = sink.valid & sink.ready
        self.sync += If(done, open_in.eq(~sink.last)).Elif(~dut.up & ~dut.waits, open_in.eq(0))
        self.assume("framed", implies(sink.valid & ~open_in, sink.first))
        self.assume("half",   implies(sink.half, sink.last))
        open_out = Signal()
        gets     = source.valid & source.ready
        self.sync += [
            If(takes, number.eq(number + 1)),
            If(gets, out.eq(out + 1), open_out.eq(~source.last)),
        ]
        holds, held = inner(dut, "holds"), inner(dut, "held")
        held_first, held_last, held_bad = [inner(dut, f"held_{name}") for name in ("first", "last", "bad")]
        self.prove("each_word_once", implies(source.valid, source.data[:16] == out))
        self.prove("framed",  implies(source.valid, source.first == ~open_out))
        self.prove("stands",  implies(shown[0], source.valid & (Cat(source.data[:16], source.first, source.last, source.bad) == shown[1:])))
        # The last word that went into the output register, and how its entry had it.
        was_last, was_bad = Signal(), Signal()
        self.sync += If(inner(dut, "goes"), was_last.eq(held_last), was_bad.eq(held_bad))
        self.prove("good_as_sent", implies(source.valid & source.last & ~source.bad, was_last & ~was_bad))
        self.prove("end_is_kept",  implies(source.valid & was_last, source.last))
        self.lemma("numbers", number == (out + source.valid + holds)[:16])
        self.lemma("held",    implies(holds, held[:16] == (out + source.valid)[:16]))
        self.lemma("order",   implies(holds, held_first == ~Mux(source.valid, ~source.last, open_out)))
        self.lemma("open",    implies(~holds, ~Mux(source.valid, ~source.last, open_out)))
        self.lemma("in",      implies(open_in & ~high, holds & ~held_last))
        self.lemma("high",    implies(high, holds & ~held_last & sink.valid & stood & ~sink.half))

# Merge --------------------------------------------------------------------------------------------

class Merged(Harness):
    """PacketMerge: packets do not mix, each entry goes on from its own source, all get a turn."""
    count = 3

    def __init__(self):
        super().__init__()
        self.dut = dut = PacketMerge(self.count)
        source = dut.source
        self.comb += source.ready.eq(self.free("ready"))
        opens = [Signal(name=f"open{n}") for n in range(self.count)]
        for n, (sink, begun) in enumerate(zip(dut.sinks, opens)):
            # The entries of a source carry its number.
            self.free_all(f"sink{n}", sink, omit=("data",))
            self.comb += sink.data.eq(n)
            self.assume(f"framed{n}", implies(sink.valid, sink.first == ~begun))
            stood = self.before(sink.valid & ~sink.ready)
            self.assume(f"stands{n}", implies(stood, sink.valid &
                (sink.last == self.before(sink.last)) & (sink.first == self.before(sink.first))))
            self.sync += If(sink.valid & sink.ready, begun.eq(~sink.last))
        gets  = source.valid & source.ready
        open_, owner = Signal(), Signal(max=self.count)
        self.sync += If(gets, open_.eq(~source.last), owner.eq(source.data))
        shown = self.before(Cat(source.valid & ~source.ready, source.data[:2], source.first, source.last), 5)
        self.prove("unmixed", implies(open_ & source.valid, ~source.first & (source.data == owner)))
        self.prove("framed",  implies(source.valid, source.first == ~open_))
        self.prove("stands",  implies(shown[0], source.valid &
            (Cat(source.data[:2], source.first, source.last) == shown[1:])))
        taken = Signal(3)
        self.comb += taken.eq(sum(sink.valid & sink.ready for sink in dut.sinks))
        self.prove("one_of_them", taken == gets)
        # Packets that ended since source 0 began to wait.
        waited = Signal(3)
        self.sync += If(~dut.sinks[0].valid | dut.sinks[0].ready,
            waited.eq(0)
        ).Elif(gets & source.last & (waited != 7),
            waited.eq(waited + 1)
        )
        self.prove("has_its_turn", waited < self.count)

        begun, behind = inner(dut, "begun"), inner(dut, "behind")
        one_hot = [1 << n for n in range(self.count)]
        known   = begun == 0
        for n, bit in enumerate(one_hot):
            known = known | ((begun == bit) & (dut.sinks[n].valid | opens[n]))
        self.lemma("begun", known)
        self.lemma("open", open_ == (Cat(*opens) != 0))
        self.lemma("owner", implies(open_, (Cat(*opens) == (1 << owner)) & (begun == (1 << owner))))
        self.lemma("behind", (behind == 0) | (behind == 0b110) | (behind == 0b100))
        # Packets that may go before one of source 0.
        before_it, total = Signal(2), Signal(4)
        self.comb += [
            before_it.eq(Mux(begun == 0b001, 0, Mux(begun == 0b010, 2, Mux(begun == 0b100, 1,
                Mux(behind == 0b110, 2, Mux(behind == 0b100, 1, 0)))))),
            total.eq(waited + before_it),
        ]
        self.lemma("turns", total < self.count)

# Parser -------------------------------------------------------------------------------------------

class Parsed(Harness):
    """FrameParser against the bytes of the words, whatever frames came before."""
    def __init__(self):
        super().__init__()
        self.dut = dut = FrameParser()
        sink = dut.sink
        self.free_all("sink", sink, omit=("first",))
        mac = self.constant("mac", 48)
        self.comb += dut.mac.eq(mac)
        self.assume("bytes", implies(sink.valid, Mux(sink.last, (sink.bytes != 0) & (sink.bytes <= 8), sink.bytes == 8)))

        count = Signal(2)          # words of this frame before this one, up to 3
        words = [Signal(64), Signal(64)]
        self.sync += If(sink.valid,
            If(sink.last, count.eq(0)).Elif(count != 3, count.eq(count + 1)),
            *[If(count == n, word.eq(sink.data)) for n, word in enumerate(words)],
        )
        target, kind, units = Signal(48), Signal(3), Signal(12)
        type_, control = Signal(16), Signal(8)
        right, ours = Signal(), Signal()
        self.comb += [
            target.eq(words[0][:48]),
            type_.eq(words[1][32:48]),
            control.eq(words[1][48:56]),
            kind.eq(control[5:]),
            units.eq(sink.data[:12]),
            ours.eq(((target == mac) | (target == BROADCAST)) & (type_ == FRAME_TYPE)),
            right.eq(Mux(kind == ETHERNET_KIND.DATA,
                (units != 0) & (control[3] | (~control[4] & ~sink.data[12])),
                (kind == ETHERNET_KIND.STATUS) & (units == 2))),
        ]
        comes = self.before(sink.valid & (count == 2) & ~sink.last & ours & right)
        self.prove("never_waits", sink.ready)
        self.prove("each_of_ours_and_no_other", dut.start == self.before(comes))
        # Everything else that the parser says is between `start` and the end of the same frame.
        begun = Signal()
        self.sync += If(dut.start, begun.eq(1)).Elif(dut.end, begun.eq(0))
        self.prove("units_of_ours", implies(dut.unit, begun))
        self.prove("ends_of_ours",  implies(dut.end, begun))
        self.prove("one_verdict",   implies(dut.foreign, ~dut.bad))

        index, begun_in, ended = [inner(dut, name) for name in ("index", "begun", "ended")]
        unit  = dut.aligner.source
        # The index of the unit in the register is the number of its word.
        before_ = self.before(count, 2)
        valid   = self.before(sink.valid)
        self.lemma("valid", unit.valid == valid)
        self.lemma("last",  implies(valid, unit.last == self.before(sink.last)))
        self.lemma("index", index == Mux(valid, before_, count))
        self.lemma("begun", implies(begun_in, begun) & implies(begun & ~begun_in, dut.end))
        to_us, to_all, ours_in = [inner(dut, name) for name in ("to_us", "to_all", "ours")]
        data1 = self.before(sink.data, 64)
        at = lambda n: valid & (before_ == n)
        self.lemma("unit0", implies(at(0), unit.data[16:] == data1[:48]))
        self.lemma("unit1", implies(at(1), unit.data[48:] == data1[32:48]))
        self.lemma("unit2", implies(at(2), (unit.data[:16] == words[1][48:]) & (unit.data[16:] == data1[:48])))
        self.lemma("target", implies(index == 1, (to_us == (words[0][:48] == mac)) & (to_all == (words[0][:48] == BROADCAST))))
        self.lemma("ours",   implies(index == 2, ours_in == ours))
        kept = inner(dut.aligner, "kept")
        self.lemma("kept1", implies(~valid & (count == 1), kept == words[0][48:]))
        self.lemma("kept2", implies(~valid & (count == 2), kept == words[1][48:]))

# Credit -------------------------------------------------------------------------------------------

class Limited(Harness):
    """Credit: what was sent never passes the credit, whatever credits come."""
    def __init__(self):
        super().__init__()
        self.dut = dut = Credit()
        self.comb += [
            dut.clear.eq(self.free("clear")),
            dut.came.eq(self.free("came")),
            dut.offered.eq(self.free("offered", 16)),
            dut.sends.eq(self.free("sends")),
            dut.units.eq(self.free("units", 12)),
        ]
        # FrameTransmitter: a frame has at least four units, and `units` is that of the fragment
        # that waited in the cycle before.
        sent  = self.before(dut.sends)
        units = self.before(dut.units, 12)
        self.assume("obeys", implies(dut.sends, dut.allowed & ~sent & (units == dut.units)))
        self.assume("up",    implies(dut.sends, ~dut.clear))
        left  = inner(dut, "left")
        self.prove("within", left <= C.ETHERNET_CREDIT_MAX)
        self.prove("enough", implies(dut.sends, dut.units <= left))
        self.lemma("allowed", implies(dut.allowed & ~sent, units <= left))


def of_depth(harness, depth):
    return type(f"{harness.__name__}{depth}", (harness,), {"depth": depth})

JoinedSmall, ObeyedSmall, StoredSmall = [of_depth(h, 8) for h in (Joined, Obeyed, Stored)]

# A port with several peers gives packets whole.
class JoinedWhole(Joined):
    whole = True

class StoredKept(Stored):
    keeps = True

JoinedWholeSmall, StoredKeptSmall = [of_depth(h, 8) for h in (JoinedWhole, StoredKept)]

PROPERTIES = [
    Property("ethernet-joined", "link/ethernet/buffer", "no unit lost, doubled or joined across a gap inside a packet",
        f"{DEPTH} units", "Joined", k=2, quick=True, mutants=[
            Mutant("goes on behind a gap", BUFFER, "(fragment.starts | (begun & (ahead == 0)))", "(fragment.starts | begun)",
                depth=16, harness="JoinedSmall"),
            Mutant("a late fragment is stored", BUFFER, "keeps.eq(~ahead[15] & ", "keeps.eq(", depth=16, harness="JoinedSmall"),
            Mutant("a packet goes on that was cut off", BUFFER, "begun.eq(keeps & ~ends)", "begun.eq(~ends)",
                depth=20, harness="JoinedSmall"),
            Mutant("a frame is stored before it ends", BUFFER, "self.end & self.good & active & ~is_late & ~failed & (left == 0)",
                "self.end & self.good & active & ~is_late & ~failed", depth=16, harness="JoinedSmall"),
            Mutant("a packet goes on behind units that were told as lost", BUFFER,
                "expected.eq(self.position),\n                begun.eq(0),", "expected.eq(self.position),",
                depth=20, harness="JoinedSmall"),
            Mutant("a wrong frame is stored", BUFFER, "self.taken.eq(self.end & self.good & active", "self.taken.eq(self.end & active",
                depth=16, harness="JoinedSmall"),
    ]),
    Property("ethernet-room", "link/ethernet/buffer", "within the credit, each frame finds room",
        f"{DEPTH} units", "Obeyed", k=1, apart=True, mutants=[
            Mutant("credit for units that wait", BUFFER, "self.credit.eq(expected + depth - fifo.held)", "self.credit.eq(expected + depth)",
                depth=30, harness="ObeyedSmall"),
            Mutant("a unit of credit too much", BUFFER, "self.credit.eq(expected + depth - fifo.held)",
                "self.credit.eq(expected + depth + 1 - fifo.level)", depth=30, harness="ObeyedSmall"),
    ]),
    Property("ethernet-buffer", "link/ethernet/buffer", "what was committed comes out in order, and nothing else",
        f"{DEPTH} units × 68", "Stored", k=2, arrays=True, mutants=[
            Mutant("a rollback leaves an entry", BUFFER, "written.eq(committed)", "written.eq(committed + 1)",
                depth=10, harness="StoredSmall"),
            Mutant("a full memory is written", BUFFER, "sink.ready.eq(~used[bits])", "sink.ready.eq(1)", depth=20, harness="StoredSmall"),
            Mutant("an entry is shown before its commit", BUFFER, "self.level.eq(committed - consumed)", "self.level.eq(written - consumed)",
                depth=10, harness="StoredSmall"),
    ]),
    Property("ethernet-reader", "link/ethernet/buffer", "each word once; good only if it was sent as good and whole",
        "32 bits", "Read", k=2, mutants=[
            Mutant("a packet that was cut off ends as good", BUFFER, "(held_last & held_bad) | cut", "held_last & held_bad",
                depth=12),
            Mutant("a packet goes on in the next one", BUFFER, "Mux(sink.valid, first, ~self.up", "Mux(sink.valid, 0, ~self.up", depth=12),
            Mutant("the end is undone while it waits", BUFFER, "            goes.eq(free & holds &", "            goes.eq(holds &", depth=12),
    ]),
    Property("ethernet-foreign", "link/ethernet/receiver", "a frame of ours is seen whatever came before; nothing waits for others",
        "64 bits", "Parsed", k=3, mutants=[
            Mutant("the EtherType is not looked at", "dibber.link.ethernet.receiver", " & (data[48:] == FRAME_TYPE)),\n                ),\n            ]\n        self",
                "),\n                ),\n            ]\n        self", depth=12),
            Mutant("a short frame shifts the next one", "dibber.link.ethernet.receiver", "If(unit.last,\n                index.eq(0)", "If(unit.last & (index > 1),\n                index.eq(0)",
                depth=14),
            Mutant("units of others come out", "dibber.link.ethernet.receiver", "self.unit.eq(payload & begun)", "self.unit.eq(payload)", depth=12),
    ]),
    Property("ethernet-limit", "link/ethernet/sender", "sends never pass the credit, whatever credits come",
        "16 bits", "Limited", k=2, mutants=[
            Mutant("credits go back", "dibber.link.ethernet.sender", "judged & ~newer[15] & (beyond", "judged & (beyond", depth=20),
            Mutant("any credit is believed", "dibber.link.ethernet.sender", " & (beyond <= C.ETHERNET_CREDIT_MAX)", "", depth=12),
    ]),
    Property("ethernet-whole", "link/ethernet/buffer", "packets come out whole, without a gap, or not at all",
        f"{DEPTH} units", "JoinedWhole", k=2, mutants=[
            Mutant("a begun packet comes out", BUFFER, "stores & ends if whole else stores", "stores", depth=16, harness="JoinedWholeSmall"),
            Mutant("goes on behind a gap", BUFFER, "(fragment.starts | (begun & (ahead == 0)))", "(fragment.starts | begun)",
                depth=16, harness="JoinedWholeSmall"),
            Mutant("a forgotten packet goes on", BUFFER, "If(ends_begun, begun.eq(0))", "If(ends_begun, begun.eq(begun))",
                depth=20, harness="JoinedWholeSmall"),
    ]),
    Property("ethernet-kept", "link/ethernet/buffer", "kept entries stay until they are committed or forgotten, and nothing else comes out",
        f"{DEPTH} units × 68", "StoredKept", k=2, arrays=True, mutants=[
            Mutant("kept entries are taken back", BUFFER, "Elif(self.rollback, written.eq(kept))", "Elif(self.rollback, written.eq(committed))",
                depth=12, harness="StoredKeptSmall"),
            Mutant("a forgotten entry is committed later", BUFFER, "written.eq(committed),\n                *([kept.eq(committed)] if keeps else []),",
                "*([kept.eq(committed)] if keeps else []),", depth=12, harness="StoredKeptSmall"),
    ]),
    Property("ethernet-merge", "link/ethernet/departure", "packets of several peers do not mix, and each peer has its turn",
        "3 peers", "Merged", k=2, quick=True, mutants=[
            Mutant("the next entry is another's", "dibber.link.ethernet.departure", "grant.eq(Mux(begun != 0, begun,", "grant.eq(Mux(begun == 7, begun,", depth=12),
            Mutant("a turn ends with an entry", "dibber.link.ethernet.departure", "If(source.ready & source.last,", "If(source.ready,", depth=12),
            Mutant("a source goes twice", "dibber.link.ethernet.departure", "(1 << count) - (2 << n)", "(1 << count) - (1 << n)", depth=24),
    ]),
]
