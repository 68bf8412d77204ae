"""Puts that the fast path has under way: a ring for each flow."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.interface.description import C
from dibber.layouts import tag_bits

# Put Rings ----------------------------------------------------------------------------------------

class PutRings(LiteXModule):
    """A ring of FAST_PUTS puts for each flow, in the order of their PSNs. `kind` (enum fast_kind)
    says what an entry is: a put, or an ask, an answer or a reply.

    A ring has three pointers. `head` is the oldest put. `tail` is where the next put goes. `mark`
    is the oldest put whose job has not ended; it is used on lane BULK only. The pointers are in
    small memories by flow, and valid only after `clear` of the ring. The puts are in block RAM.

    Attributes
    ----------
    clear  : Record, in      in a cycle with `strobe`: the ring is empty. Never together with
             `append` or `move`
    append : Record, in      in a cycle with `strobe`: append a put, with the last of its PSNs
    room   : Signal, out     the ring of `append.flow` had room in the last cycle
    look   : Record, in      look up a ring at its head, or with `job` at its mark
    found  : Record, out     the ring that was looked up in the last cycle. `there`: there is a put,
             at place `index`, with its `tag`, `kind` and `last` PSN. Of the ring: `entries`, 0 if
             it was never cleared; `ended`, the job of the oldest put has ended; `alive`, it was
             `filled`
    more   : Signal, in      asks of flow `look.flow` are under way that are not in its ring
    move   : Record, in      `head`, `mark`, or both move to the place behind `index`
    filled : Signal, out     a bit for each flow with puts or asks under way. It falls when the flow
             is looked up without any

    Cycles: 1 from `look` to `found`. A change shows from the next cycle on.
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

        # Pointers. Each has its own memory, because a distributed RAM has one write port.
        def table(name, strobe, flow, value, readers):
            """A pointer by flow, cleared to 0, with a read port for each of `readers`."""
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

        after = Signal(place)  # where a pointer moves to
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
            # The flow's number is known earlier in the cycle than the new value of its bit.
            *[filled[n].eq((filled[n] & ~((look.flow == n) & empty)) | ((append.flow == n) & append.strobe)) for n in range(flows)],
        ]
