"""The table of gets and receives under way: the node that may answer, and the region."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *
from migen.genlib.record import DIR_M_TO_S, DIR_S_TO_M, Record

from litex.gen import *

TAG = 10  # bits of a context that number the command's slot; the bits above are its generation

# Port ---------------------------------------------------------------------------------------------

def expected_port():
    """A question, in a cycle with `valid`; the answer comes 2 cycles later, for one cycle.

    granted : node, context and key match an entry that is not spoilt
    mine    : node and context match an entry, with any key
    spoil   : in a cycle with this, answers to the context `spoilt` (which was `mine`) are no longer
              granted
    """
    return Record([
        ("valid", 1, DIR_M_TO_S), ("context", 16, DIR_M_TO_S), ("node", 16, DIR_M_TO_S),
        ("key", 32, DIR_M_TO_S),
        ("spoil", 1, DIR_M_TO_S), ("spoilt", 16, DIR_M_TO_S),
        ("granted", 1, DIR_S_TO_M), ("mine", 1, DIR_S_TO_M)])

# Expected Table -----------------------------------------------------------------------------------

class ExpectedTable(LiteXModule):
    """An entry for each command slot: endpoint * SLOTS + slot.

    A context is this index and a generation. The control program increments the generation when it
    abandons a get, so that a late answer is not taken for the answer to the next get.

    If a packet of an answer was refused, the entry is spoilt until its next write: no other packet
    of this answer is granted, including the last one. A `spoil` that comes after the slot's next
    entry does not harm that entry if its generation is new.

    The table is empty after configuration and keeps its contents over a reset. Software that halts
    the control program must clear it.

    Parameters
    ----------
    contexts : entries, a power of two

    Attributes
    ----------
    port    : expected_port()
    context : Signal(16), in    entry to write; ignored if the table has no such entry
    key, node, valid : Signals, in    its contents
    write   : Signal(), in      one cycle

    Cycles: 2 from `valid` to `granted`, one question a cycle; 2 from `spoil` to the questions that
    it denies, 3 if there is a `write` in the same cycle. At least 4 cycles between two spoils.
    """
    def __init__(self, contexts=256):
        self.port    = port = expected_port()
        self.context = Signal(16)
        self.key     = Signal(32)
        self.node    = Signal(8)
        self.valid   = Signal()
        self.write   = Signal()

        # # #

        bits  = log2_int(contexts)
        above = slice(bits, TAG)

        # Entries ----------------------------------------------------------------------------------

        generation, key, node, valid = Signal(16 - TAG), Signal(32), Signal(8), Signal()
        entry  = Cat(key, node, generation, valid)
        memory = Memory(len(entry), contexts)
        write  = memory.get_port(write_capable=True)
        read   = memory.get_port(mode=READ_FIRST)
        self.specials += memory, write, read
        self.comb += [
            write.adr.eq(self.context[:bits]),
            write.dat_w.eq(Cat(self.key, self.node, self.context[TAG:], self.valid)),
            write.we.eq(self.write & (self.context[above] == 0)),
            read.adr.eq(port.context[:bits]),
            entry.eq(read.dat_r),
        ]

        # Spoilt -----------------------------------------------------------------------------------

        # For each entry the generation that was spoilt last. A write of the entry has priority.
        marks   = Memory(16 - TAG + 1, contexts)
        mark    = marks.get_port(write_capable=True)
        look    = marks.get_port(mode=READ_FIRST)
        self.specials += marks, mark, look
        spoil   = Signal()
        context = Signal(16)
        self.comb += [
            mark.adr.eq(Mux(write.we, write.adr, context[:bits])),
            mark.dat_w.eq(Mux(write.we, 0, Cat(context[TAG:], 1))),
            mark.we.eq(write.we | spoil),
            look.adr.eq(port.context[:bits]),
        ]
        self.sync += [
            If(~write.we, spoil.eq(0)),
            If(port.spoil,
                spoil.eq(1),
                context.eq(port.spoilt)
            )
        ]

        # Answer -----------------------------------------------------------------------------------

        asked = Record([("key", 32), ("node", 16), ("generation", 16 - TAG), ("known", 1)])
        mine  = Signal()
        self.comb += mine.eq(
            asked.known & valid & (generation == asked.generation) & (node == asked.node))
        self.sync += [
            asked.key.eq(port.key),
            asked.node.eq(port.node),
            asked.generation.eq(port.context[TAG:]),
            asked.known.eq(port.valid & (port.context[above] == 0)),
            port.mine.eq(mine),
            port.granted.eq(mine & (key == asked.key) & (look.dat_r != Cat(asked.generation, 1))),
        ]
