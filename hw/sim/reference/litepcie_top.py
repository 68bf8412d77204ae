"""A stock LitePCIe DMA on the pins that the host model drives, without any code of ours.

It checks the host model: the rate of this well-known design on it must agree with TLP arithmetic.
With `--cpu` a VexRiscv stands beside it: the bare model for comparing the simulation speed.

    python hw/sim/reference/litepcie_top.py --data-width 64 --output build/sim/litepcie64

Writes litepcie_reference.v, litepcie_reference.f (all Verilog that it needs) and litepcie_csr.h
(the DMA's registers as offsets in BAR 0).
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import json
import os
import pathlib

from migen import *

from litex.gen import *

from litex.build.generic_platform import GenericPlatform, Pins
from litex.soc.integration.builder import Builder
from litex.soc.integration.soc_core import SoCCore
from litex.soc.interconnect import stream

from litepcie.common import get_bar_mask, msi_layout, phy_layout
from dibber.common.elaboration import elaborate_quickly

# Pins ---------------------------------------------------------------------------------------------


def pins(data_width):
    """The PCIe half of the pins of the simulated card, and the output of the DMA's reader."""
    stream_pins = lambda name: [
        (f"{name}_valid", 0, Pins(1)),
        (f"{name}_ready", 0, Pins(1)),
        (f"{name}_first", 0, Pins(1)),
        (f"{name}_last", 0, Pins(1)),
        (f"{name}_dat", 0, Pins(data_width)),
        (f"{name}_be", 0, Pins(data_width // 8)),
    ]
    return [
        ("sys_clk", 0, Pins(1)),
        ("sys_rst", 0, Pins(1)),
        *stream_pins("pcie_rx"),
        *stream_pins("pcie_tx"),
        ("pcie_id", 0, Pins(16)),
        ("pcie_max_payload", 0, Pins(16)),
        ("pcie_max_request", 0, Pins(16)),
        ("reader_valid", 0, Pins(1)),
        ("reader_data", 0, Pins(data_width)),
    ]


class Platform(GenericPlatform):
    """A platform that only has pins and writes Verilog."""

    def __init__(self, data_width):
        GenericPlatform.__init__(self, "sim", pins(data_width), name="litepcie_reference")

    def build(self, fragment, build_dir, build_name, run=False, **kwargs):
        verilog = self.get_verilog(fragment, name="litepcie_reference", regular_comb=False)
        # LitePCIe's crossbar has a block that reads no signal. As `always @(*)` it never runs.
        text = verilog.main_source.replace("always @(*)", "always_comb")
        directory = pathlib.Path(build_dir).resolve()
        for name, contents in verilog.data_files.items():
            (directory / name).write_text(contents)
            # The program may run in any folder.
            text = text.replace(f'$readmemh("{name}"', f'$readmemh("{directory / name}"')
        (directory / "litepcie_reference.v").write_text(text)

    def add_false_path_constraints(self, *clocks):
        """There is no timing to constrain in a simulation."""


class PinPHY(LiteXModule):
    """The PHY interface of LitePCIe 2024.12, directly on pins."""

    endianness = "big"
    qword_aligned = False

    def __init__(self, platform, data_width):
        self.data_width = data_width
        self.sink = stream.Endpoint(phy_layout(data_width))
        self.source = stream.Endpoint(phy_layout(data_width))
        self.msi = stream.Endpoint(msi_layout())
        self.id = platform.request("pcie_id")
        self.max_payload_size = platform.request("pcie_max_payload")
        self.max_request_size = platform.request("pcie_max_request")
        self.bar0_size = 0x100000
        self.bar0_mask = get_bar_mask(self.bar0_size)
        self.cd_pcie = ClockDomain(reset_less=True)

        # # #

        self.comb += self.cd_pcie.clk.eq(ClockSignal("sys"))
        request = lambda name: platform.request(name)
        self.comb += [
            self.source.valid.eq(request("pcie_rx_valid")),
            request("pcie_rx_ready").eq(self.source.ready),
            self.source.first.eq(request("pcie_rx_first")),
            self.source.last.eq(request("pcie_rx_last")),
            self.source.dat.eq(request("pcie_rx_dat")),
            self.source.be.eq(request("pcie_rx_be")),
            request("pcie_tx_valid").eq(self.sink.valid),
            self.sink.ready.eq(request("pcie_tx_ready")),
            request("pcie_tx_first").eq(self.sink.first),
            request("pcie_tx_last").eq(self.sink.last),
            request("pcie_tx_dat").eq(self.sink.dat),
            request("pcie_tx_be").eq(self.sink.be),
            self.msi.ready.eq(1),
        ]


# SoC ----------------------------------------------------------------------------------------------


class CRG(LiteXModule):
    def __init__(self, platform):
        self.cd_sys = ClockDomain()
        self.comb += [
            self.cd_sys.clk.eq(platform.request("sys_clk")),
            self.cd_sys.rst.eq(platform.request("sys_rst")),
        ]


class Reference(SoCCore):
    """One DMA: its writer gets an endless counter, its reader's data are taken at once."""

    def __init__(self, platform, data_width, with_cpu):
        self.crg = CRG(platform)
        SoCCore.__init__(
            self,
            platform,
            125_000_000,
            ident="LitePCIe reference",
            cpu_type="vexriscv" if with_cpu else None,
            cpu_variant="standard" if with_cpu else None,
            integrated_rom_size=0x1000 if with_cpu else 0,
            integrated_rom_init=[0x0000006F] if with_cpu else [],  # j .
            integrated_sram_size=0x10000,
            with_uart=False,
            with_timer=True,
        )
        self.pcie_phy = PinPHY(platform, data_width)
        self.add_pcie(phy=self.pcie_phy, ndmas=1, with_dma_loopback=False, with_dma_buffering=False)
        counter = Signal(data_width)
        sink = self.pcie_dma0.sink
        source = self.pcie_dma0.source
        self.sync += If(sink.valid & sink.ready, counter.eq(counter + 1))
        self.comb += [
            sink.valid.eq(1),
            sink.data.eq(counter),
            source.ready.eq(1),
            platform.request("reader_valid").eq(source.valid),
            platform.request("reader_data").eq(source.data),
        ]


def csr_header(soc):
    """C constants of the DMA's registers, as offsets in BAR 0."""
    registers = json.loads(pathlib.Path("csr.json").read_text())["csr_registers"]
    lines = ["/* Written by litepcie_top.py. */", "#pragma once"]
    for name, register in registers.items():
        if name.startswith("pcie_dma0_"):
            lines.append(f"#define {name.upper()} 0x{register['addr'] - soc.mem_map['csr']:x}u")
    pathlib.Path("litepcie_csr.h").write_text("\n".join(lines) + "\n")


def main():
    elaborate_quickly()
    parser = argparse.ArgumentParser(description="Verilog of the LitePCIe reference design")
    parser.add_argument("--data-width", type=int, choices=(64, 128), default=64)
    parser.add_argument("--cpu", action="store_true", help="with a VexRiscv beside the DMA")
    parser.add_argument("--output", required=True, help="directory")
    args = parser.parse_args()

    # LiteX writes the initial contents of memories into the current folder.
    os.makedirs(args.output, exist_ok=True)
    os.chdir(args.output)
    platform = Platform(args.data_width)
    soc = Reference(platform, args.data_width, args.cpu)
    builder = Builder(
        soc, output_dir=".", gateware_dir=".", csr_json="csr.json", compile_software=False
    )
    builder.build(run=False)
    csr_header(soc)
    sources = [
        str(pathlib.Path("litepcie_reference.v").resolve()),
        *(s[0] for s in platform.sources),
    ]
    pathlib.Path("litepcie_reference.f").write_text("\n".join(sources) + "\n")


if __name__ == "__main__":
    main()
