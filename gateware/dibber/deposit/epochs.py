"""The present epoch of each BULK flow. Jobs of an older epoch have been rewound."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.interface.description import C

# Layout -------------------------------------------------------------------------------------------

def flow_of_layout():
    """The flow and epoch of a job. It is stale if its incarnation or epoch differs from the flow's.
    """
    return [("node", 8), ("incarnation", 8), ("epoch", 4)]

def watch_port():
    """A watched job: `valid` with its fields, `leave` in its last cycle. `stale` answers one cycle
    later.
    """
    return Record([("valid", 1), ("leave", 1)] + flow_of_layout() + [("stale", 1)])

# Epochs -------------------------------------------------------------------------------------------

class Epochs(LiteXModule):
    """Incarnation and epoch of the BULK flow to each node; flags jobs that are stale.

    Parameters
    ----------
    ports : number of watched jobs

    Attributes
    ----------
    reset  : Signal(), in    one cycle: the flow to `node` starts again, with `incarnation` and
             epoch 0
    rewind : Signal(), in    one cycle: the flow to `node` continues with `epoch`
    node, incarnation, epoch : Signals, in
    ports  : list of watch_port()

    Cycles: 2 from `reset` or `rewind` to `stale`.
    """
    def __init__(self, ports):
        self.reset       = Signal()
        self.rewind      = Signal()
        self.node        = Signal(max=C.NODES)
        self.incarnation = Signal(8)
        self.epoch       = Signal(4)
        self.ports       = [watch_port() for _ in range(ports)]

        # # #

        now = [Signal(12, name=f"flow{n}") for n in range(C.NODES)]  # incarnation, epoch
        for n, flow in enumerate(now):
            self.sync += [
                If(self.reset & (self.node == n), flow.eq(Cat(self.incarnation, Constant(0, 4)))),
                If(self.rewind & (self.node == n), flow[8:].eq(self.epoch)),
            ]
        for port in self.ports:
            self.sync += port.stale.eq(port.valid & ~port.leave &
                (Array(now)[port.node[:log2_int(C.NODES)]] != Cat(port.incarnation, port.epoch)))
