"""Stopping the engines under a running host and a running link."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *
from migen.fhdl.tools import list_targets

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import word_layout

# Cutter -------------------------------------------------------------------------------------------

class Cutter(LiteXModule):
    """Ends the packet under way as bad when what feeds it is reset, so that the link does not wait
    for the rest.

    Attributes
    ----------
    sink, source : Endpoint(word_layout)
    reset        : Signal(), in   whatever feeds the sink is being reset
    """
    def __init__(self):
        self.sink   = sink   = stream.Endpoint(word_layout())
        self.source = source = stream.Endpoint(word_layout())
        self.reset  = Signal()

        # # #

        inside  = Signal()
        channel = Signal(len(source.channel))
        self.sync += If(source.valid & source.ready,
            inside.eq(~source.last),
            channel.eq(source.channel),
        )
        self.comb += If(self.reset,
            source.valid.eq(inside),
            source.last.eq(1),
            source.bad.eq(1),
            source.channel.eq(channel),
        ).Else(
            sink.connect(source)
        )

# Halt ---------------------------------------------------------------------------------------------

class Halt(LiteXModule):
    """What happens when MCP_CONTROL.run changes.

    Without `run` the processor and the sending engines are reset, and every entry of the region
    table and of the table of gets under way is emptied before they may start again: nothing that
    was granted to the last program is granted to the next. The inbox is emptied, too. The receiving
    engine keeps going, because others depend on it. It ends the packets that it has begun, refuses
    those that find no region any more, and keeps the expected sequence numbers: without them a late
    duplicate would be executed.

    Parameters
    ----------
    entries : of the largest table, a power of two; the low bits of `index` are those of a smaller
              one

    Attributes
    ----------
    run   : Signal(), in    MCP_CONTROL.run
    reset : Signal(), out   of the processor, its registers, the doorbells and the sending engines
    clear : Signal(), out   empty entry `index` of each table
    index : Signal, out
    halted : Signal(), out  one cycle: it is halted after it had run
    halts : Signal(8), out  how often it was halted after it had run, modulo 256

    After power-up everything is halted. A halt takes `entries` cycles at least, however short `run`
    was 0.
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
    """Resets a module by its `halt`, and by nothing else. It may have a `reset` of its own that
    means something else.

    `halt` is 1 from power-up, and from the cycle after the clock domain's reset begins until well
    after it has ended (see Halt). So that reset need not come to these registers as well: it would
    be a LUT across the whole card in front of each group of them.
    """
    control_name = "halt"

    def transform_fragment_insert(self, i, f, to_insert):
        super().transform_fragment_insert(i, f, to_insert)
        for _, domain in to_insert:
            for signal in list_targets(f.sync[domain]):
                signal.reset_less = True
