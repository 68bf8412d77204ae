"""Common parts of all Xilinx boards with PCIe: clock, PCIe PHY, core and its debugger's port. The
board adds the PHY of its link.
"""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Any

from migen import *

from litex.gen import *

from litex.build.generic_platform import GenericPlatform
from litex.build.io import DifferentialInput

from litex.soc.cores.clock import S7PLL

from dibber.core import DibberCore
from dibber.debug.transport import DebugTransport
from dibber.mcp.processor import SRAM_BYTES, SRAM_SCARCE
from dibber.phy.flash import S7FlashPHY
from dibber.phy.jtag import XilinxJTAG
from dibber.phy.pcie import S7PCIePHY

# CRG ----------------------------------------------------------------------------------------------

class CRG(LiteXModule):
    """`sys` from a differential oscillator of 200 MHz; with `reference_freq` also `reference`, for
    a transceiver.

    PCIe has clocks of its own, so `sys` runs without a host too.
    """
    def __init__(self, platform: GenericPlatform, sys_clk_freq: float, reference_freq: float | None = None) -> None:
        self.cd_sys = ClockDomain()

        # # #

        pads   = platform.request("clk200")
        clk200 = Signal()
        self.specials += DifferentialInput(pads.p, pads.n, clk200)
        self.pll = pll = S7PLL(speedgrade=-2)
        pll.register_clkin(clk200, 200e6)
        pll.create_clkout(self.cd_sys, sys_clk_freq)
        if reference_freq:
            self.cd_reference = ClockDomain(reset_less=True)
            pll.create_clkout(self.cd_reference, reference_freq, with_reset=False, margin=0)

# Constraints --------------------------------------------------------------------------------------

# TCK clocks nothing here: `sys` samples the signals of BSCANE2, and TDO is stable before TCK falls.
JTAG_PATHS = "set_false_path -through [get_pins -of_objects [get_cells -hierarchical -filter {{REF_NAME == BSCANE2}}]]"

# Memory -------------------------------------------------------------------------------------------

def sram_of(device: str) -> int:
    """Bytes of the control program's SRAM on a part. An XC7A100T has block RAM only for the smaller
    SRAM.
    """
    return SRAM_SCARCE if device.startswith("xc7a100t") else SRAM_BYTES

# PCIe Board ---------------------------------------------------------------------------------------

class PCIeBoard(LiteXModule):
    """The card on a Xilinx part, of 7 series unless a board says otherwise. It sets up its link
    between `__init__` and `add_core`.

    Parameters
    ----------
    name           : of the board, as in hw/openocd/boards.toml
    platform       : LiteX platform; `clk200` is taken from it, and `spiflash` if it has that and the
                     family has a `flash_phy`
    pcie           : name of the connector's pads
    data_width     : 64 or 128
    sys_clk_freq   : Hz
    reference_freq : Hz of a clock for the transceiver, or None
    pcie_phy       : S7PCIePHY or its replacement
    crg            : CRG or its replacement

    Attributes
    ----------
    lit : list of Signal(), out   for three LEDs: link up, signal seen, PCIe up. After `add_core`
    """
    flash_phy: Callable[..., Any] | None = S7FlashPHY

    def __init__(self, name: str, platform: GenericPlatform, pcie: str, data_width: int, sys_clk_freq: float,
        reference_freq: float | None = None, pcie_phy: Callable[..., Any] = S7PCIePHY,
        crg: Callable[..., Any] = CRG) -> None:
        self.name         = name
        self.platform     = platform
        self.data_width   = data_width
        self.sys_clk_freq = sys_clk_freq
        self.crg          = crg(platform, sys_clk_freq, reference_freq)
        self.pcie         = pcie_phy(platform, platform.request(pcie), data_width)

        # # #

        self.asynchronous(self.pcie.cd_pcie.clk)

    def asynchronous(self, clock: Signal, to: Signal | None = None) -> None:
        """Declare that all paths between `clock` and `sys`, or `to`, end in synchronisers."""
        self.platform.add_false_path_constraints(self.crg.cd_sys.clk if to is None else to, clock)

    def add_core(self, serial: LiteXModule | list[LiteXModule] | None, core: Callable[..., Any] = DibberCore,
        port: LiteXModule | None = None, phys: list[LiteXModule] | None = None) -> None:
        """Add the core between PCIe and `serial`, its debug module behind the FPGA's JTAG port, and
        its access to the flash. `serial` and `port` are as for DibberCore. `phys` are the
        transceivers, if they are not `serial`.
        """
        serials = phys or (serial if isinstance(serial, list) else [serial])
        clocks  = []
        for phy in serials:
            if not getattr(phy, "absent", False):
                clocks += [phy.serdes.cd_tx.clk, phy.serdes.cd_rx.clk]
        for n, clock in enumerate(clocks):
            self.asynchronous(clock)
            for other in clocks[:n]:
                self.asynchronous(clock, to=other)
        pads       = self.platform.request("spiflash", loose=True) if self.flash_phy else None
        self.flash = self.flash_phy(pads) if self.flash_phy and pads else None
        self.core  = core(self.platform, self.pcie, serial, self.data_width, self.sys_clk_freq, self.name, self.flash.pads if self.flash else None,
            sram_bytes=sram_of(self.platform.device), hold_off=True, port=port)
        self.debug = DebugTransport()
        self.jtag  = XilinxJTAG()
        self.comb += [
            self.jtag.scan.connect(self.debug.scan),
            self.debug.dmi.connect(self.core.dmi),
        ]
        self.platform.add_platform_command(JTAG_PATHS)
        signal   = reduce(or_, [phy.signal for phy in serials])
        self.lit = [self.core.link.up, signal, self.pcie.link_up]
