"""What the fast path has under way, a ring a flow."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.interface.description import C
from dibber.layouts import tag_bits

# Put Rings ----------------------------------------------------------------------------------------

class PutRings(LiteXModule):
    """A ring of FAST_PUTS puts for each flow, in the order of their PSNs; or of what else `kind`
    says, enum fast_kind.

    Of a ring three places are known: its *head*, the oldest put; its *tail*, where the next one
    goes; and its *mark*, the oldest put whose job has not ended, which means something on lane BULK
    alone. They are in small memories by flow, which say something only once the ring was cleared;
    the puts are in a block of memory.

    Attributes
    ----------
    clear  : Record, in      in a cycle with `strobe`: the ring is empty. Never together with
             `append` or `move`
    append : Record, in      in a cycle with `strobe`: a put, and the last of its PSNs, goes behind
             the others
    room   : Signal, out     in the last cycle the ring of `append.flow` had room for it
    look   : Record, in      a ring to be looked at, at its head, or with `job` at its mark
    found  : Record, out     what was found in the last cycle. `there`: a put, at place `index`,
             with its `tag`, `kind`
                             and `last` PSN. Of the ring: `entries`, 0 also if it was never cleared,
                             and `ended`, the job of the oldest one has; `alive`, it was `filled`
    more   : Signal, in      there is more under way than in the ring of `look.flow`
    move   : Record, in      with `head`, with `mark`, or both: that is now the place behind `index`
    filled : Signal, out     a bit for each flow with puts or `more` under way; falls when it is
             looked at without

    Cycles: 1 from `look` to `found`. What is changed shows from the next cycle on.
    """
    def __init__(self):
        flows  = C.LANES*C.NODES
        size   = C.FAST_PUTS + 1
        flow   = ("flow", log2_int(flows))
        put    = [("tag", tag_bits()), ("kind", 2), ("last", 16)]
        place  = log2_int(size)
        self.clear  = clear  = Record([("strobe", 1), flow])
        self.append = append = Record([("strobe", 1), flow] + put)
        self.room   = room   = Signal()
        self.look   = look   = Record([flow, ("job", 1)])
        self.found  = found  = Record([("there", 1), ("index", place), ("entries", place), ("ended", 1),
            ("alive", 1)] + put)
        self.more   = Signal()
        self.move   = move   = Record([("head", 1), ("mark", 1), flow, ("index", place)])
        self.filled = filled = Signal(flows)

        # # #

        # Places. Each memory has one write port, because a distributed RAM has no more.
        def table(name, strobe, flow, value, readers):
            """A place by flow, 0 when cleared, and what it has for each of `readers`."""
            memory = Memory(place, flows, name=name)
            write  = memory.get_port(write_capable=True)
            self.specials += memory, write
            self.comb += [
                write.we.eq(strobe | clear.strobe),
                write.adr.eq(flow),
                write.dat_w.eq(value),
                If(clear.strobe, write.adr.eq(clear.flow), write.dat_w.eq(0)),
            ]
            found = []
            for reader in readers:
                port = memory.get_port(async_read=True)
                self.specials += port
                self.comb += port.adr.eq(reader)
                found.append(port.dat_r)
            return found

        after = Signal(place)  # what a move goes to
        tail  = Signal(place)
        self.comb += after.eq(move.index + 1)
        head, first = table("heads", move.head, move.flow, after, [look.flow, append.flow])
        mark,       = table("marks", move.mark, move.flow, after, [look.flow])
        end, behind = table("tails", append.strobe, append.flow, tail + 1, [look.flow, append.flow])
        used = Signal(place)
        self.comb += [
            tail.eq(behind),
            used.eq(behind - first),
        ]
        self.sync += room.eq(used != C.FAST_PUTS)

        # Puts.
        puts  = Memory(sum(bits for _, bits in put), flows*size)
        enter = puts.get_port(write_capable=True)
        read  = puts.get_port(mode=READ_FIRST)
        index = Signal(place)
        empty = Signal()
        alive = Signal()
        self.specials += puts, enter, read
        self.comb += [
            enter.we.eq(append.strobe),
            enter.adr.eq(Cat(tail, append.flow)),
            enter.dat_w.eq(Cat(append.tag, append.kind, append.last)),
            index.eq(Mux(look.job, mark, head)),
            empty.eq((head == end) & ~self.more),
            alive.eq((filled >> look.flow)[0]),
            read.adr.eq(Cat(index, look.flow)),
            Cat(found.tag, found.kind, found.last).eq(read.dat_r),
        ]
        self.sync += [
            found.there.eq(index != end),
            found.index.eq(index),
            found.entries.eq(Mux(alive, end - head, 0)),
            found.ended.eq(head != mark),
            found.alive.eq(alive),
            # Whose bit it is is known before what becomes of it.
            *[filled[n].eq((filled[n] & ~((look.flow == n) & empty)) | ((append.flow == n) & append.strobe)) for n in range(flows)],
        ]
