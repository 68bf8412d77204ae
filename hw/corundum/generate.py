"""Write Dibber as an application of Corundum: the core, and the block that Corundum instantiates.

    python hw/corundum/generate.py --pcie 256 --output build/corundum/256

The folder gets `dibber_corundum_core.v` and the processor's Verilog, `mqnic_app_block.v`, and copies
of `rtl/`: all files that a checkout of Corundum needs (docs/corundum.md). Nothing of Corundum is
read.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "gateware"), str(HERE)]

import interface

from migen import Cat, ClockDomain, Constant, Signal

from litex.gen import LiteXModule

from boards.sim import SourceList, write_verilog

from dibber.common.elaboration import elaborate_quickly
from dibber.core import BUS_MASTER_SECONDS, DibberCore
from dibber.host.corundum import CorundumHost
from dibber.link.ethernet.port import EthernetPort
from dibber.mcp.processor import SRAM_BYTES

CLOCK_HZ = 250e6
DATA_WIDTH = 128
SEGMENTS = 2  # of Corundum's RAM, at each width of PCIe
PCIE_WIDTHS = (128, 256, 512)
APP_ID = 0x44494252  # "DIBR"
SEGMENT_ADDRESS = 16  # bits of a segment's address at the core's pins

# Address of a card, of which the nonce is the end: locally administered, then "DIB".
ADDRESS = (0x02, 0x44, 0x49, 0x42)

# Core ---------------------------------------------------------------------------------------------


class CorundumCore(LiteXModule):
    """DibberCore between Corundum's DMA interface and the frames of a MAC. `ios` are its pins.

    Parameters
    ----------
    platform   : gets the processor's Verilog by `add_source`
    pcie_width : bits of Corundum's PCIe interface: 128, 256 or 512
    mtu        : bytes of a frame's payload
    vlan       : identifier of the frames' VLAN tag; None: no tag
    """

    def __init__(self, platform, pcie_width, mtu=9000, vlan=None):
        self.cd_sys = ClockDomain()
        host = CorundumHost(
            DATA_WIDTH,
            SRAM_BYTES,
            SEGMENTS,
            2 * pcie_width // SEGMENTS,
            patience=int(CLOCK_HZ * BUS_MASTER_SECONDS),
        )
        port = EthernetPort(mtu=mtu, vlan=vlan)
        self.core = core = DibberCore(
            platform, None, None, DATA_WIDTH, CLOCK_HZ, "corundum", host=host, port=port
        )
        self.ios = {self.cd_sys.clk, self.cd_sys.rst}

        # # #

        nonce = core.registers.link_nonce
        self.comb += [
            port.mac.eq(Cat(*[Constant(byte, 8) for byte in ADDRESS], nonce[8:], nonce[:8])),
            # An application is not told whether its MAC has a link; the peer's silence says it.
            port.signal.eq(1),
        ]

        bar = host.bar
        for name, channel in (
            ("aw", bar.aw),
            ("w", bar.w),
            ("ar", bar.ar),
            ("b", bar.b),
            ("r", bar.r),
        ):
            self.endpoint(f"axil_{name}", channel, separator="")
        self.endpoint("read_desc", host.read_descriptors)
        self.endpoint("read_status", host.read_status, ready=False)
        self.endpoint("write_desc", host.write_descriptors)
        self.endpoint("write_status", host.write_status, ready=False)
        self.endpoint("frame_tx", port.frame_tx)
        self.endpoint("frame_rx", port.frame_rx, ready=False)

        stores, fetches = host.arrivals.commands, host.departures.commands
        answers = host.departures.responses
        for name in ("be", "data", "valid"):
            self.spread(f"ram_wr_cmd_{name}", [getattr(each, name) for each in stores])
        self.spread("ram_wr_cmd_addr", [each.addr for each in stores], SEGMENT_ADDRESS)
        self.gather("ram_wr_cmd_ready", [each.ready for each in stores])
        self.gather("ram_wr_done", [host.arrivals.done])
        self.spread("ram_rd_cmd_valid", [each.valid for each in fetches])
        self.spread("ram_rd_cmd_addr", [each.addr for each in fetches], SEGMENT_ADDRESS)
        self.gather("ram_rd_cmd_ready", [each.ready for each in fetches])
        self.gather("ram_rd_resp_data", [each.data for each in answers])
        self.gather("ram_rd_resp_valid", [each.valid for each in answers])
        self.spread("ram_rd_resp_ready", [each.ready for each in answers])

    def pin(self, name, signal):
        signal.name_override = name
        self.ios.add(signal)

    def endpoint(self, prefix, endpoint, separator="_", ready=True):
        fields = [field[0] for field in endpoint.description.payload_layout]
        # A port sends no bad frames.
        fields = [name for name in fields if (prefix, name) != ("frame_tx", "error")]
        for name in [*fields, "valid", *(["ready"] if ready else [])]:
            self.pin(f"{prefix}{separator}{name}", getattr(endpoint, name))
        if "frame" in prefix:
            self.pin(f"{prefix}_last", endpoint.last)

    def gather(self, name, signals):
        """An output with the fields of all segments, segment 0 in the low bits."""
        pin = Signal(sum(map(len, signals)))
        self.comb += pin.eq(Cat(*signals))
        self.pin(name, pin)

    def spread(self, name, signals, width=None):
        """An input with the fields of all segments; of each one, the low bits of `width`."""
        width = width or len(signals[0])
        pin = Signal(width * len(signals))
        self.comb += [
            signal.eq(pin[n * width : n * width + len(signal)]) for n, signal in enumerate(signals)
        ]
        self.pin(name, pin)


# Block --------------------------------------------------------------------------------------------

PASSED = ("axis_direct_tx", "axis_direct_rx", "axis_if_tx", "axis_if_rx")
PASSED += ("axis_direct_tx_cpl", "axis_if_tx_cpl")

# Checked when the design is elaborated: (condition that must hold, what is wrong otherwise).
CHECKS = (
    ("APP_ID == 32'h{app_id:08x}", "APP_ID is not that of Dibber"),
    ("RAM_SEG_COUNT == {segments}", "the core was generated for {segments} segments"),
    ("RAM_SEG_COUNT*RAM_SEG_DATA_WIDTH == {ram}", "the core was generated for PCIe of {pcie} bits"),
    ("RAM_ADDR_WIDTH >= 15", "RAM_ADDR_WIDTH is less than 15: Dibber has 32 KiB"),
    ("DMA_TAG_WIDTH >= 7", "DMA_TAG_WIDTH is less than 7"),
    ("AXIL_APP_CTRL_DATA_WIDTH == 32", "AXI-lite of the application has not 32 bits"),
    ("AXIL_APP_CTRL_ADDR_WIDTH >= 20", "BAR 2 is smaller than 1 MiB"),
)


def used_ports():
    """Names of the ports of dibber_app."""
    text = (HERE / "rtl" / "dibber_app.v").read_text(encoding="utf-8")
    header = text[text.index(") (") : text.index(");")]
    return {
        line.split("//")[0].split()[-1].rstrip(",")
        for line in header.splitlines()
        if line.lstrip().startswith(("input", "output"))
    }


def used_parameters():
    text = (HERE / "rtl" / "dibber_app.v").read_text(encoding="utf-8")
    header = text[text.index("#(") : text.index(") (")]
    names = [line.split("=")[0].split()[-1] for line in header.splitlines() if "parameter" in line]
    return [name for name in names if name in interface.parameters()]


def block(pcie_width, tagged=False):
    """Verilog of mqnic_app_block: its ports go to dibber_app, are passed on, or rest. `tagged`: the
    core's frames have a VLAN tag.
    """
    used = used_ports()
    lines = [
        "// SPDX-License-Identifier: BSD-2-Clause",
        "//",
        f"// Dibber as Corundum's application, for PCIe of {pcie_width} bits. Written by",
        "// hw/corundum/generate.py; docs/corundum.md says how it gets into a board.",
        "//",
        "// Frames of `direct` and `if` pass. Memory of the board, registers of the NIC, the DMA stream",
        "// `ctrl`, pins and JTAG are not used.",
        "",
        "`resetall",
        "`timescale 1ns / 1ps",
        "`default_nettype none",
        "",
        "/* verilator lint_off UNUSEDPARAM */",
        "/* verilator lint_off UNUSEDSIGNAL */",
        "module mqnic_app_block #(",
        "    parameter DIBBER_PORT = 0,  // port of the NIC that Dibber shares",
    ]
    lines += [f"    parameter {name} = {value}," for name, value in interface.parameters().items()]
    lines[-1] = lines[-1].rstrip(",")
    lines += [") ("]
    ports, rest, passed = [], [], []
    for what, group in interface.groups():
        ports += [f"    // {what}."]
        for direction, width, name in group:
            size = f" [{width}-1:0]" if width else ""
            ports += [f"    {direction:<6} wire{size} {name},"]
            if name in used or direction == "input":
                continue
            twin = ("m" if name[0] == "s" else "s") + name[1:]
            if name[2:].startswith(PASSED):
                passed += [f"assign {name} = {twin};"]
            elif name == "jtag_tdo":
                passed += [f"assign {name} = jtag_tdi;"]
            elif name == "ctrl_dma_ram_wr_cmd_ready":
                # What would come for it is taken and forgotten.
                passed += [f"assign {name} = {{RAM_SEG_COUNT{{1'b1}}}};"]
            else:
                rest += [f"assign {name} = 0;"]
    ports[-1] = ports[-1].rstrip(",")
    lines += [*ports, ");", "", "// Passed on.", *passed, ""]
    lines += ["/* verilator lint_off WIDTHEXPAND */", "// At rest.", *rest]
    lines += ["/* verilator lint_on WIDTHEXPAND */", "", "initial begin"]
    values = dict(app_id=APP_ID, segments=SEGMENTS, ram=2 * pcie_width, pcie=pcie_width)
    for condition, text in CHECKS:
        condition, text = condition.format(**values), text.format(**values)
        lines += [f"    if (!({condition})) begin", f'        $display("Dibber: {text} (%m)");']
        lines += ["        $finish;", "    end"]
    lines += ["end", "", "dibber_app #("]
    lines += ["    .PORT(DIBBER_PORT),", f"    .TAGGED({int(tagged)}),"]
    lines += [f"    .{name}({name})," for name in used_parameters()]
    lines[-1] = lines[-1].rstrip(",")
    lines += [") app ("]
    for what, group in interface.groups():
        lines += [f"    .{name}({name})," for _, _, name in group if name in used]
    lines[-1] = lines[-1].rstrip(",")
    return "\n".join([*lines, ");", "", "endmodule", "", "`resetall", ""])


def generate(output, pcie_width, mtu=9000, vlan=None):
    """Write all files for PCIe of `pcie_width` bits into the folder `output`."""
    output.mkdir(parents=True, exist_ok=True)
    platform = SourceList(output)
    core = CorundumCore(platform, pcie_width, mtu, vlan)
    write_verilog(output, core, core.ios, "dibber_corundum_core", platform.sources)
    text = block(pcie_width, vlan is not None)
    (output / "mqnic_app_block.v").write_text(text, encoding="utf-8")
    for file in sorted((HERE / "rtl").glob("*.v")):
        shutil.copy(file, output)


def main():
    elaborate_quickly()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--pcie",
        type=int,
        choices=PCIE_WIDTHS,
        required=True,
        help="bits of Corundum's PCIe interface",
    )
    parser.add_argument(
        "--mtu", type=int, default=9000, help="bytes of a frame's payload, 72 to 9216"
    )
    parser.add_argument("--vlan", type=int, help="identifier of the frames' VLAN tag, 0 to 4094")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="folder to write to")
    args = parser.parse_args()
    generate(args.output, args.pcie, args.mtu, args.vlan)


if __name__ == "__main__":
    main()
