"""Stopping the engines under a running host and a running link."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *
from migen.fhdl.tools import list_targets

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import word_layout

# Cutter -------------------------------------------------------------------------------------------

class Cutter(LiteXModule):
    """Ends the packet under way as bad when its source is reset, so that the link does not wait for
    the rest of the packet. A packet of lines ends with a line without words.

    Parameters
    ----------
    layout : of the packet's words, or lines; word_layout if not given

    Attributes
    ----------
    sink, source : Endpoint(layout)
    reset        : Signal(), in   the block before the sink is in reset
    """
    def __init__(self, layout=None):
        layout = layout or word_layout()
        self.sink   = sink   = stream.Endpoint(layout)
        self.source = source = stream.Endpoint(layout)
        self.reset  = Signal()

        # # #

        inside = Signal()
        taken  = [inside.eq(~source.last)]
        ending = [source.valid.eq(inside), source.last.eq(1), source.bad.eq(1)]
        if hasattr(source, "channel"):
            channel = Signal(len(source.channel))
            taken.append(channel.eq(source.channel))
            ending.append(source.channel.eq(channel))
        self.sync += If(source.valid & source.ready, *taken)
        self.comb += If(self.reset,
            *ending
        ).Else(
            sink.connect(source)
        )

# Halt ---------------------------------------------------------------------------------------------

class Halt(LiteXModule):
    """What happens when MCP_CONTROL.run changes.

    When `run` falls, the processor and the sending engines are reset. Before they start again, each
    entry of the region table and of the table of gets under way is emptied. So nothing that was
    granted to the last program is granted to the next one. The INBOX is emptied, too.

    The receiving engine goes on, because other nodes depend on it. It ends the packets that it has
    begun, and refuses those whose region is gone. It keeps the expected sequence numbers, because
    without them it would execute a late duplicate.

    Parameters
    ----------
    entries : of the largest table, a power of two; a smaller table uses the low bits of `index`

    Attributes
    ----------
    run   : Signal(), in    MCP_CONTROL.run
    reset : Signal(), out   of the processor, its registers, the doorbells and the sending engines
    clear : Signal(), out   empty entry `index` of each table
    index : Signal, out
    halted : Signal(), out  one cycle: a program that ran is halted
    halts : Signal(8), out  how often a program that ran was halted, modulo 256

    After power-up everything is halted. A halt takes at least `entries` cycles, even if `run` is 0
    for one cycle.
    """
    def __init__(self, entries):
        self.run   = Signal()
        self.reset = Signal(reset=1)  # a register: it reaches thousands of others
        self.clear = Signal()
        self.index = index = Signal(max=entries)
        self.halted = Signal()
        self.halts = halts = Signal(8)

        # # #

        self.fsm = fsm = FSM(reset_state="CLEAR")
        fsm.act("CLEAR",
            self.clear.eq(1),
            NextValue(index, index + 1),
            If(index == entries - 1,
                NextValue(index, 0),
                NextState("HALTED")
            )
        )
        fsm.act("HALTED",
            If(self.run,
                NextValue(self.reset, 0),
                NextState("RUNNING")
            )
        )
        fsm.act("RUNNING",
            If(~self.run,
                self.halted.eq(1),
                NextValue(self.reset, 1),
                NextValue(halts, halts + 1),
                NextState("CLEAR")
            )
        )

# Halt Inserter ------------------------------------------------------------------------------------

class HaltInserter(ResetInserter):
    """Resets a module by its `halt`, and not by the clock domain's reset. The module may have a
    `reset` of its own.

    `halt` is 1 from power-up. It is also 1 from one cycle after the domain's reset begins until
    well after that reset ends (see Halt). So the domain's reset is not needed at these registers.
    It would cost a LUT before each group of them, fed by a net across the whole card.
    """
    control_name = "halt"

    def transform_fragment_insert(self, i, f, to_insert):
        super().transform_fragment_insert(i, f, to_insert)
        for _, domain in to_insert:
            for signal in list_targets(f.sync[domain]):
                signal.reset_less = True
