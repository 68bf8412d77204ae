"""Register bank `bridge`: the state of the shared memory, for a program at the UART."""

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
    """The words of CHANGED: bits that the card sets. In LUT memory they need a tenth of the area of
    registers.

    The bus waits in a cycle in which the card sets a bit. So no bit is lost that is set while its
    word is cleared. Their initial values are undefined until they are cleared once.

    Attributes
    ----------
    bus     : wishbone.Interface, in   of CHANGED; a store clears the bits that are 1 in its data
    changed : Signal(), in             the card writes to part `chunk` of the memory
    chunk   : Signal, in

    Cycles: 1 for a load or a store, plus the cycles in which a bit is set (one after `changed`).
    """
    def __init__(self):
        self.bus     = bus = wishbone.Interface(data_width=32, adr_width=30)
        self.changed = Signal()
        self.chunk   = Signal(log2_int(C.BRIDGED_CHUNKS))

        # # #

        # Inputs are registered, and written in the next cycle.
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
    """Registers for the memory: its size, where the card has written, and the number of bad frames.

    Parameters
    ----------
    memory_bytes : size of the memory at BRIDGED_MEMORY: a power of two, at least BRIDGED_CHUNKS
                   lines; 0 if there is none

    Attributes
    ----------
    bus     : wishbone.Interface, in   of BRIDGE_BASE
    changed : Signal(), in             the card writes to part `chunk` of the memory
    chunk   : Signal(8), in            0 to BRIDGED_CHUNKS - 1
    bad     : Signal(), in             a frame was dropped
    hold    : Signal(), out

    Cycles: 2 from `changed` to CHANGED; 1 for a load or store of CHANGED, for others as
    RegisterBridge.
    """
    def __init__(self, memory_bytes):
        self.bridge  = bridge = RegisterBridge()
        # Without memory, only the read-only registers exist.
        kept         = [
            r for r in BRIDGE.registers
            if r.name != "CHANGED" and (memory_bytes or r.access == "ro")]
        self.bank    = bank   = RegisterBank(dataclasses.replace(BRIDGE, registers=tuple(kept)), 32)
        self.bus     = bus    = wishbone.Interface(
            data_width=32, adr_width=30) if memory_bytes else bridge.bus
        self.changed = Signal()
        self.chunk   = Signal(log2_int(C.BRIDGED_CHUNKS))
        self.bad     = Signal()
        self.hold    = Signal()

        # # #

        frames       = bank.status["BAD_FRAMES"][0]
        word_address = lambda bus: bus.adr[:log2_int(0x100//4)]
        self.comb += [
            *[
                getattr(bank.port, name).eq(getattr(bridge.port, name))
                for name in ["dat_w", "be", "we", "re"]],
            bank.port.adr.eq(word_address(bridge.port)),
            bridge.port.dat_r.eq(bank.port.dat_r),
            bank.status["MAGIC"][0].eq(C.BRIDGE_SIGNATURE),
            bank.status["MEMORY"][0].eq(memory_bytes),
        ]
        self.sync += frames.eq(frames + self.bad)
        if memory_bytes:
            self.changes = changes = Changes()
            register   = BRIDGE["CHANGED"]
            first      = register.offset//4
            in_changed = Signal()
            self.comb += [
                self.hold.eq(bank.storage["HOLD"][0][0]),
                changes.changed.eq(self.changed),
                changes.chunk.eq(self.chunk),
                in_changed.eq(
                    (word_address(bus) >= first) & (word_address(bus) < first + register.count)),
                *[
                    bus.connect(slave, keep={"adr", "dat_w", "sel", "stb", "we"})
                    for slave in [bridge.bus, changes.bus]],
                bridge.bus.cyc.eq(bus.cyc & ~in_changed),
                changes.bus.cyc.eq(bus.cyc & in_changed),
                bus.ack.eq(Mux(in_changed, changes.bus.ack, bridge.bus.ack)),
                bus.dat_r.eq(Mux(in_changed, changes.bus.dat_r, bridge.bus.dat_r)),
            ]
