"""Descriptors of Corundum's DMA interface, and what each error code of its statuses means."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect.stream import EndpointDescription

from dibber.host.tlp import STATUS_UNSUPPORTED

# Layouts ------------------------------------------------------------------------------------------

def descriptor_layout():
    """An order to the DMA engine: `len` bytes between `dma_addr` and byte `ram_addr` of the RAM."""
    return EndpointDescription([("dma_addr", 64), ("ram_addr", 16), ("len", 16), ("tag", 16)])

def status_layout():
    """The end of the descriptor with this tag. Valid only: the engine cannot be held."""
    return EndpointDescription([("tag", 16), ("error", 4)])

# Error Codes --------------------------------------------------------------------------------------

# Of a status; all others are kinds of an error that a PCIe host does not give: timeout 1, parity 2,
# AXI 4 to 7, function-level reset 8.
ERROR_POISONED    = 9
ERROR_UNSUPPORTED = 10
ERROR_ABORTED     = 11

STATUS_ABORTED = 0b100  # PCIe Base 3.0, 2.2.9: Completer Abort

def completion_status(error):
    """The status of a completion that stands for `error`. Abort stands for all that is not the
    host's own answer.
    """
    return Mux((error == ERROR_UNSUPPORTED) | (error == ERROR_POISONED), STATUS_UNSUPPORTED, STATUS_ABORTED)

# Pending ------------------------------------------------------------------------------------------

class Pending(LiteXModule):
    """Which descriptors the DMA engine still owes a status.

    A status for a descriptor that is not under way is a stray: it changes nothing.

    Parameters
    ----------
    depth : descriptors, a power of two; tags are 0 to `depth` - 1

    Attributes
    ----------
    start, index : Signal, in                      descriptor `index` leaves
    status       : Endpoint(status_layout), in     valid only
    ended        : Signal(), out                   `status` is the end of a descriptor; in the same
                   cycle
    stray        : Signal(), out
    owed         : Signal(depth), out
    """
    def __init__(self, depth, status):
        self.start  = Signal()
        self.index  = Signal(max=depth)
        self.status = status
        self.ended  = Signal()
        self.stray  = Signal()
        self.owed   = owed = Signal(depth)

        # # #

        bits  = log2_int(depth)
        known = Signal()
        self.comb += [
            known.eq((status.tag[bits:] == 0) & (owed >> status.tag[:bits])[0]),
            self.ended.eq(status.valid & known),
            self.stray.eq(status.valid & ~known),
        ]
        self.sync += [
            If(self.ended & (status.tag[:bits] == n), owed[n].eq(0)) for n in range(depth)]
        self.sync += [
            If(self.start & (self.index == n), owed[n].eq(1)) for n in range(depth)]
