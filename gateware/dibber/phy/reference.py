"""The reference clock of a quad of transceivers."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

class QuadReference(LiteXModule):
    """The reference clock of a quad, from its pins. Several PHYs of the quad may share it.

    Parameters
    ----------
    platform   : gets the constraint
    pads       : `p`, `n`
    freq       : Hz
    buffer     : the family's primitive, an IBUFDS_GTE
    parameters : of the primitive, without their `p_`

    Attributes
    ----------
    clk  : Signal, out
    freq : Hz
    """
    def __init__(self, platform, pads, freq, buffer, **parameters):
        self.clk  = reference = Signal()
        self.freq = freq

        # # #

        self.specials += Instance(buffer, i_CEB=0, i_I=pads.p, i_IB=pads.n, o_O=reference,
            **{f"p_{name}": value for name, value in parameters.items()})
        platform.add_period_constraint(pads.p, 1e9/freq)
