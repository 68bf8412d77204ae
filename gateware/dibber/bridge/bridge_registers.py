"""Bank `bridge`: what a program at the UART must know of the memory that it shares with the card.
"""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses

from migen import *

from litex.gen import *

from litex.soc.interconnect import wishbone

from dibber.common.register_bridge import RegisterBridge
from dibber.interface.description import BRIDGE, C
from dibber.interface.register_bank import RegisterBank

# Changes ------------------------------------------------------------------------------------------

class Changes(LiteXModule):
    """The words of CHANGED: bits that the card sets, in LUT memory, where they take a tenth of what
    they would as registers.

    The bus waits while the card sets one, so that none is lost which is set while its word is
    cleared. What they show before they were cleared once is undefined.

    Attributes
    ----------
    bus     : wishbone.Interface, in   of CHANGED; a store clears the bits that it has
    changed : Signal(), in             the card writes …
    chunk   : Signal, in               … into this part of the memory

    Cycles: 1 for a load or a store, and those in which a bit is set, which are one later than
    `changed`.
    """
    def __init__(self):
        self.bus     = bus = wishbone.Interface(data_width=32, adr_width=30)
        self.changed = Signal()
        self.chunk   = Signal(log2_int(C.BRIDGED_CHUNKS))

        # # #

        # What is decided in one cycle is written in the next.
        changed, chunk = Signal(), Signal.like(self.chunk)
        self.sync += [changed.eq(self.changed), chunk.eq(self.chunk)]

        words   = C.BRIDGED_CHUNKS//32
        memory  = Memory(32, words, name="changes")
        write   = memory.get_port(write_capable=True)
        read    = memory.get_port(async_read=True)
        self.specials += memory, write, read
        bits    = Signal(32)
        request = Signal()
        self.comb += [
            request.eq(bus.cyc & bus.stb),
            bits.eq(changed << chunk[:5]),
            read.adr.eq(Mux(changed, chunk[5:] + BRIDGE["CHANGED"].offset//4, bus.adr)),
            write.adr.eq(read.adr),
            write.dat_w.eq(bits | (read.dat_r & ~(bus.dat_w & Replicate(~changed, 32)))),
            write.we.eq(changed | (request & bus.we)),
            bus.dat_r.eq(read.dat_r),
            bus.ack.eq(request & ~changed),
        ]

# Bridge Registers ---------------------------------------------------------------------------------

class BridgeRegisters(LiteXModule):
    """What the memory is, where the card has written, and how many frames were bad.

    Parameters
    ----------
    memory_bytes : of the memory at BRIDGED_MEMORY, a power of two of at least BRIDGED_CHUNKS lines;
                   0: there is none

    Attributes
    ----------
    bus     : wishbone.Interface, in   of BRIDGE_BASE
    changed : Signal(), in             the card writes …
    chunk   : Signal(8), in            … into this one of BRIDGED_CHUNKS parts
    bad     : Signal(), in             a frame was dropped
    hold    : Signal(), out

    Cycles: 2 from `changed` to CHANGED; a load or a store of that takes 1, of others as
    RegisterBridge says.
    """
    def __init__(self, memory_bytes):
        self.bridge  = bridge = RegisterBridge()
        # Without memory there is nothing to tell of it.
        kept         = [r for r in BRIDGE.registers if r.name != "CHANGED" and (memory_bytes or r.access == "ro")]
        self.bank    = bank   = RegisterBank(dataclasses.replace(BRIDGE, registers=tuple(kept)), 32)
        self.bus     = bus    = wishbone.Interface(data_width=32, adr_width=30) if memory_bytes else bridge.bus
        self.changed = Signal()
        self.chunk   = Signal(log2_int(C.BRIDGED_CHUNKS))
        self.bad     = Signal()
        self.hold    = Signal()

        # # #

        frames = bank.status["BAD_FRAMES"][0]
        place  = lambda bus: bus.adr[:log2_int(0x100//4)]
        self.comb += [
            *[getattr(bank.port, name).eq(getattr(bridge.port, name)) for name in ["dat_w", "be", "we", "re"]],
            bank.port.adr.eq(place(bridge.port)),
            bridge.port.dat_r.eq(bank.port.dat_r),
            bank.status["MAGIC"][0].eq(C.BRIDGE_SIGNATURE),
            bank.status["MEMORY"][0].eq(memory_bytes),
        ]
        self.sync += frames.eq(frames + self.bad)
        if memory_bytes:
            self.changes = changes = Changes()
            register = BRIDGE["CHANGED"]
            first    = register.offset//4
            here     = Signal()
            self.comb += [
                self.hold.eq(bank.storage["HOLD"][0][0]),
                changes.changed.eq(self.changed),
                changes.chunk.eq(self.chunk),
                here.eq((place(bus) >= first) & (place(bus) < first + register.count)),
                *[bus.connect(slave, keep={"adr", "dat_w", "sel", "stb", "we"}) for slave in [bridge.bus, changes.bus]],
                bridge.bus.cyc.eq(bus.cyc & ~here),
                changes.bus.cyc.eq(bus.cyc & here),
                bus.ack.eq(Mux(here, changes.bus.ack, bridge.bus.ack)),
                bus.dat_r.eq(Mux(here, changes.bus.dat_r, bridge.bus.dat_r)),
            ]
