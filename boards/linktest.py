"""A link tester, which is less than a card: the link, its test equipment, the host registers and
access to the flash, for a board's first day.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.build.generic_platform import GenericPlatform

from litex.soc.interconnect import wishbone

from dibber.bridge.bridge_registers import BridgeRegisters
from dibber.bridge.frames import FrameBridge
from dibber.bridge.root import BANK_BYTES, BAR_BASE
from dibber.common.register_bridge import RegisterBridge
from dibber.fabric.ring.port import RingPort
from dibber.host.flash import FlashPort
from dibber.interface.description import C, COUNTERS
from dibber.interface.register_bank import connect_lines
from dibber.link.equipment import LinkEquipment, attach_equipment
from dibber.link.port import LinkPort
from dibber.mcp.host_registers import HostRegisters

from boards.bridged import SILENCE

# Link Tester --------------------------------------------------------------------------------------

class LinkTester(LiteXModule):
    """Two of these at the ends of a cable come UP, measure it, and send each other PRBS; they carry
    no packets.

    The registers have the addresses and meanings of a card's, from address 0 of the UART bridge on.
    Registers of absent parts read 0. It is built in minutes; a card takes some 50.

    Parameters
    ----------
    platform     : not used: there is no processor
    uart, serial, sys_clk_freq, board, flash : as BridgedCard
    port         : a sibling of LinkPort on `serial`, in place of a LinkPort

    Attributes
    ----------
    link_up : Signal, out
    """
    def __init__(self, platform: GenericPlatform, uart: LiteXModule, serial: LiteXModule, sys_clk_freq: float,
        board: str = "", flash: Record | None = None, port: LiteXModule | None = None) -> None:
        self.frames    = frames    = FrameBridge(int(SILENCE*sys_clk_freq), room=16)
        self.registers = own       = BridgeRegisters(memory_bytes=0)
        self.bridge    = bridge    = RegisterBridge()
        self.link      = link      = port or LinkPort(channels=4)
        self.equipment = equipment = LinkEquipment()
        counters       = {name: Signal() for name, _ in COUNTERS} | link.counters
        self.flash     = None if flash is None else FlashPort(32, sys_clk_freq, flash)
        self.identity  = identity  = HostRegisters(
            32, sys_clk_freq, counters, board, self.flash, ring=hasattr(port, "scrubber"))
        self.link_up   = link.up

        # # #

        self.comb += [
            uart.source.connect(frames.sink),
            frames.source.connect(uart.sink),
            own.bad.eq(frames.bad),
            *connect_lines(bridge.port, identity.port, *([] if self.flash is None else [self.flash.port])),

            *[source.ready.eq(1) for source in link.sources],
            *attach_equipment(link, equipment, serial, identity),
        ]
        self.decode = wishbone.Decoder(frames.bus, [
            (lambda adr: adr[log2_int(C.BAR0_SIZE//4):] == BAR_BASE//C.BAR0_SIZE, bridge.bus),
            (lambda adr: adr[log2_int(BANK_BYTES//4):] == C.BRIDGE_BASE//BANK_BYTES, own.bus),
        ])


class RingTester(LinkTester):
    """A link tester that is a node of a ring: two of these at the ends of a cable are a ring of two.

    They elect a scrubber, number each other and measure the way round. More of them make a larger
    ring, whose cables go one way.
    """
    def __init__(self, platform: GenericPlatform, uart: LiteXModule, serial: LiteXModule, sys_clk_freq: float,
        board: str = "", flash: Record | None = None) -> None:
        LinkTester.__init__(self, platform, uart, serial, sys_clk_freq, board, flash, RingPort())
