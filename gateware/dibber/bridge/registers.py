# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Bank `bridge`: what a program at the UART must know of the memory that it shares with the card."""

import dataclasses

from migen import *

from litex.gen import *

from dibber.interface.description import BRIDGE, C
from dibber.interface.registers import RegisterBank
from dibber.mcp.processor import RegisterBridge

# Bridge Registers ---------------------------------------------------------------------------------

class BridgeRegisters(LiteXModule):
    """What the memory is, where the card has written, and how many frames were bad.

    Parameters
    ----------
    memory_bytes : of the memory at BRIDGED_MEMORY, a power of two of at least BRIDGED_CHUNKS lines; 0: there is none

    Attributes
    ----------
    bus     : wishbone.Interface, in   of BRIDGE_BASE
    changed : Signal(), in             the card writes …
    chunk   : Signal(8), in            … into this one of BRIDGED_CHUNKS parts
    bad     : Signal(), in             a frame was dropped
    hold    : Signal(), out

    Cycles: 2 from `changed` to CHANGED.
    """
    def __init__(self, memory_bytes):
        self.bridge  = bridge = RegisterBridge()
        # Without memory there is nothing to tell of it.
        kept         = [r for r in BRIDGE.registers if memory_bytes or r.access == "ro"]
        self.bank    = bank   = RegisterBank(dataclasses.replace(BRIDGE, registers=tuple(kept)), 32)
        self.bus     = bridge.bus
        self.changed = Signal()
        self.chunk   = Signal(log2_int(C.BRIDGED_CHUNKS))
        self.bad     = Signal()
        self.hold    = Signal()

        # # #

        frames = bank.status["BAD_FRAMES"][0]
        self.comb += [
            *[getattr(bank.port, name).eq(getattr(bridge.port, name)) for name in ["dat_w", "be", "we", "re"]],
            bank.port.adr.eq(bridge.port.adr[:log2_int(0x100//4)]),
            bridge.port.dat_r.eq(bank.port.dat_r),
            bank.status["MAGIC"][0].eq(C.BRIDGE_SIGNATURE),
            bank.status["MEMORY"][0].eq(memory_bytes),
        ]
        self.sync += frames.eq(frames + self.bad)
        if memory_bytes:
            # Of what is decided in one cycle the bit is set in the next.
            changed, chunk = Signal(), Signal.like(self.chunk)
            self.sync += [changed.eq(self.changed), chunk.eq(self.chunk)]
            self.comb += self.hold.eq(bank.storage["HOLD"][0][0])
            for n, bits in enumerate(bank.status["CHANGED"]):
                self.comb += If(changed & (chunk[5:] == n), bits.eq(1 << chunk[:5]))
