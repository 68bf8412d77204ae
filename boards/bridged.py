"""A card without PCIe: the core on a host bridge, for any board with a serial port and a
transceiver.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.build.generic_platform import GenericPlatform

from litex.soc.cores.uart import RS232PHY

from dibber.bridge.frames import FrameBridge
from dibber.bridge.root import RootComplex
from dibber.core import DibberCore
from dibber.deposit.reach import NEAR
from dibber.debug.transport import DebugTransport
from dibber.mcp.processor import SRAM_SCARCE

# Geometry -----------------------------------------------------------------------------------------

DATA_WIDTH   = 64
MEMORY_BYTES = 64*1024  # shared by a program on the bridge and the card
# Endpoint 0 belongs to the administrator, and no program has more than three. nextpnr cannot route
# 8 on ECPIX-5
ENDPOINTS    = 4
BAUDRATE     = 1_000_000
# seconds without a byte that end a begun frame; USB leaves gaps of a few milliseconds
SILENCE      = 0.02

# Bridged Card -------------------------------------------------------------------------------------

class BridgedCard(LiteXModule):
    """Core, root complex, and frames of a UART on its bus; libdibber opens it as `uart:PORT`.
    Clocks are the board's.

    Parameters
    ----------
    platform     : gets the processor's Verilog
    uart         : the UART's PHY: `sink` and `source` of bytes
    serial       : serial PHY, see DibberCore
    sys_clk_freq : Hz
    board, flash : see DibberCore

    Attributes
    ----------
    root, core : RootComplex, DibberCore
    link_up    : Signal, out
    scan       : scan_port, in   the debugger's, from the FPGA's JTAG port
    """
    def __init__(self, platform: GenericPlatform, uart: LiteXModule, serial: LiteXModule, sys_clk_freq: float,
        board: str = "", flash: Record | None = None) -> None:
        self.root    = root = RootComplex(DATA_WIDTH, MEMORY_BYTES)
        self.core    = core = DibberCore(platform, root, serial, DATA_WIDTH, sys_clk_freq, board, flash, NEAR, ENDPOINTS,
            SRAM_SCARCE)
        self.frames  = frames = FrameBridge(int(SILENCE*sys_clk_freq))
        self.debug   = DebugTransport()
        self.link_up = core.link.up
        self.scan    = self.debug.scan

        # # #

        self.comb += self.debug.dmi.connect(core.dmi)
        self.comb += [
            uart.source.connect(frames.sink),
            frames.source.connect(uart.sink),
            frames.bus.connect(root.bus),
            root.bad_frame.eq(frames.bad),
        ]


class UARTPHY(RS232PHY):
    """A UART at the pads `rx`, `tx`, 8N1."""
    def __init__(self, pads: Record, sys_clk_freq: float) -> None:
        RS232PHY.__init__(self, pads, sys_clk_freq, BAUDRATE)
