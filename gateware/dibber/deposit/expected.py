# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The table of gets under way: who may answer which of them, and into which region."""

from migen import *
from migen.genlib.record import DIR_M_TO_S, DIR_S_TO_M, Record

from litex.gen import *

# Port ---------------------------------------------------------------------------------------------

def expected_port():
    """A question, in a cycle with `valid`; 2 cycles later `granted` is the answer, for one cycle."""
    return Record([
        ("valid", 1, DIR_M_TO_S), ("context", 16, DIR_M_TO_S), ("node", 16, DIR_M_TO_S), ("key", 32, DIR_M_TO_S),
        ("granted", 1, DIR_S_TO_M)])

# Expected Table -----------------------------------------------------------------------------------

class ExpectedTable(LiteXModule):
    """An entry for each context, which is a command slot: endpoint * SLOTS + slot.

    The table is empty after configuration and keeps its contents over a reset: whoever halts the control
    program empties it.

    Parameters
    ----------
    contexts : entries, a power of two

    Attributes
    ----------
    port    : expected_port()
    context : Signal(10), in    entry to write; one that the table does not have is not written
    key, node, valid : Signals, in    what to write there
    write   : Signal(), in      one cycle

    Cycles: 2 from `valid` to `granted`, a question a cycle.
    """
    def __init__(self, contexts=256):
        self.port    = port = expected_port()
        self.context = Signal(10)
        self.key     = Signal(32)
        self.node    = Signal(8)
        self.valid   = Signal()
        self.write   = Signal()

        # # #

        bits   = log2_int(contexts)
        memory = Memory(32 + 8 + 1, contexts)
        write  = memory.get_port(write_capable=True)
        read   = memory.get_port(mode=READ_FIRST)
        self.specials += memory, write, read

        key, node, valid = Signal(32), Signal(8), Signal()
        asked = Record([("key", 32), ("node", 16), ("known", 1)])
        self.comb += [
            write.adr.eq(self.context[:bits]),
            write.dat_w.eq(Cat(self.key, self.node, self.valid)),
            write.we.eq(self.write & (self.context[bits:] == 0)),
            read.adr.eq(port.context[:bits]),
            Cat(key, node, valid).eq(read.dat_r),
        ]
        self.sync += [
            asked.key.eq(port.key),
            asked.node.eq(port.node),
            asked.known.eq(port.valid & (port.context[bits:] == 0)),
            port.granted.eq(asked.known & valid & (key == asked.key) & (node == asked.node)),
        ]
