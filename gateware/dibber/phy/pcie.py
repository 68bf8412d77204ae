"""PCIe on Xilinx 7-series: LitePCIe's PHY around the hard block, with this card's configuration."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *
from migen.genlib.cdc import MultiReg

from litepcie.phy.s7pciephy import S7PCIEPHY

from dibber.interface.description import C

QWORD = 8  # bytes; unit of the IP's options for MSI-X table offsets. `check` below verifies it.

# 7-Series PCIe PHY --------------------------------------------------------------------------------

class S7PCIePHY(S7PCIEPHY):
    """LitePCIe's PHY with this card's identity, BAR and MSI-X table, and with two more status bits.

    `sys` may be any clock, because TLPs cross clock domains in LitePCIe's FIFOs.

    Parameters
    ----------
    platform   : gets constraints, and the Tcl that makes the vendor's IP and checks it
    pads       : of the connector; their number is the width of the link
    data_width : 64 or 128, as the core's; x1 has 64

    Attributes
    ----------
    extended_tags : Signal, out   more than 32 reads may be in flight
    msix_enable   : Signal, out
    link_up       : Signal, out
    bus_master    : Signal, out   requests may be sent: Bus Master Enable is set, the power state is
                    D0, and the link is up
    all others    : see S7PCIEPHY
    """
    def __init__(self, platform, pads, data_width):
        S7PCIEPHY.__init__(
            self, platform, pads, data_width=data_width, bar0_size=C.BAR0_SIZE, msi_type="msi-x")
        self.extended_tags = Signal()
        self.msix_enable   = self._msix_enable.status
        self.link_up       = self._link_status.fields.status

        self.bus_master    = Signal()

        # # #

        # PCIe Base 3.0, 5.3.1.4.1: in D3hot a function sends no requests. Requests that are in the
        # FIFOs between `sys` and the hard block when the bit is cleared are still sent.
        power   = Signal(2, name="power_state")    # 0: D0
        # Only one bit crosses to `sys`, so no intermediate state can be seen.
        awake   = Signal(name="power_awake")
        powered = Signal(name="power_awake_sys")
        self.pcie_phy_params["o_cfg_pmcsr_powerstate"] = power
        self.sync.pcie += awake.eq(power == 0)
        self.specials += MultiReg(awake, powered)
        self.sync += self.bus_master.eq(
            self._bus_master_enable.status & powered & self._link_status.fields.status)

        # The device control register from the hard block; bit 8 is Extended Tag Field Enable.
        control = self.pcie_phy_params["o_cfg_dcommand"]
        self.specials += MultiReg(control[8], self.extended_tags)
        self.update_config({
            "Vendor_ID"                       : f"{C.PCI_VENDOR:04x}",
            "Device_ID"                       : f"{C.PCI_DEVICE:04x}",
            "Subsystem_Vendor_ID"             : f"{C.PCI_VENDOR:04x}",
            "Subsystem_ID"                    : f"{C.PCI_DEVICE:04x}",
            "Use_Class_Code_Lookup_Assistant" : False,
            "Class_Code_Base"                 : f"{C.PCI_CLASS >> 16:02x}",
            "Class_Code_Sub"                  : f"{C.PCI_CLASS >> 8 & 0xff:02x}",
            "Class_Code_Interface"            : f"{C.PCI_CLASS & 0xff:02x}",
            "Extended_Tag_Field"              : True,
            "MSIx_Table_Size"                 : f"{C.VECTORS:x}",
            "MSIx_Table_Offset"               : f"{C.MSIX_TABLE_BASE//QWORD:x}",
            "MSIx_PBA_Offset"                 : f"{C.MSIX_PBA_BASE//QWORD:x}",
        })
        platform.toolchain.pre_placement_commands += check({
            "MSIX_CAP_TABLE_SIZE"   : C.VECTORS - 1,
            "MSIX_CAP_TABLE_OFFSET" : C.MSIX_TABLE_BASE//QWORD,
            "MSIX_CAP_PBA_OFFSET"   : C.MSIX_PBA_BASE//QWORD,
        })


def check(wanted, block="PCIE_2_1"):
    """Tcl that stops the build unless the hard block in the netlist has these parameters.

    Sources disagree about the unit of the IP's options; only the block's parameters count.
    """
    return [f"set block [get_cells -hierarchical -filter {{{{REF_NAME == {block}}}}}]"] + [
        f"if {{{{[scan [lindex [split [get_property {name} $block] h] end] %x found] != 1 "
        f"|| $found != {value}}}}} "
        f"{{{{error \"{name} of the PCIe block is [get_property {name} $block], not {value:x}\"}}}}"
        for name, value in wanted.items()]
