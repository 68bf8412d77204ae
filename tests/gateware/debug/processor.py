#!/usr/bin/env python3
"""Verilog of the control program's processor with its test access port, and no card around it.

python processor.py DIRECTORY
"""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "gateware"), str(ROOT / "boards")]

from migen import *

from litex.gen import *
from litex.gen.fhdl.verilog import convert

from dibber.common.elaboration import elaborate_quickly
from dibber.debug.tap import TestAccessPort
from dibber.debug.transport import DebugTransport
from dibber.mcp.processor import Processor

from sim import SourceList


class Bench(LiteXModule):
    """Ports: tck, tms, tdi, tdo; hold (in reset); load, load_adr, load_data (of the SRAM); halted,
    ndmreset.
    """

    def __init__(self, platform):
        self.cd_sys = ClockDomain()
        self.processor = processor = Processor(platform, 64)
        self.tap = tap = TestAccessPort()
        self.transport = DebugTransport()
        ports = {
            name: Signal(bits, name_override=name)
            for name, bits in [("hold", 1), ("load", 1), ("load_adr", 14), ("load_data", 32)]
        }

        # # #

        for name in ["tck", "tms", "tdi", "tdo"]:
            getattr(tap, name).name_override = name
        processor.halted.name_override = "halted"
        processor.ndmreset.name_override = "ndmreset"
        self.ios = {
            self.cd_sys.clk,
            self.cd_sys.rst,
            tap.tck,
            tap.tms,
            tap.tdi,
            tap.tdo,
            processor.halted,
            processor.ndmreset,
            *ports.values(),
        }
        firmware = processor.firmware
        self.comb += [
            tap.scan.connect(self.transport.scan),
            self.transport.dmi.connect(processor.dmi),
            processor.reset.eq(ports["hold"]),
            firmware.we.eq(ports["load"]),
            firmware.adr.eq(ports["load_adr"][1:]),
            firmware.dat_w.eq(Replicate(ports["load_data"], 2)),
            firmware.be.eq(Mux(ports["load_adr"][0], 0xF0, 0x0F)),
        ]


def main(folder):
    elaborate_quickly()
    folder.mkdir(parents=True, exist_ok=True)
    platform = SourceList(folder)
    bench = Bench(platform)
    verilog = convert(bench, bench.ios, name="bench", regular_comb=False)
    for name, contents in verilog.data_files.items():
        (folder / name).write_text(contents)
    (folder / "bench.v").write_text(verilog.main_source)
    (folder / "bench.f").write_text("\n".join([str(folder / "bench.v"), *platform.sources]) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
