#!/usr/bin/env python3
"""The simulated board: the core with its two PHYs turned into ports of a Verilog module.

    python boards/sim.py --data-width 128 --clock 125e6 --output DIRECTORY

writes `dibber_card.v`, the initial contents of memories if there are any, and `dibber_card.f`, the
list of Verilog files for Verilator. A file whose text would not change is left alone. The models
at the ports, PCIe host and cable, are in hw/sim.

Ports of `dibber_card` (dw: data width):

    sys_clk, sys_rst
    pcie_rx_{valid,ready,first,last}, pcie_rx_dat[dw], pcie_rx_be[dw/8]     in    TLPs from the host
    pcie_tx_{valid,ready,first,last}, pcie_tx_dat[dw], pcie_tx_be[dw/8]     out   TLPs to the host
    pcie_id[16]                                    in    bus, device, function
    pcie_max_payload[16], pcie_max_request[16]     in    bytes
    pcie_extended_tags, pcie_msix_enable           in    configuration space bits
    pcie_bus_master                                in    requests to host memory may leave
    pcie_in_aperture                               in    a TLP to BAR 2 is at pcie_rx; only with
                                                         --window
    serial_tx_data[32], serial_tx_k[4]             out   four symbols, the first in the low bits
    serial_tx_ready                                in    the symbols are taken
    serial_loopback                                out   the transceiver is in loopback, and nothing
                                                         goes to the cable
    serial_rx_valid, serial_rx_data[32], serial_rx_k[4]                     in
    serial_rx_code_error[4], serial_rx_disparity_error[4]                   in
    serial_rx_signal                               in    the receiver sees a signal
    serial2_*                                      the same of the cable PREVIOUS of a pair of rings, or
                                                         of link 1 of two links
    with --fabric bonded, in place of serial_*, four lanes in 64b/66b (dibber/layouts.py, block_layout):
    row_tx_{valid,ready}, row_tx_header[8], row_tx_data[256]                out, in   a block of each lane
    laneN_rx_valid, laneN_rx_header[2], laneN_rx_data[64]                   in    of lane N, 0 to 3
    lanes_locked[4], lanes_signal                  in    a lane has its block lock; all see a signal
    with --mtu, in place of serial_*, the frame streams of a MAC (dibber/layouts.py, frame_layout):
    frame_tx_{valid,ready,last}, frame_tx_data[64], frame_tx_bytes[4]       out
    frame_rx_{valid,last,error}, frame_rx_data[64], frame_rx_bytes[4]       in
    frame_signal, frame_address[48]                in    the MAC is ready; the station's address
    jtag_tck, jtag_tms, jtag_tdi, jtag_tdo         in, in, in, out   TCK high and low for 3 cycles
    each
    flash_cs_n, flash_clk, flash_mosi, flash_miso  out, out, out, in a serial flash, mode 0
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import pathlib
import sys
from collections.abc import Iterable

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "gateware"))

from migen import *

from litex.gen import *
from litex.gen.fhdl.verilog import convert

from litex.soc.interconnect import stream

from litepcie.common import get_bar_mask, msi_layout, phy_layout

from dibber.common.elaboration import elaborate_quickly
from dibber.core import DibberCore
from dibber.debug.tap import TestAccessPort
from dibber.debug.transport import DebugTransport
from dibber.deposit.reach import FAR, WIDE
from dibber.fabric.ring.pair import RingPairPort
from dibber.fabric.ring.port import RingPort
from dibber.host.flash import flash_pads
from dibber.interface.description import C
from dibber.interface.generate import write_if_changed
from dibber.layouts import block_layout, frame_layout, row_layout, serial_rx_layout, serial_tx_layout
from dibber.link.bonded_port import BondedPort, attach_lanes
from dibber.link.ethernet.mac import attach_mac
from dibber.link.ethernet.port import EthernetPort
from dibber.link.ethernet.star import EthernetStar
from dibber.link.rows import LANES
from dibber.mcp.processor import SRAM_BYTES

# Platform -----------------------------------------------------------------------------------------

class SourceList:
    """The processor's needs of a platform: to register its Verilog, and a folder to write it to."""
    def __init__(self, output_dir: str | pathlib.Path | None = None) -> None:
        self.sources: list[str] = []
        self.output_dir = output_dir

    def add_source(self, path: str | pathlib.Path) -> None:
        self.sources.append(str(path))

# PHYs ---------------------------------------------------------------------------------------------

class SimPCIePHY(LiteXModule):
    """A LitePCIe PHY with the simulator's host model in place of the hard IP.

    Attributes
    ----------
    sink, source     : Endpoint(phy_layout), as in LitePCIe's PHYs
    id, max_payload_size, max_request_size, extended_tags, msix_enable, bus_master : configuration
    space
    """
    endianness    = "big"  # Each dword's bytes are swapped, as by the 7-series hard IP.
    qword_aligned = False

    def __init__(self, data_width: int) -> None:
        self.data_width       = data_width
        self.sink             = stream.Endpoint(phy_layout(data_width))
        self.source           = stream.Endpoint(phy_layout(data_width))
        self.msi              = stream.Endpoint(msi_layout())
        self.bar0_size        = C.BAR0_SIZE
        self.bar0_mask        = get_bar_mask(C.BAR0_SIZE)
        self.id               = Signal(16, name_override="pcie_id")
        self.max_payload_size = Signal(16, name_override="pcie_max_payload")
        self.max_request_size = Signal(16, name_override="pcie_max_request")
        self.extended_tags    = Signal(name_override="pcie_extended_tags")
        self.msix_enable      = Signal(name_override="pcie_msix_enable")
        self.bus_master       = Signal(name_override="pcie_bus_master")
        self.in_aperture      = Signal(name_override="pcie_in_aperture")

class SimSerialPHY(LiteXModule):
    """A transceiver with the simulator's cable in place of its analogue half."""
    def __init__(self, name: str = "serial") -> None:
        self.sink     = stream.Endpoint(serial_tx_layout())
        self.source   = stream.Endpoint(serial_rx_layout())
        self.signal   = Signal(name_override=f"{name}_rx_signal")
        self.loopback = Signal(name_override=f"{name}_loopback")

class SimMAC(LiteXModule):
    """An Ethernet MAC: the simulator has it, its cable and its address."""
    def __init__(self) -> None:
        self.sink    = stream.Endpoint(frame_layout())
        self.source  = stream.Endpoint(frame_layout())
        self.signal  = Signal(name_override="frame_signal")
        self.address = Signal(48, name_override="frame_address")

class SimLanes(LiteXModule):
    """The transceivers of four lanes with the simulator's cable in place of their analogue halves."""
    def __init__(self) -> None:
        self.sink    = stream.Endpoint(row_layout(LANES))
        self.sources = [stream.Endpoint(block_layout()) for _ in range(LANES)]
        self.locked  = Signal(LANES, name_override="lanes_locked")
        self.signal  = Signal(name_override="lanes_signal")

# Card ---------------------------------------------------------------------------------------------

# By name, as `link.fabric` of a profile: the port in place of a LinkPort, on the serial PHY or lanes.
FABRICS = {"direct": lambda: None, "two-links": lambda: None, "ring": RingPort, "ring-pair": RingPairPort,
    "bonded": BondedPort}
# Those with two serial PHYs.
TWO_CABLES = ("two-links", "ring-pair")

class SimCard(LiteXModule):
    """The core and its ports. `ios` is the set of signals that become ports."""
    def __init__(self, platform: SourceList, data_width: int, clock_hz: float, sram_bytes: int = SRAM_BYTES,
        window: bool = False, mtu: int | None = None, peers: int = 1, fabric: str = "direct", bulk_width: int = 32) -> None:
        self.cd_sys = ClockDomain()
        self.pcie   = SimPCIePHY(data_width)
        bonded = fabric == "bonded"
        if mtu is not None:
            self.serial = SimMAC()
        elif bonded:
            self.serial = SimLanes()
        else:
            self.serial = SimSerialPHY()
        self.flash  = flash_pads(clock_hz/4)
        if mtu is None:
            ethernet = None
        else:
            options: dict[str, int] = {"mtu": mtu, "bulk_width": bulk_width}
            ethernet = EthernetPort(**options) if peers == 1 else EthernetStar(peers, **options)
        serial: SimSerialPHY | list[SimSerialPHY] | None = self.serial if mtu is None and not bonded else None
        port        = ethernet or FABRICS[fabric]()
        phys        = {"serial": self.serial}
        if fabric in TWO_CABLES:
            self.serial2    = SimSerialPHY("serial2")
            phys["serial2"] = self.serial2
            serial          = [self.serial, self.serial2]
        self.core   = DibberCore(platform, self.pcie, serial, data_width, clock_hz, "sim", self.flash,
            reach=WIDE if data_width == 256 else FAR, sram_bytes=sram_bytes, port=port, window=window, hold_off=True,
            links=2 if fabric == "two-links" else 1)
        self.tap    = TestAccessPort()
        self.debug  = DebugTransport()
        self.ios    = {self.cd_sys.clk, self.cd_sys.rst}

        # # #

        self.comb += [
            self.tap.scan.connect(self.debug.scan),
            self.debug.dmi.connect(self.core.dmi),
        ]
        if ethernet is not None:
            self.comb += attach_mac(ethernet, self.serial)
        if bonded:
            self.comb += attach_lanes(port, self.serial)

        def pin(signal: Signal, name: str) -> None:
            """The signal of a PHY with the pin's name."""
            signal.name_override = name
            self.ios.add(signal)

        for prefix, endpoint in [("pcie_rx", self.pcie.source), ("pcie_tx", self.pcie.sink)]:
            for name in ["valid", "ready", "first", "last", "dat", "be"]:
                pin(getattr(endpoint, name), f"{prefix}_{name}")
        if bonded:
            for name in ["valid", "ready", "header", "data"]:
                pin(getattr(self.serial.sink, name), f"row_tx_{name}")
            for n, lane in enumerate(self.serial.sources):
                for name in ["valid", "header", "data"]:
                    pin(getattr(lane, name), f"lane{n}_rx_{name}")
            self.ios |= {self.serial.locked, self.serial.signal}
        elif mtu is None:
            for prefix, phy in phys.items():
                for name in ["ready", "data", "k"]:
                    pin(getattr(phy.sink, name), f"{prefix}_tx_{name}")
                for name in ["valid", "data", "k", "code_error", "disparity_error"]:
                    pin(getattr(phy.source, name), f"{prefix}_rx_{name}")
                self.ios |= {phy.signal, phy.loopback}
        else:
            for name in ["valid", "ready", "data", "bytes", "last"]:
                pin(getattr(self.serial.sink, name), f"frame_tx_{name}")
            for name in ["valid", "data", "bytes", "last", "error"]:
                pin(getattr(self.serial.source, name), f"frame_rx_{name}")
            self.ios |= {self.serial.signal, self.serial.address}
        for name in ["tck", "tms", "tdi", "tdo"]:
            pin(getattr(self.tap, name), f"jtag_{name}")
        for name in ["cs_n", "clk", "mosi", "miso"]:
            pin(getattr(self.flash, name), f"flash_{name}")
        self.ios |= {
            self.pcie.id, self.pcie.max_payload_size, self.pcie.max_request_size,
            self.pcie.extended_tags, self.pcie.msix_enable, self.pcie.bus_master}
        if window:
            self.ios.add(self.pcie.in_aperture)

# Build --------------------------------------------------------------------------------------------

def write_verilog(output: pathlib.Path, module: LiteXModule, ios: set[Signal], name: str, sources: Iterable[str] = ()) -> None:
    """Write the Verilog of a module into the directory `output`, and the list of its files.

    Parameters
    ----------
    ios     : set of signals that become ports
    name    : of the Verilog module, and of the files `name`.v and `name`.f
    sources : paths of other Verilog files, for the list
    """
    # A block for each combinatorial signal: Verilator takes Migen's assignments for blocking ones,
    # and then a block of several signals that depend on one another would be wrong.
    verilog = convert(module, ios, name=name, regular_comb=False)
    text    = verilog.main_source
    for file, contents in verilog.data_files.items():
        write_if_changed(output / file, contents)
        # The simulator may run in any directory.
        text = text.replace(f'$readmemh("{file}"', f'$readmemh("{(output / file).resolve()}"')
    # LiteX dates its output and names the commit; without them an unchanged design gives an
    # unchanged file.
    text = "\n".join(line for line in text.splitlines()
        if not line.startswith(("// Date", "// LiteX sha1")) and "Auto-Generated by LiteX" not in line)
    write_if_changed(output / f"{name}.v", text + "\n")
    paths = [str((output / f"{name}.v").resolve()), *sources]
    write_if_changed(output / f"{name}.f", "\n".join(paths) + "\n")

def generate(output: pathlib.Path, data_width: int, clock_hz: float, sram_bytes: int = SRAM_BYTES, window: bool = False,
    mtu: int | None = None, peers: int = 1, fabric: str = "direct", bulk_width: int = 32) -> None:
    """Write the Verilog of a card into the directory `output`."""
    output.mkdir(parents=True, exist_ok=True)
    platform = SourceList(output)
    card     = SimCard(platform, data_width, clock_hz, sram_bytes, window, mtu, peers, fabric, bulk_width)
    write_verilog(output, card, card.ios, "dibber_card", platform.sources)

def main() -> None:
    elaborate_quickly()
    parser = argparse.ArgumentParser(description="Generate the Verilog of the simulated card.")
    parser.add_argument("--data-width", type=int, choices=[64, 128, 256], default=128, help="bits of the data path")
    parser.add_argument("--clock",      type=float, default=125e6, help="frequency of sys_clk in Hz")
    parser.add_argument("--sram",       type=int, choices=[64, 128], default=SRAM_BYTES >> 10,
        help="KiB of the control program's SRAM")
    parser.add_argument("--window",     action="store_true", help="with the remote window")
    parser.add_argument("--mtu",        type=int, help="a link over Ethernet, with frames of so many bytes of payload")
    parser.add_argument("--peers",      type=int, default=1, help="other cards that such a link may have, 1 to 15")
    parser.add_argument("--bulk-width", type=int, choices=[32, 64], default=32,
        help="bits of a word of channel BULK on such a link")
    parser.add_argument("--fabric",     choices=FABRICS, default="direct", help="what the serial link is a part of")
    parser.add_argument("--output",     type=pathlib.Path, required=True, help="directory to write to")
    args = parser.parse_args()
    if args.mtu and args.fabric != "direct":
        parser.error("--mtu and --fabric exclude each other: those links are serial")
    if args.fabric == "bonded" and args.data_width != 256:
        parser.error("--fabric bonded is for --data-width 256")
    generate(args.output, args.data_width, args.clock, args.sram << 10, args.window, args.mtu, args.peers, args.fabric,
        args.bulk_width)

if __name__ == "__main__":
    main()
