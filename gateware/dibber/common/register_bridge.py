"""From a Wishbone bus to registers."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import wishbone

from dibber.interface.register_bank import line_port

# Register Bridge ----------------------------------------------------------------------------------

class RegisterBridge(LiteXModule):
    """Wishbone to a 32-bit line port. A store takes 1 cycle, a load 3.

    A held load reads its register again in each cycle. It is answered in the first cycle with
    `release`, with what the register was one cycle before.

    Parameters
    ----------
    whole : whether a store is of a whole word, where that is known earlier than the bus; others are
            then ignored
    held, release : whether a load on the bus is held, and whether held loads are answered

    Attributes
    ----------
    bus  : wishbone.Interface, in
    port : line_port(32), out      word addressed
    """
    def __init__(self, whole=None, held=0, release=1):
        self.bus  = bus  = wishbone.Interface(data_width=32, adr_width=30)
        self.port = port = line_port(32)

        # # #

        request = bus.cyc & bus.stb
        waiting = Signal(2)
        self.sync += If(bus.ack, waiting.eq(0)).Else(waiting.eq(Cat(port.re, waiting[0])))
        self.comb += [
            port.adr.eq(bus.adr),
            port.dat_w.eq(bus.dat_w),
            port.be.eq(bus.sel if whole is None else 0xf),
            port.we.eq(request & bus.we & (1 if whole is None else whole)),
            port.re.eq(request & ~bus.we & ((waiting == 0) | held)),
            bus.dat_r.eq(port.dat_r),
            bus.ack.eq(request & (bus.we | (waiting[1] & (~held | release)))),
        ]
