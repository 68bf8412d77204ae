"""A card on an Artix-7 by openXC7's tools alone, at PCIe Gen1 x1. Unconfirmed: no bitstream of it
was ever run.

Only Vivado has the logic around the hard PCIe block. The project pcie_7x
(github.com/regymm/pcie_7x, CERN-OHL-P) has a replacement: check it out, and let PCIE_7X_DIR name
the folder. It is not part of this project.
"""

# SPDX-License-Identifier: BSD-2-Clause

import os
import pathlib
import re
import sys
from typing import Any

from migen import *

import bitstream
import flow

from boards.vivado import describe, run, write_run

from dibber.interface.description import C
from dibber.phy.pcie import QWORD, S7PCIePHY

NAME = "openXC7"
OUT  = flow.ROOT/"out"/"openxc7"
PART = "xc7a100tfgg484-2"

SYS_CLK_FREQ = 50e6
PCIE_MHZ     = 125  # the fastest of PCIe's clocks at Gen1

# Files of pcie_7x for an endpoint with clocks of its own.
SOURCES = ("pcie_7x", "pcie_axi_rx", "pcie_axi_tx", "pcie_block", "pcie_brams", "pcie_tx_thrtl_ctl", "pipe_wrapper", "xilinx_pcie_mmcm")

# Lines of an XDC that nextpnr-xilinx reads.
READABLE = r"set_property (LOC|IOSTANDARD|PULLUP|SLEW|DRIVE)\b.*get_ports|create_clock .*get_ports"

TOOLS = ("yosys", "nextpnr-xilinx", "fasm2frames", "xc7frames2bit")
RUN   = """#!/bin/sh
# From this project to a bitstream and its manifest, with the tools of openXC7 and Python 3 on the PATH. When a clock missed its time it ends with 1
# and makes neither.
set -eu
cd "$(dirname "$0")"
: "${{CHIPDB:?is the folder of nextpnr-xilinx' databases, with {part}.bin}}"
: "${{PRJXRAY_DB_DIR:?is the folder of prjxray-db}}"
for tool in {tools} python3; do command -v $tool >/dev/null || {{ echo "run.sh: $tool is not on the PATH" >&2; exit 1; }}; done
rm -f manifest.json *.bit
start=$(date +%s)
yosys -q -l yosys.log -p '{synthesis}'
nextpnr-xilinx --chipdb "$CHIPDB/{part}.bin" --xdc {top}.xdc --freq {mhz} --json {top}.json --fasm {top}.fasm --log nextpnr.log
fasm2frames --part {part} --db-root "$PRJXRAY_DB_DIR/artix7" {top}.fasm >{top}.frames
xc7frames2bit --part_file "$PRJXRAY_DB_DIR/artix7/{part}/part.yaml" --part_name {part} --frm_file {top}.frames --output_file {top}.bit
python3 manifest.py $(($(date +%s) - start))
"""

# Wrapper ------------------------------------------------------------------------------------------

def wrapper() -> list[pathlib.Path]:
    """The Verilog files of pcie_7x; the program ends if they are missing."""
    folder = os.environ.get("PCIE_7X_DIR")
    if not folder:
        sys.exit("openxc7: PCIE_7X_DIR is not set: check out github.com/regymm/pcie_7x and let it name that folder")
    files   = [pathlib.Path(folder)/"src"/f"{name}.v" for name in SOURCES]
    missing = [str(file) for file in files if not file.is_file()]
    if missing:
        sys.exit(f"openxc7: PCIE_7X_DIR has no {', '.join(missing)}")
    return files


class OpenPCIePHY(S7PCIePHY):
    """S7PCIePHY with pcie_7x in place of Vivado's block; 64 bits, x1, Gen1. Parameters and
    attributes are those of S7PCIePHY.
    """
    def do_finalize(self) -> None:
        text = wrapper()[0].read_text()
        # pcie_7x has a part of LitePCIe's ports, including all ports for data and configuration.
        ports      = set(re.findall(r"^\s*(?:input|output)\b[^/\n]*?(\w+)\s*,?\s*(?://.*)?$", text, re.M))
        parameters = {
            "EXTERNAL_MMCM": "TRUE", "USER_CLK_FREQ": 2, "LINK_CAP_MAX_LINK_SPEED": 1,
            "CFG_VEND_ID": Constant(C.PCI_VENDOR, 16), "CFG_DEV_ID": Constant(C.PCI_DEVICE, 16),
            "CFG_SUBSYS_VEND_ID": Constant(C.PCI_VENDOR, 16), "CFG_SUBSYS_ID": Constant(C.PCI_DEVICE, 16),
            "CLASS_CODE": Constant(C.PCI_CLASS, 24), "BAR0": 2**32 - C.BAR0_SIZE, "DEV_CAP_EXT_TAG_SUPPORTED": "TRUE",
            # Capabilities: power management, PCI Express, MSI-X; no MSI.
            "MSI_CAP_ON": "FALSE", "PM_CAP_NEXTPTR": 0x60, "PCIE_CAP_NEXTPTR": 0x9c, "MSIX_CAP_ON": "TRUE",
            "MSIX_CAP_TABLE_SIZE": C.VECTORS - 1, "MSIX_CAP_TABLE_OFFSET": C.MSIX_TABLE_BASE//QWORD,
            "MSIX_CAP_PBA_OFFSET": C.MSIX_PBA_BASE//QWORD,
        }
        needed = {"s_axis_tx_tdata", "m_axis_rx_tdata", "user_clk_out", "cfg_dcommand", "cfg_interrupt_msixenable"}
        absent = sorted(needed - ports) + [name for name in parameters if not re.search(rf"parameter\b[^,]*\b{name}\b", text)]
        if absent:
            sys.exit(f"openxc7: this pcie_7x has no {', '.join(absent)}")
        self.specials += Instance("pcie_7x",
            **{f"p_{name}": value for name, value in parameters.items()},
            **{name: signal for name, signal in self.pcie_phy_params.items() if name[2:] in ports})

# Project ------------------------------------------------------------------------------------------

def takes(device: str) -> bool:
    """Whether `device`, LiteX's name, is the part."""
    return device.replace("-", "", 1) == PART


def generate(folder: pathlib.Path, top: str, platform: Any, design: Any) -> None:
    """Verilog, pins and `run.sh` of `design` in `folder`."""
    files      = wrapper()
    sources, _ = bitstream.generate(folder, top, platform, design)
    for file in files:
        (folder/file.name).write_bytes(file.read_bytes())
    for name in (f"{top}.tcl", f"build_{top}.sh"):
        (folder/name).unlink()
    pins  = folder/f"{top}.xdc"
    clock = design.crg
    needs = {platform.toolchain._vns.get_name(signal): hertz/1e6 for signal, hertz in
             ((clock.cd_sys.clk, design.sys_clk_freq), (clock.pll.clkin, clock.pll.clkin_freq))}
    # nextpnr-xilinx does not derive periods behind a buffer or PLL. A clock without a period must
    # reach --freq.
    pins.write_text("".join(line for line in pins.read_text().splitlines(keepends=True) if re.match(READABLE, line))
        + "".join(f"create_clock -name {name} -period {1000/mhz:.3f} [get_nets {name}]\n" for name, mhz in needs.items()))
    # No shift registers: Yosys would make one of LitePCIe's synchroniser of `pclk_sel` and the
    # register behind it.
    synthesis = (f"{flow.read([*sources, *(file.name for file in files)])} {flow.attributes(top)}"
                 f" synth_xilinx -flatten -abc9 -nosrl -arch xc7 -top {top}; delete t:$scopeinfo; write_json {top}.json")
    write_run(folder, RUN.format(top=top, part=PART, synthesis=synthesis, mhz=PCIE_MHZ, tools=" ".join(TOOLS)))
    describe(folder, platform.device, flow="openxc7", top=top, needs=needs)


def build(name: str, platform: Any, design: Any) -> str:
    """The project in out/openxc7/name, and the bitstream if openXC7 is installed. Returns the
    result of vivado.run().
    """
    generate(OUT/name, f"dibber_{name}", platform, design)
    return run(name, OUT/name, TOOLS)
