"""Asks: gets and atomics of this card that the fast path has under way."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C
from dibber.layouts import expect_layout

PLACES = 2                              # asks of a node: 16 nodes cannot fill an inbox of 32
TAGS   = log2_int(C.ENDPOINTS*C.SLOTS)  # bits of a command's tag

# Asks ---------------------------------------------------------------------------------------------

class Asks(LiteXModule):
    """Two places for asks to each node. An ask is *sent* while its message is in the ring of its
    flow; then it *waits* for its answer.

    A place has three bits. One event toggles each bit: the ask was taken; its message left the ring
    (`left`); it ended (`over`). A place is free if the first and the last bit are equal. The bits
    are in two small memories by node, because a memory has one writer. They are valid only after
    `clear` of the node.

    Attributes
    ----------
    clear  : Record, in      in a cycle with `strobe`: `node` has no asks. Never together with
             `take` or `change`
    take   : Record, in      in a cycle with `strobe`: a new ask to `node`, of the command `tag`
    room   : Signal(), out   `take.node` had a free place in the last cycle
    look   : Signal, in      the node to look up
    some   : Signal(), out   that node has asks, in the same cycle
    found  : Record, out     the node that was looked up in the last cycle. For each place: its
             `tag`, whether it has an ask (`alive`), and whether that waits. `left` and `over` are
             for `change`
    change : Record, in      in a cycle with `strobe`: the message of the ask at `place` left the
             ring, or with `end` the ask ended. `left` and `over` are those found, and have not
             changed since

    Cycles: 1 from `look` to `found`. A change shows from the next cycle on.
    """
    def __init__(self):
        node = ("node", log2_int(C.NODES))
        self.clear  = clear  = Record([("strobe", 1), node])
        self.take   = take   = Record([("strobe", 1), node, ("tag", TAGS)])
        self.room   = room   = Signal()
        self.look   = look   = Signal(node[1])
        self.some   = some   = Signal()
        self.found  = found  = Record([("tag0", TAGS), ("tag1", TAGS), ("alive", PLACES), ("waits", PLACES), ("left", PLACES),
            ("over", PLACES)])
        self.change = change = Record([("strobe", 1), node, ("place", 1), ("end", 1), ("left", PLACES), ("over", PLACES)])

        # # #

        def table(name, bits, strobe, adr, value, readers):
            """A small memory by node, cleared to 0, with a read port for each of `readers`."""
            memory = Memory(bits, C.NODES, name=name)
            write  = memory.get_port(write_capable=True)
            self.specials += memory, write
            self.comb += [
                write.we.eq(strobe | clear.strobe),
                write.adr.eq(Mux(clear.strobe, clear.node, adr)),
                write.dat_w.eq(Mux(clear.strobe, 0, value)),
            ]
            ports = [memory.get_port(async_read=True) for _ in readers]
            self.specials += ports
            self.comb += [port.adr.eq(reader) for port, reader in zip(ports, readers)]
            return [port.dat_r for port in ports]

        # States.
        toggled = Signal(PLACES)     # the place of the event
        changed = Signal(2*PLACES)
        taken   = Signal(PLACES)
        put     = Signal(PLACES)     # the first bits of `take.node`
        ends    = Signal(2*PLACES)
        state   = Signal(2*PLACES)   # left, over
        free    = Signal(PLACES)
        readers = [look, take.node]
        looked, entered = table("asks_taken", PLACES, take.strobe, take.node, put ^ Mux(free[0], 1, 2), readers)
        known, at   = table("asks_ended", 2*PLACES, change.strobe, change.node, changed, readers)
        self.comb += [
            taken.eq(looked),
            state.eq(known),
            put.eq(entered),
            ends.eq(at),
            free.eq(~(put ^ ends[PLACES:])),
            toggled.eq(Mux(change.place, 2, 1)),
            # Of an ask that is alive, the first bit is the inverse of `over`. When the ask leaves
            # the ring, `left` becomes equal to the first bit.
            changed.eq(Cat(
                (change.left & ~toggled) | (~change.over & toggled),
                change.over ^ Mux(change.end, toggled, 0))),
            some.eq((taken ^ state[PLACES:]) != 0),
        ]
        self.sync += [
            room.eq(free != 0),
            found.alive.eq(taken ^ state[PLACES:]),
            found.waits.eq(state[:PLACES] ^ state[PLACES:]),
            found.left.eq(state[:PLACES]),
            found.over.eq(state[PLACES:]),
        ]

        # Tags.
        for n, tag in enumerate([found.tag0, found.tag1]):
            memory = Memory(TAGS, C.NODES, name=f"asks_tags{n}")
            write, read = memory.get_port(write_capable=True), memory.get_port(async_read=True)
            self.specials += memory, write, read
            self.comb += [
                write.we.eq(take.strobe & (free[0] if n == 0 else ~free[0])),
                write.adr.eq(take.node),
                write.dat_w.eq(take.tag),
                read.adr.eq(look),
            ]
            self.sync += tag.eq(read.dat_r)

# Expect Writer ------------------------------------------------------------------------------------

class ExpectWriter(LiteXModule):
    """The one writer of the table of gets under way, for the control program and the fast path.

    Attributes
    ----------
    program : Record, in     in a cycle with `we`: an entry of the program, which never waits
    enter   : Endpoint, in   an entry of the fast path
    forget  : Record, in     in a cycle with `strobe`: the get of command `tag` has ended. At most
              once in three cycles
    write   : Record, out    in a cycle with `we`: an entry of the table

    Cycles: 0, or 1 if another entry goes first.
    """
    def __init__(self):
        self.program = program = Record([("we", 1)] + expect_layout().payload_layout)
        self.enter   = enter   = stream.Endpoint(expect_layout())
        self.forget  = forget  = Record([("strobe", 1), ("tag", TAGS)])
        self.write   = write   = Record(program.layout)

        # # #

        waiting = Signal()
        tag     = Signal(TAGS)
        self.comb += [
            enter.ready.eq(~program.we & ~waiting),
            write.we.eq(program.we | waiting | enter.valid),
            *[getattr(write, name).eq(Mux(program.we, getattr(program, name), getattr(enter, name)))
                for name in ["key", "node"]],
            If(program.we,
                write.context.eq(program.context),
                write.granted.eq(program.granted),
            ).Elif(waiting,
                write.context.eq(tag),
                write.granted.eq(0),
            ).Else(
                write.context.eq(enter.context),
                write.granted.eq(enter.granted),
            )
        ]
        self.sync += [
            If(~program.we, waiting.eq(0)),
            If(forget.strobe,
                waiting.eq(1),
                tag.eq(forget.tag),
            )
        ]
