"""Bus Master Enable: hold or drop requests while the host forbids access to its memory."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

# Bus Master ---------------------------------------------------------------------------------------

class BusMaster(LiteXModule):
    """Hold requests while the bit is clear, and halt the control program if one waits too long.

    While the program runs, requests are held, because the host may set the bit again. After
    `patience` cycles the program is halted: completions cannot reach the host, but the host can see
    a halt. While the program is halted, requests are dropped, because memory that was registered
    with the old program may be returned to the system.

    Parameters
    ----------
    patience : cycles that a request may wait; longer than a peer waits before it gives up a packet

    Attributes
    ----------
    allowed : Signal, in    the host allows requests: Bus Master Enable
    running : Signal, in    the control program runs
    waits   : Signal, in    a request waits because requests are disabled
    enable  : Signal, out   requests may begin
    discard : Signal, out   requests that may not begin are dropped
    lost    : Signal, out   one cycle: halt the control program

    Cycles: 1 from `allowed` to `enable`; `patience` from `waits` to `lost`.
    """
    def __init__(self, patience):
        self.allowed = Signal()
        self.running = Signal()
        self.waits   = Signal()
        self.enable  = Signal()
        self.discard = Signal()
        self.lost    = Signal()

        # # #

        wait_cycles = Signal(max=patience)  # cycles that a request has waited
        self.sync += [
            self.enable.eq(self.allowed),
            self.discard.eq(~self.allowed & ~self.running),
            self.lost.eq(0),
            If(self.enable | ~self.running | ~self.waits,
                wait_cycles.eq(0)
            ).Elif(wait_cycles == patience - 1,
                wait_cycles.eq(0),
                self.lost.eq(1)
            ).Else(
                wait_cycles.eq(wait_cycles + 1)
            ),
        ]
