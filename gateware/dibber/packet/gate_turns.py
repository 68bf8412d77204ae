"""One gate for the packets of two transmitters. docs/design/two-links.md."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.packet.flow_table import flow_layout, passed_layout
from dibber.packet.split import LINKS

# A packet that waits at the gate leaves it to the other link's packet after so many cycles. The
# gate needs two of them for its look-up.
TURN = 8

# Gate Turns ---------------------------------------------------------------------------------------

class GateTurns(LiteXModule):
    """Show the packets of two transmitters to one FlowGate, in turns.

    A packet may wait at the gate for its flow's window, or for its transmitter. Meanwhile the other
    transmitter's packet is shown, so no link stops the other one. Only a packet that waits for the
    answer to a question keeps its turn, until the gate's PATIENCE ends.

    Attributes
    ----------
    sinks    : list of 2 Endpoint(flow_layout), in      of the transmitters, by link
    sources  : list of 2 Endpoint(passed_layout), out   to them
    flow     : Endpoint(flow_layout), out     to the gate
    passed   : Endpoint(passed_layout), in    from the gate
    question : Signal(), in   the gate waits for the answer to a question

    Cycles: 0 for the link whose turn it is; 1 and more for the other one.
    """
    def __init__(self):
        self.sinks    = sinks   = [stream.Endpoint(flow_layout()) for _ in range(LINKS)]
        self.sources  = sources = [stream.Endpoint(passed_layout()) for _ in range(LINKS)]
        self.flow     = flow    = stream.Endpoint(flow_layout())
        self.passed   = passed  = stream.Endpoint(passed_layout())
        self.question = Signal()

        # # #

        link    = Signal()
        pause   = Signal()  # the gate begins again, with the other packet
        age     = Signal(max=TURN + 1)
        shown   = Signal()  # a packet of `link`
        other   = Signal()  # the other transmitter has one
        passes  = Signal()
        changes = Signal()
        self.comb += [
            shown.eq(Mux(link, sinks[1].valid, sinks[0].valid)),
            other.eq(Mux(link, sinks[0].valid, sinks[1].valid)),
            flow.valid.eq(shown & ~pause),
            passes.eq(passed.valid & passed.ready),
            changes.eq(other & (~shown | (flow.valid & flow.ready) |
                ((age == TURN) & ~passes & ~(self.question & ~passed.valid)))),
            passed.ready.eq(Mux(link, sources[1].ready, sources[0].ready)),
            If(link,
                sinks[1].connect(flow, omit={"valid", "ready"})
            ).Else(
                sinks[0].connect(flow, omit={"valid", "ready"})
            ),
        ]
        for n in range(LINKS):
            self.comb += [
                sinks[n].ready.eq(flow.valid & flow.ready & (link == n)),
                passed.connect(sources[n], omit={"valid", "ready"}),
                sources[n].valid.eq(passed.valid & (link == n)),
            ]
        self.sync += [
            pause.eq(changes),
            If(changes,
                link.eq(~link),
                age.eq(0)
            ).Elif(~shown | passes,
                age.eq(0)
            ).Elif(age != TURN,
                age.eq(age + 1)
            ),
        ]
