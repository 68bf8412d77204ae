"""What arrived, for a control program that is there or that is halted."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *
from migen.genlib.roundrobin import RoundRobin, SP_CE

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, MESSAGE
from dibber.layouts import arrival_layout

# Kinds --------------------------------------------------------------------------------------------

def asking_layout():
    """An arrival, and whether it is a `get` or an `atomic` of a node that there can be."""
    return stream.EndpointDescription(arrival_layout().payload_layout, [("get", 1), ("atomic", 1)])

def kinds_of(arrival):
    """What asking_layout says of an arrival."""
    known = arrival.is_message & (arrival.node[log2_int(C.NODES):] == 0)
    return {"get": known & (arrival.value[:8] == MESSAGE.GET), "atomic": known & (arrival.value[:8] == MESSAGE.ATOMIC)}

# Arrivals -----------------------------------------------------------------------------------------

def inbox_free_layout():
    """`slot` of the inbox may be used again, in a cycle with `strobe`."""
    return [("strobe", 1), ("slot", log2_int(C.SLOTS))]

class Arrivals(LiteXModule):
    """Arrivals of several engines to the control program, and its slots of the inbox back to them.

    Without a control program nothing waits: `sweep` frees all slots of the inbox, which are those
    that the last program held, and while it is `halted` arrivals are dropped and their slots freed.

    Parameters
    ----------
    sinks : how many engines

    Attributes
    ----------
    sinks  : list of Endpoint(arrival_layout), in
    source : Endpoint(arrival_layout), out
    free   : Record(inbox_free_layout), in     from the control program; not while it is halted
    freed  : Record(inbox_free_layout), out    to the inbox
    halted : Signal(), in
    sweep  : Signal(), in      with `halted`: free slot `index`, modulo SLOTS
    index  : Signal, in

    Cycles: 0, or 1 when another engine's turn comes. Engines take turns.
    """
    def __init__(self, sinks):
        self.sinks  = [stream.Endpoint(arrival_layout()) for _ in range(sinks)]
        self.source = source = stream.Endpoint(arrival_layout())
        self.free   = free   = Record(inbox_free_layout())
        self.freed  = freed  = Record(inbox_free_layout())
        self.halted = Signal()
        self.sweep  = Signal()
        self.index  = Signal(log2_int(C.SLOTS))

        # # #

        chosen    = stream.Endpoint(arrival_layout())
        self.turn = turn = RoundRobin(sinks, SP_CE)
        self.comb += [
            turn.ce.eq(~chosen.valid | chosen.ready),
            turn.request.eq(Cat(*[sink.valid for sink in self.sinks])),
            Case(turn.grant, {n: sink.connect(chosen) for n, sink in enumerate(self.sinks)}),
            chosen.connect(source, omit={"valid", "ready"}),
            If(self.halted,
                chosen.ready.eq(~self.sweep),
                freed.strobe.eq(self.sweep | (chosen.valid & chosen.is_message)),
                freed.slot.eq(Mux(self.sweep, self.index, chosen.slot)),
            ).Else(
                source.valid.eq(chosen.valid),
                chosen.ready.eq(source.ready),
                freed.eq(free),
            )
        ]
