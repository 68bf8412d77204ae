"""PCIe on Kintex and Virtex UltraScale: the vendor's IP, and one stream of TLPs each way."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *
from migen.genlib.cdc import MultiReg

from litex.gen import *

from litepcie.phy.common import PHYRXDatapath, PHYTXDatapath

from dibber.interface.description import C
from dibber.phy.pcie import QWORD, check
from dibber.phy.ultrascale.arrival import Arrival
from dibber.phy.ultrascale.departure import Departure
from dibber.phy.ultrascale.streams import ULTRASCALE

REFERENCE_HZ = 100e6

# The largest payload and read request of the card, in bytes. The capability says no more.
MOST_BYTES = 512

# Widths of the block's outputs that are not used need not be known. Inputs that are tied, by the
# names of PG156, "Port Descriptions". The link trains by itself; nothing is written to the
# configuration space, no message is sent, no error is reported, no interrupt is asked for, because
# the card sends its interrupts as memory writes.
TIED = {
    "pcie_cq_np_req": 1, "cfg_link_training_enable": 1, "cfg_config_space_enable": 1,
    **dict.fromkeys("""cfg_mgmt_addr cfg_mgmt_write cfg_mgmt_write_data cfg_mgmt_byte_enable
        cfg_mgmt_read cfg_mgmt_type1_cfg_reg_access cfg_msg_transmit cfg_msg_transmit_type
        cfg_msg_transmit_data cfg_fc_sel cfg_per_func_status_control cfg_per_function_number
        cfg_per_function_output_request cfg_dsn cfg_err_cor_in cfg_err_uncor_in cfg_vf_flr_done
        cfg_interrupt_int cfg_interrupt_pending cfg_interrupt_msix_address cfg_interrupt_msix_data
        cfg_interrupt_msix_int cfg_interrupt_msi_function_number cfg_req_pm_transition_l23_ready
        cfg_hot_reset_in cfg_ds_port_number cfg_ds_bus_number cfg_ds_device_number
        cfg_ds_function_number pcie_perstn1_in""".split(), 0),
}

def options(lanes, speed, mhz, data_width):
    """The IP's options; `speed` in GT/s, as text."""
    return {
        "PL_LINK_CAP_MAX_LINK_WIDTH"   : f"X{lanes}",
        "PL_LINK_CAP_MAX_LINK_SPEED"   : f"{speed}_GT/s",
        "axisten_if_width"             : f"{data_width}_bit",
        "axisten_freq"                 : mhz,
        "AXISTEN_IF_RC_STRADDLE"       : "false",
        "axisten_if_enable_client_tag" : "true",
        "extended_tag_field"           : "true",
        "pf0_dev_cap_max_payload"      : f"{MOST_BYTES}_bytes",
        "vendor_id"                    : f"{C.PCI_VENDOR:04x}",
        "PF0_DEVICE_ID"                : f"{C.PCI_DEVICE:04x}",
        "PF0_SUBSYSTEM_VENDOR_ID"      : f"{C.PCI_VENDOR:04x}",
        "PF0_SUBSYSTEM_ID"             : f"{C.PCI_DEVICE:04x}",
        "pf0_class_code_base"          : f"{C.PCI_CLASS >> 16:02x}",
        "pf0_class_code_sub"           : f"{C.PCI_CLASS >> 8 & 0xff:02x}",
        "pf0_class_code_interface"     : f"{C.PCI_CLASS & 0xff:02x}",
        "pf0_bar0_64bit"               : "false",
        "pf0_bar0_scale"               : "Megabytes",
        "pf0_bar0_size"                : C.BAR0_SIZE >> 20,
        "pf0_msi_enabled"              : "false",
        "pf0_msix_enabled"             : "true",
        "PF0_MSIX_CAP_TABLE_SIZE"      : f"{C.VECTORS - 1:03x}",
        "PF0_MSIX_CAP_TABLE_BIR"       : "BAR_0",
        "PF0_MSIX_CAP_TABLE_OFFSET"    : f"{C.MSIX_TABLE_BASE:08x}",
        "PF0_MSIX_CAP_PBA_BIR"         : "BAR_0",
        "PF0_MSIX_CAP_PBA_OFFSET"      : f"{C.MSIX_PBA_BASE:08x}",
        "PF0_INTERRUPT_PIN"            : "NONE",
        "aspm_support"                 : "No_ASPM",
        "mode_selection"               : "Advanced",
    }

class USPCIePHY(LiteXModule):
    """PCIe Gen2 x4 at 128 bits and 125 MHz, or Gen3 x8 at 256 bits and 250 MHz, for HostInterface:
    docs/design/ultrascale.md

    Parameters
    ----------
    platform   : gets constraints, and the Tcl that makes the vendor's IP and checks it
    pads       : of the connector; 4 lanes, or 8
    data_width : 128 or 256, as the core's

    Attributes
    ----------
    sink, source : Endpoint(phy_layout), in, out   domain sys
    quads        : True, see HostInterface
    id           : Signal(16), 0: the block has the card's ID
    max_payload_size, max_request_size : Signal(16), out   bytes
    msix_enable  : Signal, out
    bus_master   : Signal, out   requests may be sent: Bus Master Enable is set, the power state is
                   D0, and the link is up
    link_up      : Signal, out
    cd_pcie      : the block's clock

    More than 32 reads are never in flight, because the block does not show whether the host has
    allowed extended tags.
    """
    endianness    = "little"
    qword_aligned = False
    quads         = True

    def __init__(self, platform, pads, data_width):
        lanes, speed, mhz = {128: (4, "5.0", 125), 256: (8, "8.0", 250)}[data_width]
        assert len(pads.tx_p) == lanes
        self.data_width       = data_width
        self.bar0_size        = C.BAR0_SIZE
        self.id               = Signal(16)
        self.max_payload_size = Signal(16)
        self.max_request_size = Signal(16)
        self.msix_enable      = Signal()
        self.bus_master       = Signal()
        self.link_up          = Signal()
        self.cd_pcie          = ClockDomain()

        # # #

        # Streams ----------------------------------------------------------------------------------

        self.up   = up   = PHYTXDatapath(data_width, data_width, "sys")
        self.down = down = PHYRXDatapath(data_width, data_width, "sys")
        self.sink, self.source = up.sink, down.source
        in_pcie = ClockDomainsRenamer("pcie")
        self.departure = departure = in_pcie(Departure(data_width, ULTRASCALE))
        self.arrival   = arrival   = in_pcie(Arrival(data_width, ULTRASCALE))
        self.comb += [
            up.source.connect(departure.sink),
            arrival.source.connect(down.sink),
        ]

        # Block ------------------------------------------------------------------------------------

        reference, reference_gt, reset_n = Signal(), Signal(), Signal()
        self.specials += Instance("IBUFDS_GTE3",
            p_REFCLK_HROW_CK_SEL = 0,
            i_CEB   = 0,
            i_I     = pads.clk_p,
            i_IB    = pads.clk_n,
            o_O     = reference_gt,
            o_ODIV2 = reference)
        platform.add_period_constraint(pads.clk_p, 1e9/REFERENCE_HZ)
        self.cd_pcie.clk.attr.add("keep")
        self.comb += reset_n.eq(pads.rst_n)
        status, power, up_now     = Signal(16), Signal(12), Signal()
        payload, request          = Signal(3), Signal(3)
        msix                      = Signal(4)
        resetting, reset_before   = Signal(4), Signal(4)
        power_changes             = Signal()
        power_changed             = Signal()
        streams = {}
        for name, endpoint, given in [
            ("s_axis_rq", departure.rq, True),  ("s_axis_cc", departure.cc, True),
            ("m_axis_cq", arrival.cq,   False), ("m_axis_rc", arrival.rc,   False)]:
            for field, signal in [("data", endpoint.data), ("keep", endpoint.keep),
                ("user", endpoint.user), ("valid", endpoint.valid), ("last", endpoint.last)]:
                streams[f"{'i' if given else 'o'}_{name}_t{field}"] = signal
            ready = endpoint.ready
            if given:
                # Four bits that are always alike.
                four = Signal(4, name=f"{name}_ready")
                self.comb += endpoint.ready.eq(four[0])
                ready = four
            streams[f"{'o' if given else 'i'}_{name}_tready"] = ready
        self.specials += Instance("pcie_us",
            i_sys_clk    = reference,
            i_sys_clk_gt = reference_gt,
            i_sys_reset  = reset_n,  # PG156: active low
            o_pci_exp_txp = pads.tx_p, o_pci_exp_txn = pads.tx_n,
            i_pci_exp_rxp = pads.rx_p, i_pci_exp_rxn = pads.rx_n,
            o_user_clk    = self.cd_pcie.clk,
            o_user_reset  = self.cd_pcie.rst,
            o_user_lnk_up = up_now,
            **streams,
            o_pcie_rq_seq_num     = departure.reports[0].number,
            o_pcie_rq_seq_num_vld = departure.reports[0].valid,
            o_cfg_max_payload          = payload,
            o_cfg_max_read_req         = request,
            o_cfg_function_status      = status,
            o_cfg_function_power_state = power,
            o_cfg_interrupt_msix_enable = msix,
            o_cfg_flr_in_process = resetting,
            i_cfg_flr_done       = resetting & ~reset_before,
            o_cfg_power_state_change_interrupt = power_changes,
            i_cfg_power_state_change_ack       = power_changed,
            i_cfg_subsys_vend_id = C.PCI_VENDOR,
            **{f"i_{name}": value for name, value in TIED.items()})
        self.sync.pcie += [
            reset_before.eq(resetting),
            power_changed.eq(power_changes),
        ]

        # Status -----------------------------------------------------------------------------------

        # PG156, cfg_function_status: I/O space, memory space, bus master, no interrupts. Only one
        # bit crosses to `sys`. Requests that are between `sys` and the block when it changes are
        # still sent.
        allowed, msix_now = Signal(), Signal()
        self.sync.pcie += [
            allowed.eq(status[2] & (power[:3] == 0) & up_now),
            msix_now.eq(msix[0]),
        ]
        link_now = Signal()
        self.sync.pcie += link_now.eq(up_now)
        self.specials += [
            MultiReg(allowed, self.bus_master),
            MultiReg(msix_now, self.msix_enable),
            MultiReg(link_now, self.link_up),
        ]
        for code, size in [(payload, self.max_payload_size), (request, self.max_request_size)]:
            crossed = Signal(3)
            self.specials += MultiReg(code, crossed)
            self.comb += Case(crossed, {
                **{n: size.eq(min(128 << n, MOST_BYTES)) for n in range(6)},
                "default": size.eq(128)})

        # Vivado -----------------------------------------------------------------------------------

        config = options(lanes, speed, mhz, data_width)
        platform.toolchain.pre_synthesis_commands += [
            "create_ip -vendor xilinx.com -name pcie3_ultrascale -module_name pcie_us",
            "set_property -dict [list " + " ".join(
                f"CONFIG.{name} {{{{{value}}}}}" for name, value in config.items()
            ) + "] [get_ips pcie_us]",
            "synth_ip [get_ips pcie_us]",
        ]
        platform.toolchain.pre_placement_commands += check({
            "PF0_MSIX_CAP_TABLE_SIZE"      : C.VECTORS - 1,
            "PF0_MSIX_CAP_TABLE_OFFSET"    : C.MSIX_TABLE_BASE//QWORD,
            "PF0_MSIX_CAP_PBA_OFFSET"      : C.MSIX_PBA_BASE//QWORD,
            "PF0_DEV_CAP_MAX_PAYLOAD_SIZE" : (MOST_BYTES//128).bit_length() - 1,
        }, block="PCIE_3_1")
