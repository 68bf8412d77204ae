"""What happens when the host takes the right to reach its memory away: the Bus Master Enable bit.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

# Bus Master ---------------------------------------------------------------------------------------

class BusMaster(LiteXModule):
    """Hold requests back while the bit is clear, and halt the control program when one waits too
    long.

    While the program runs requests are held, because the host may set the bit again. After
    `patience` cycles the program is halted: completions cannot reach the host, and a halt is what
    the host can see. While the program is halted requests are dropped, because memory that the old
    program was granted may be given back.

    Parameters
    ----------
    patience : cycles that a request may wait; longer than a peer waits before it gives a packet up

    Attributes
    ----------
    allowed : Signal, in    the host allows requests: Bus Master Enable
    running : Signal, in    the control program runs
    waits   : Signal, in    a request is here and may not begin
    enable  : Signal, out   requests may begin
    discard : Signal, out   requests that may not begin are dropped
    lost    : Signal, out   one cycle: the control program is to be halted

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

        held = Signal(max=patience)  # cycles that a request has waited
        self.sync += [
            self.enable.eq(self.allowed),
            self.discard.eq(~self.allowed & ~self.running),
            self.lost.eq(0),
            If(self.enable | ~self.running | ~self.waits,
                held.eq(0)
            ).Elif(held == patience - 1,
                held.eq(0),
                self.lost.eq(1)
            ).Else(
                held.eq(held + 1)
            ),
        ]
