"""Notices and messages from the engines, for a control program that runs or is halted."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *
from migen.genlib.roundrobin import RoundRobin, SP_CE

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, MESSAGE
from dibber.layouts import arrival_layout

# Kinds --------------------------------------------------------------------------------------------

def asking_layout():
    """An arrival, and whether it is a `get` or an `atomic` from a valid node."""
    return stream.EndpointDescription(arrival_layout().payload_layout, [("get", 1), ("atomic", 1)])

def kinds_of(arrival):
    """Dict of the bits that asking_layout adds to an arrival."""
    known = arrival.is_message & (arrival.node[log2_int(C.NODES):] == 0)
    return {"get": known & (arrival.value[:8] == MESSAGE.GET), "atomic": known & (arrival.value[:8] == MESSAGE.ATOMIC)}

# Arrivals -----------------------------------------------------------------------------------------

def inbox_free_layout():
    """In a cycle with `strobe`: `slot` of the INBOX is free."""
    return [("strobe", 1), ("slot", log2_int(C.SLOTS))]

class Arrivals(LiteXModule):
    """Brings the arrivals of several engines to the control program, and the free slots of the
    INBOX back to the engines.

    While the control program is halted nothing waits for it. `sweep` frees all slots of the INBOX,
    because the last program may hold them. Arrivals are dropped and their slots freed.

    Parameters
    ----------
    sinks : how many engines

    Attributes
    ----------
    sinks  : list of Endpoint(arrival_layout), in
    source : Endpoint(arrival_layout), out
    free   : Record(inbox_free_layout), in     a slot comes free; not while `halted`
    freed  : Record(inbox_free_layout), out    to the engine that fills the INBOX
    halted : Signal(), in
    sweep  : Signal(), in      with `halted`: free slot `index`, modulo SLOTS
    index  : Signal, in

    Cycles: 0, or 1 when the grant goes to another engine (round robin).
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
